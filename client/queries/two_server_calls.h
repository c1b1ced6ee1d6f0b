// The calls of a search at two operators, as its public options alone determine them.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_TWO_SERVER_CALLS_H_
#define PRIVATEMAIL_CLIENT_QUERIES_TWO_SERVER_CALLS_H_

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "privatemail/two_server_client.h"
#include "privatemail/two_server_image.h"

namespace privatemail::client {

// Of --mode; auto is none of them.
inline const std::map<std::string, std::optional<TwoServerMode>> kTwoServerModes = {
    {"auto", std::nullopt}, {"lists", TwoServerMode::kLists}, {"scores", TwoServerMode::kScores}};

std::string NameOf(TwoServerMode mode);
std::string NameOf(Secrecy secrecy);

struct TwoServerCall {
  std::string name;            // of the RPC
  Halves<std::string> shares;  // what stands for the target in each request
  Halves<uint64_t> bytes_up;   // of each request
  uint64_t bytes_down;         // of the answer of either server
};

// In their order, the same for every target: computed without one. options: of which
// TwoServerClient::CheckOptions returns OK.
std::vector<TwoServerCall> CallsOf(const std::string& collection, const TwoServerImage& image,
                                   const TwoServerOptions& options);

// The view of each server of such a query, for `explain`. Public: it holds no share and no list.
nlohmann::json ViewsJson(const std::string& collection, const TwoServerImage& image,
                         const Halves<std::string>& addresses, const TwoServerOptions& options);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_TWO_SERVER_CALLS_H_
