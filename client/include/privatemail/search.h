// Private nearest-neighbour search: one client for every scheme.
//
//   auto client = SearchClient::Connect({.connection = {.server = "127.0.0.1:50051"}});
//   SearchRequest request{.collection = "fruit", .targets = {{.features = vector}}};
//   auto found = (*client)->Search(request);
//   for (const Match& match : found->results[0].matches) std::cout << match.id << "\n";
#ifndef PRIVATEMAIL_SEARCH_H_
#define PRIVATEMAIL_SEARCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/admin_client.h"
#include "privatemail/client_limits.h"
#include "privatemail/search_request.h"
#include "privatemail/search_result.h"
#include "privatemail/state_folder.h"

namespace privatemail::client {

struct SearchOptions {
  ConnectionOptions connection;
  // Holds the privacy ledger, the last search and the row tables. One folder for all programs of a
  // user: a second ledger would double every budget.
  std::string state_folder = DefaultStateFolder();
  ClientLimits limits = {};
};

// A connection to one server and a state folder. Held by the client; sees targets only while
// Search, Retry and Resend run, and until Retry is over. Thread-safe; of the process that made it:
// a fork is refused.
//
// Privacy: what is sent, how much, when and how often depends on public sizes, on the server and on
// the releases alone. All messages of a search are sent before the first answer is read, and the
// first message after a search leaves on a schedule, which hides how long reading took.
class SearchClient {
 public:
  // Connects lazily. Errors of Transport::Create. PERMISSION_DENIED: the state folder cannot be
  // created, or others may enter it.
  static absl::StatusOr<std::unique_ptr<SearchClient>> Connect(const SearchOptions& options);
  // Waits for the next departure, because the server also sees when a connection ends.
  ~SearchClient();

  // The nearest items of each target.
  // - warn: is called before the first charge; the response has the same warnings.
  // - progress: is called with the number of targets sent so far, after each message.
  // - confirm: is called before a charge of more than epsilon 4 for each target, after all checks;
  //   its text is among the response's warnings.
  // - Every failure that this machine can detect comes before the first charge. Then, and where no
  //   target is answered, the error is returned; otherwise it is in the response.
  // INVALID_ARGUMENT: a field is missing, out of range, or not one of the scheme (FieldProblemOf).
  // FAILED_PRECONDITION: the collection does not offer the scheme, has no items or no budget;
  //   public data shows that little would be found.
  // RESOURCE_EXHAUSTED: the budget, or limits.max_memory, does not suffice.
  // UNAVAILABLE: no random bits; a charge could not be made durable; the server is not ready.
  // DATA_LOSS: the server's answer is malformed, or the ledger does not match its witness.
  absl::StatusOr<SearchResponse> Search(const SearchRequest& request,
                                        const WarnFunction& warn = nullptr,
                                        const ProgressFunction& progress = nullptr,
                                        const ConfirmFunction& confirm = nullptr);

  // Sends the message of the last search again, the identical bytes at no cost, if that search had
  // one target and got no answer. The message stays in memory until the next search.
  // NOT_FOUND: no message waits for an answer. Otherwise errors of Search.
  absl::StatusOr<SearchResponse> Retry(const WarnFunction& warn = nullptr);

  // Sends the last release of cells or joint again at no cost; of joint k may differ.
  // target: no file names it. joint: its label, whose class's matches are read, or its features, by
  // which the classes are ranked as without a label. cells: its features.
  // k: absent: as before, for cells 8.
  // NOT_FOUND: nothing was released yet. FAILED_PRECONDITION: the last search was encrypted, which
  // costs nothing; or it was for another collection than `collection` (empty: any).
  absl::StatusOr<SearchResponse> Resend(const SearchTarget& target,
                                        std::optional<int64_t> k = std::nullopt,
                                        const std::string& collection = "");

  // The last search of a state folder as the server saw it, as JSON text; ciphertexts are not
  // saved. collection: the search must have been for it; empty: any. NOT_FOUND: nothing was sent
  // yet. DATA_LOSS: the file is damaged.
  static absl::StatusOr<std::string> Explain(const std::string& state_folder,
                                             const std::string& collection = "");

  // The parameters that the collection publishes. Errors of Transport::GetCollection.
  absl::StatusOr<PublicParameters> Describe(const std::string& collection) const;

  // Administration on the same connection, for one call: after the wait of WaitForDeparture.
  // FAILED_PRECONDITION: this process was forked from the one that connected. CANCELLED.
  absl::StatusOr<AdminClient> Admin() const;
  const std::string& state_folder() const;
  std::string server_identity() const;  // Transport::identity

  // Sleeps until the next departure after a search: how long it took to read the answer depends on
  // the target. CANCELLED.
  absl::Status WaitForDeparture() const;

 private:
  struct Impl;
  explicit SearchClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_SEARCH_H_
