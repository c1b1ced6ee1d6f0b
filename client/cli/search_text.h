// Searches as short texts: the matches, and one line of cost and guarantee.
#ifndef PRIVATEMAIL_CLIENT_CLI_SEARCH_TEXT_H_
#define PRIVATEMAIL_CLIENT_CLI_SEARCH_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/embedding/public_parameters.h"

namespace privatemail::client::cli {

// search: JSON of a query (client/search/result_json.h). A table of the matches with what they
// have of label, by its name if it has one, similarity, distance and payload. Cosines have four
// decimals, since those of `encrypted` are no more precise. metric: the collection's.
std::string MatchesText(const nlohmann::json& search, Metric metric);

// One line with its newline: guarantee, rest of the budget and bytes of the queries of a command.
// searches: JSON of each query that was answered, at least one.
std::string CostText(const std::vector<nlohmann::json>& searches);

// Says what a guarantee of epsilon above kLargeEpsilon still allows a server; empty below.
std::string AllowanceText(double epsilon);
inline constexpr double kLargeEpsilon = 8;

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_SEARCH_TEXT_H_
