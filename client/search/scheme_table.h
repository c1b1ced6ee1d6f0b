// The table of schemes. A new one adds its name, its entry and the fields that it takes in
// scheme_table.cc.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_SCHEME_TABLE_H_
#define PRIVATEMAIL_CLIENT_SEARCH_SCHEME_TABLE_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/search/scheme_entry.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/search_request.h"

namespace privatemail::client {

// Each is defined in the folder of its scheme.
SchemeEntry CellsEntry();
SchemeEntry EncryptedEntry();
SchemeEntry JointEntry();

const SchemeEntry& EntryOf(Scheme scheme);

// A field of a request that some schemes take.
struct RequestField {
  const char* name;
  // The member, if it is an optional scalar; otherwise whether it is given.
  std::variant<std::optional<double> SearchRequest::*, std::optional<int64_t> SearchRequest::*,
               std::optional<bool> SearchRequest::*, bool (*)(const SearchRequest&)>
      member;
  std::vector<Scheme> schemes;
  bool is_cost = false;
};
const std::vector<RequestField>& RequestFields();

// The scheme of a request to a collection with these parameters.
// INVALID_ARGUMENT naming the field: a field is set that the scheme does not take; epsilon is
//   missing; or a cost is given without a scheme where the default is encrypted, which has none, so
//   that nobody changes the scheme unknowingly.
absl::StatusOr<Scheme> ResolveScheme(const SearchRequest& request,
                                     const PublicParameters& parameters);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_SCHEME_TABLE_H_
