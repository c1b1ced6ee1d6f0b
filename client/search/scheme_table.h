// The table of schemes: everything that a search does differently for each, in addition to
// its SchemeSearch. A new scheme adds its entry, its fields and its name in scheme_table.cc.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_SCHEME_TABLE_H_
#define PRIVATEMAIL_CLIENT_SEARCH_SCHEME_TABLE_H_

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/schemes/scheme_search.h"
#include "client/search/departures.h"
#include "client/search/encrypted_sessions.h"
#include "client/search/last_search.h"
#include "privatemail/client_limits.h"
#include "privatemail/search_result.h"
#include "privatemail/transport.h"

namespace privatemail::client {

struct CellsCollection;
struct JointCollection;

// The connection of one SearchClient, and what its searches share. Thread-safe.
struct SchemeContext {
  const Transport& transport;
  const ClientLimits limits;
  Departures departures{};
  EncryptedSessions encrypted;
  std::mutex mutex{};  // guards the following, by the collections' names
  std::map<std::string, std::shared_ptr<const JointCollection>> joint{};
  std::map<std::string, std::shared_ptr<const CellsCollection>> cells{};
};

struct SchemeEntry {
  // Fetches what is public and not in the context yet, and creates the search.
  absl::StatusOr<std::unique_ptr<SchemeSearch>> (*open)(SchemeContext& context,
                                                        const v1::GetCollectionResponse& published,
                                                        const SearchRequest& request);
  // Sends the message as often as needed, and fills the result's bytes. Errors of Transport.
  absl::StatusOr<SearchAnswer> (*send)(SchemeContext& context, const PublicParameters& parameters,
                                       google::protobuf::Message* message, SearchResult* result,
                                       const WarnFunction& warn);
  // Sends a saved message again and reads its answer for the target. Null: the scheme's messages
  // are not saved (LoadLastRelease).
  absl::Status (*resend)(SchemeContext& context, const PublicParameters& parameters,
                         const LastSearch& last, const SearchTarget& target,
                         std::optional<int64_t> k, SearchResult* result);
  // Adds the members of the scheme to the JSON of a result.
  void (*add_json)(const SearchResponse& response, const SearchResult& result,
                   nlohmann::json* json);
  // The content of the saved message.
  absl::StatusOr<nlohmann::json> (*explain)(const LastSearch& last,
                                            const PublicParameters& parameters);
};

const SchemeEntry& EntryOf(Scheme scheme);

// The scheme of a request to a collection with these parameters.
// INVALID_ARGUMENT naming the field: a field is set that the scheme does not take; epsilon is
//   missing; or a cost is given without a scheme where the default is encrypted, which has none, so
//   that nobody changes the scheme unknowingly.
absl::StatusOr<Scheme> ResolveScheme(const SearchRequest& request,
                                     const PublicParameters& parameters);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_SCHEME_TABLE_H_
