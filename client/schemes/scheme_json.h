// The parts of results and saved messages that each scheme adds to the JSON of a search.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_SCHEME_JSON_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_SCHEME_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/search_result.h"
#include "privatemail/v1/encrypted.pb.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The members that a scheme adds to the JSON of a result. Private.
void AddJointJson(const SearchResponse& response, const SearchResult& result, nlohmann::json* json);
void AddCellsJson(const SearchResponse& response, const SearchResult& result, nlohmann::json* json);
void AddEncryptedJson(const SearchResponse& response, const SearchResult& result,
                      nlohmann::json* json);

// The content of a message, row by row or cell by cell. DATA_LOSS, INVALID_ARGUMENT: it is
// malformed.
absl::StatusOr<nlohmann::json> ExplainJoint(const v1::RetrieveRequest& message,
                                            const PublicParameters& parameters);
absl::StatusOr<nlohmann::json> ExplainCells(const v1::RetrieveCellsRequest& message,
                                            const PublicParameters& parameters);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_SCHEME_JSON_H_
