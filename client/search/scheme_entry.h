// The parts of a search that each scheme does its own way, in addition to its SchemeSearch: calls,
// what the searches of one client share, and JSON.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_SCHEME_ENTRY_H_
#define PRIVATEMAIL_CLIENT_SEARCH_SCHEME_ENTRY_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/schemes/scheme_search.h"
#include "client/search/departures.h"
#include "client/search/last_search.h"
#include "privatemail/client_limits.h"
#include "privatemail/search_request.h"
#include "privatemail/search_result.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// The parts of one SearchClient that its schemes use. They outlive every SchemeConnection.
struct SearchContext {
  const Transport& transport;
  const std::string& state_folder;
  const ClientLimits& limits;
  Departures& departures;
};

// A saved message, and the function that reads its answer for a target.
struct SavedMessage {
  std::unique_ptr<google::protobuf::Message> message;
  std::function<absl::Status(const SearchAnswer& answer, SearchResult* result)> read;
};

// The record of one search: what Explain shows, and Resend sends where the scheme can. By default
// the last message. Used by one thread.
class SearchRecord {
 public:
  virtual ~SearchRecord() = default;
  // The record with a message that is about to be sent.
  virtual std::string Add(const google::protobuf::Message& message) {
    return message.SerializeAsString();
  }
  // The record once an answer has come; absent: as it was.
  virtual std::optional<std::string> AddAnswer(const SearchAnswer&) { return std::nullopt; }
  // Completes the results of all targets once every answer is read.
  virtual void Complete(std::vector<SearchResult>*) const {}
};

// One scheme over the connection of one client. Thread-safe.
class SchemeConnection {
 public:
  virtual ~SchemeConnection() = default;

  // Fetches what is public and not there from an earlier search, and creates the search.
  virtual absl::StatusOr<std::unique_ptr<SchemeSearch>> Open(
      const v1::GetCollectionResponse& published, const SearchRequest& request) = 0;

  // Sends the message as often as needed, and counts bytes in the result. Errors of Transport.
  virtual absl::StatusOr<SearchAnswer> Send(const PublicParameters& parameters,
                                            google::protobuf::Message* message,
                                            SearchResult* result, const WarnFunction& warn) = 0;

  virtual std::unique_ptr<SearchRecord> NewRecord() const {
    return std::make_unique<SearchRecord>();
  }

  // Prepares sending the saved message again. Is called only if can_resend.
  // INVALID_ARGUMENT naming the field: the target lacks what reading the answer needs. DATA_LOSS:
  // the saved message is malformed.
  virtual absl::StatusOr<SavedMessage> Reopen(const PublicParameters& parameters,
                                              const LastSearch& last, const SearchTarget& target,
                                              std::optional<int64_t> k) const;
};

struct SchemeEntry {
  // Whether messages are saved whole and may be sent again. They cost something, so a search that
  // cannot be sent again does not replace them.
  bool can_resend;
  // FAILED_PRECONDITION: the collection of this name does not offer the scheme.
  absl::Status (*check_offered)(absl::string_view collection, const PublicParameters& parameters);
  std::unique_ptr<SchemeConnection> (*connect)(const SearchContext& context);
  // Adds the members of the scheme to the JSON of a result.
  void (*add_json)(const SearchResponse& response, const SearchResult& result,
                   nlohmann::json* json);
  // The content of the saved message. DATA_LOSS: it is malformed.
  absl::StatusOr<nlohmann::json> (*explain)(const LastSearch& last,
                                            const PublicParameters& parameters);
};

// Parses a saved message. DATA_LOSS: the file is damaged.
template <typename Message>
absl::StatusOr<Message> ParseSaved(const LastSearch& last) {
  Message message;
  if (message.ParseFromString(last.message)) return message;
  return absl::DataLossError("the saved release is not a message of its scheme");
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_SCHEME_ENTRY_H_
