// What `privatemail collection` says of one.
#ifndef PRIVATEMAIL_CLIENT_CLI_COLLECTION_WORDS_H_
#define PRIVATEMAIL_CLIENT_CLI_COLLECTION_WORDS_H_

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/cells/cell_code.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client::cli {

// Short names of codes; no value: not given.
inline const std::map<std::string, std::optional<CellCode>> kCellCodeNames = {
    {"float16", CellCode::kFloat16}, {"scalar8", CellCode::kScalar8}, {"pq8", CellCode::kPq8},
    {"pq16", CellCode::kPq16},       {"pq32", CellCode::kPq32},       {"pq64", CellCode::kPq64},
    {"none", CellCode::kNone}};

// "float16"; empty where there are no cells.
std::string CodeName(v1::CellCode code);

nlohmann::json ToJson(const v1::GetCollectionResponse& c);

// On standard output, for people.
void Print(const v1::GetCollectionResponse& c);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_COLLECTION_WORDS_H_
