// Parts of `privatemail collection` that other commands use.
#ifndef PRIVATEMAIL_CLIENT_CLI_COLLECTION_H_
#define PRIVATEMAIL_CLIENT_CLI_COLLECTION_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "common/cells/cell_code.h"
#include "privatemail/admin_client.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client::cli {

inline const std::map<std::string, CellCode> kCellCodeNames = {
    {"float16", CellCode::kFloat16}, {"scalar8", CellCode::kScalar8}, {"pq8", CellCode::kPq8},
    {"pq16", CellCode::kPq16},       {"pq32", CellCode::kPq32},       {"pq64", CellCode::kPq64}};

// "float16"; empty without cells.
std::string CodeName(v1::CellCode code);

nlohmann::json ToJson(const v1::GetCollectionResponse& collection);
// All of it as JSON; as text only what concerns the schemes that the collection offers.
Result DescribeCollection(const v1::GetCollectionResponse& collection);
// Says which schemes need a build to find new items; empty if every offered scheme finds them
// immediately.
std::string BuildHint(const v1::GetCollectionResponse& collection);

// `collection info`: public parameters, counts, expected alignment and its warnings.
absl::StatusOr<Result> CollectionInfo(const Context& context, const std::string& name);

// Builds the embedding behind a progress bar. Arguments and statuses as
// AdminClient::BuildEmbedding.
absl::StatusOr<v1::BuildEmbeddingResponse> BuildWithProgress(const AdminClient& admin,
                                                             const std::string& name,
                                                             bool accept_misalignment);

// `collection create`.
void AddCreateCollectionCommand(CLI::App& collection, Context& context);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_COLLECTION_H_
