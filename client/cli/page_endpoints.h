// The local web page: JSON endpoints over the client's queries, budget and plans, and its files.
#ifndef PRIVATEMAIL_CLIENT_CLI_PAGE_ENDPOINTS_H_
#define PRIVATEMAIL_CLIENT_CLI_PAGE_ENDPOINTS_H_

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

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
  std::string collection;  // opened first; empty: the first of the server
  std::string pictures;    // folder "class/file" of the gallery's pictures; empty: none
  ExtractorOptions extractor;
};

// One user's page. Held by the client; sees targets. Thread-safe; one query at a time.
//
// Privacy: the calls to the server are those of `privatemail query`, joint ones with --report.
// - A picked target stays in this process; nothing is sent until Ask. Plans are computed from what
//   was fetched when the collection was opened.
// - Releases for comparison have public targets (dummies, centroids of cells) and are drawn once
//   the answer is there. They are neither sent nor saved, and cost nothing: they tell nothing about
//   the target even if someone saw them.
// - Pictures come from the folder alone. A picture fetched from a payload's address would tell its
//   host the class.
class Page {
 public:
  // Errors of SearchClient::Connect and ListImageFolder.
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
    QueryTarget target;
  };
  using Gallery = absl::StatusOr<std::shared_ptr<const LocalGallery>>;
  using Answer = absl::StatusOr<Result>;

  Page(const Context& context, PageOptions options, std::unique_ptr<SearchClient> client)
      : context_(context), options_(std::move(options)), client_(std::move(client)) {}

  Answer Collections() const;
  Answer Open(const std::string& name);
  Answer Budget(const PageRequest& request) const;
  Answer Pick(const PageRequest& request);
  Answer Ask(const PageRequest& request);
  Answer Search(const PickedTarget& picked, const nlohmann::json& asked) const;
  Answer Nearest(const PageRequest& request) const;
  // The collection that the asking tab shows. FAILED_PRECONDITION: another tab opened one since.
  absl::StatusOr<std::shared_ptr<const Opened>> Shown(const PageRequest& request) const;
  PageResponse Picture(const std::string& id) const;
  void AddPictures(nlohmann::json* matches) const;

  const Context& context_;
  const PageOptions options_;
  const std::unique_ptr<SearchClient> client_;
  std::map<std::string, std::string> pictures_;  // canonical paths by id
  std::mutex work_;                              // held while features are computed or a query runs
  mutable std::mutex mutex_;                     // guards the following
  std::shared_ptr<const Opened> opened_;
  PickedTarget picked_;
  std::string gallery_extractor_;
  std::shared_ptr<std::atomic<bool>> gallery_cancelled_ = std::make_shared<std::atomic<bool>>();
  std::shared_future<Gallery> gallery_;
};

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PAGE_ENDPOINTS_H_
