// The local web page: JSON endpoints over the client's queries, budget and plans, and its files.
#ifndef PRIVATEMAIL_CLIENT_CLI_PAGE_ENDPOINTS_H_
#define PRIVATEMAIL_CLIENT_CLI_PAGE_ENDPOINTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/cli/images.h"
#include "client/cli/query_targets.h"
#include "client/page/local_server.h"
#include "common/cells/cell_quality.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/admin_client.h"
#include "privatemail/search.h"

namespace privatemail::client::cli {

struct PageOptions {
  std::string collection;  // opened first; empty: the first of the server that can be searched
  std::string pictures;    // folder "class/file" of the gallery's pictures; empty: none
  ExtractorOptions extractor;
};

// One user's page. Held by the client; sees targets. Thread-safe; one query at a time.
//
// Privacy: the calls to the server are those of `privatemail query`.
// - A picked target stays in this process, with its answer, until it is forgotten; nothing is sent
//   until Ask. Ways to search are described from what was fetched when the collection was opened.
// - Asking again after an error sends the identical bytes. Asking again after an answer that the
//   tab did not wait for returns that answer.
// - Pictures come from the folder, or from payloads that were fetched for all items. A picture that
//   is fetched for a match would tell its host what was found.
class Page {
 public:
  // Errors of SearchClient::Connect, CreateExtractor and ListImageFolder.
  static absl::StatusOr<std::unique_ptr<Page>> Create(const Context& context, PageOptions options);

  PageResponse Respond(const PageRequest& request);

 private:
  struct Opened {
    v1::GetCollectionResponse proto;
    PublicParameters parameters;
    absl::StatusOr<CellQuality> quality;  // or why queries for cells are not offered
  };
  struct PickedTarget {
    int64_t number = 0;
    std::shared_ptr<const Opened> collection;
    SearchTarget target;
    bool follows = false;      // it is a match of another search
    std::string picture = {};  // the file; empty for a vector
    std::string answer = {};   // JSON text; empty: not yet, guarded by mutex_
    std::string sent = {};     // the message, guarded by mutex_
    int64_t answers = 0;       // how many came; written with both mutexes held
    Scheme scheme = {};        // of the last answer, guarded by work_
  };
  using Answer = absl::StatusOr<Result>;

  Page(const Context& context, PageOptions options, std::unique_ptr<SearchClient> client)
      : context_(context), options_(std::move(options)), client_(std::move(client)) {}

  // Why this page cannot search the collection: "empty", "unready" or "model", which it lacks; or
  // "".
  std::string Obstacle(const v1::GetCollectionResponse& collection) const;
  bool LacksModel(const std::string& extractor) const;
  Answer Collections() const;
  Answer Open(const std::string& name);
  Answer Budget(const PageRequest& request) const;
  Answer Pick(const PageRequest& request);
  Answer Ask(const PageRequest& request);
  Answer Search(const std::shared_ptr<PickedTarget>& picked, Scheme scheme);
  Answer History(const PageRequest& request) const;
  Answer Forget();
  static nlohmann::json HistoryEntry(const PickedTarget& picked);
  std::shared_ptr<PickedTarget> Picked(absl::string_view number) const;  // null: it is forgotten
  // The collection that the asking tab shows. FAILED_PRECONDITION: another tab opened one since.
  absl::StatusOr<std::shared_ptr<const Opened>> Shown(const PageRequest& request) const;
  PageResponse Picture(const std::string& id) const;
  PageResponse File(const PageRequest& request) const;  // of a target, or what was sent for it

  const Context& context_;
  const PageOptions options_;
  const std::unique_ptr<SearchClient> client_;
  std::string model_;                            // of the collections that --model describes
  std::map<std::string, std::string> pictures_;  // canonical paths by id
  std::mutex work_;  // held while features are computed or a query runs; guards the following
  std::optional<std::pair<int64_t, Scheme>> unanswered_;  // the last target, if its search failed
  mutable std::mutex mutex_;                              // guards the following
  std::shared_ptr<const Opened> opened_;
  std::deque<std::shared_ptr<PickedTarget>> picked_;  // oldest first
  int64_t last_number_ = 0;
};

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PAGE_ENDPOINTS_H_
