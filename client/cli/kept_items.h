// What came back for cells, kept for `privatemail rank`.
#ifndef PRIVATEMAIL_CLIENT_CLI_KEPT_ITEMS_H_
#define PRIVATEMAIL_CLIENT_CLI_KEPT_ITEMS_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/cell_item_cache.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client::cli {

struct KeptItems {
  PublicParameters parameters;
  // Where the code is none: with coordinates of the embedding that the items' are of; others: none.
  std::vector<v1::GetAnchorsResponse> anchors;
  CellItemCache items;
};

// Adds answers to what is kept of the collection in the state folder, one file a collection's name,
// for its owner alone; what another collection of that name has left there goes, what is damaged is
// put aside, and either is warned of. anchors: what
// GetAnchors returned, kept where the code is none, and the answers' coordinates with them: what is
// there of another embedding goes. Of processes that do so at once, one may undo what another
// has added. Errors: those of CellItemCache::Add, of messages that are left out; UNAVAILABLE: it
// cannot be written.
absl::Status KeepItems(const std::string& state_folder, const v1::GetCollectionResponse& collection,
                       const std::vector<v1::GetAnchorsResponse>& anchors,
                       const std::vector<v1::RetrieveCellsResponse>& answers);

// KeepItems of the answers of a batch as they come, so that whatever ends it loses those of the
// last seconds alone. When it writes is a matter of the clock, and of what came, which tell of
// targets what the server knows.
class AnswerKeeper {
 public:
  using Clock = std::chrono::steady_clock;

  AnswerKeeper(std::string state_folder, v1::GetCollectionResponse collection,
               std::vector<v1::GetAnchorsResponse> anchors,
               Clock::duration every = std::chrono::seconds(2));

  void Keep(const std::vector<v1::RetrieveCellsResponse>& answer);
  // Writes the rest. The first error there was.
  absl::Status Finish();

 private:
  void Write();

  std::string state_folder_;
  v1::GetCollectionResponse collection_;
  std::vector<v1::GetAnchorsResponse> anchors_;
  Clock::duration every_;
  Clock::time_point written_ = Clock::now();
  std::vector<v1::RetrieveCellsResponse> unwritten_;
  absl::Status status_;
};

// Warns that `privatemail rank` will not find what could not be kept.
void WarnUnlessKept(const absl::Status& kept);

// NOT_FOUND: nothing was received yet. DATA_LOSS: the file is damaged.
absl::StatusOr<KeptItems> LoadKeptItems(const std::string& state_folder,
                                        const std::string& collection);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_KEPT_ITEMS_H_
