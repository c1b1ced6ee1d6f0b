// What came back for cells, kept for `privatemail rank`.
#ifndef PRIVATEMAIL_CLIENT_CLI_KEPT_ITEMS_H_
#define PRIVATEMAIL_CLIENT_CLI_KEPT_ITEMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/received_items.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::cli {

struct KeptItems {
  PublicParameters parameters;
  // Where the code is none: with coordinates of the embedding that the items' are of; others: none.
  std::vector<v1::GetAnchorsResponse> anchors;
  ReceivedItems items;
};

// Adds answers to what is kept of the collection in the state folder, one file a collection's name,
// for its owner alone; what another collection of that name has left there goes. anchors: what
// GetAnchors returned, kept where the code is none, and the answers' coordinates with them: what is
// there of another embedding goes. Of processes that do so at once, one may undo what another
// has added. Errors: those of ReceivedItems::Add; UNAVAILABLE: it cannot be written.
absl::Status KeepItems(const std::string& state_folder, const v1::GetCollectionResponse& collection,
                       const std::vector<v1::GetAnchorsResponse>& anchors,
                       const std::vector<v1::RetrieveCellsResponse>& answers);

// Warns that `privatemail rank` will not find what could not be kept.
void WarnUnlessKept(const absl::Status& kept);

// NOT_FOUND: nothing was received yet. DATA_LOSS: the file is damaged.
absl::StatusOr<KeptItems> LoadKeptItems(const std::string& state_folder,
                                        const std::string& collection);

}  // namespace privatemail::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_KEPT_ITEMS_H_
