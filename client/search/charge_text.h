// Texts for the searcher: how much a charge, or a budget, allows a server to learn.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_CHARGE_TEXT_H_
#define PRIVATEMAIL_CLIENT_SEARCH_CHARGE_TEXT_H_

#include <string>

#include "common/embedding/public_parameters.h"
#include "privatemail/search_request.h"

namespace privatemail::client {

// "allows the server to become e^9 = 8103 times as sure of a guess"
std::string OddsText(double epsilon);

// Says what a charge of more than kAskedEpsilon for each target allows; empty if the charge is
// less. scheme: the one that the request is searched by.
std::string ChargeText(const SearchRequest& request, Scheme scheme,
                       const PublicParameters& parameters);
inline constexpr double kAskedEpsilon = 4;

// Says what a budget of more than epsilon 20 allows; empty below.
std::string GrantText(double epsilon);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_CHARGE_TEXT_H_
