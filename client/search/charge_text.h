// Texts for the searcher: how much a charge, or a budget, allows a server to learn.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_CHARGE_TEXT_H_
#define PRIVATEMAIL_CLIENT_SEARCH_CHARGE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/embedding/public_parameters.h"
#include "privatemail/search_request.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// "allows the server to become e^9 = 8103 times as sure of a guess"
std::string OddsText(double epsilon);

// Says what a charge of more than kAskedEpsilon for each target allows, and what it buys; empty if
// the charge is less. Targets are not read. scheme: the one that the request is searched by.
// published: the collection with its quality, which tells the expected recall of cells.
// recall: of Expectation.
std::string ChargeText(const SearchRequest& request, Scheme scheme,
                       const PublicParameters& parameters,
                       const v1::GetCollectionResponse& published,
                       std::optional<double> recall = std::nullopt);
inline constexpr double kAskedEpsilon = 4;

// The bytes of a joint query's message and of its answer without payloads.
int64_t JointBytes(const PublicParameters& parameters, int64_t k);

// Says what a budget of more than epsilon 20 allows; empty below.
std::string GrantText(double epsilon);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_CHARGE_TEXT_H_
