#include "client/queries/two_server_calls.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/image/image_header.h"
#include "common/image/score_shares.h"
#include "common/wire/codec.h"

namespace privatemail::client {
namespace {

// The share's bytes do not matter: only their number does.
template <typename Request>
Request RequestOf(const std::string& collection, const TwoServerImage& image) {
  Request request;
  request.set_collection(collection);
  request.set_digest(image.digest());
  return request;
}

TwoServerCall ScoreCall(const std::string& collection, const TwoServerImage& image) {
  const uint32_t words = image.header().feature_dim();
  Halves<v1::ScoreRequest> requests = {RequestOf<v1::ScoreRequest>(collection, image),
                                       RequestOf<v1::ScoreRequest>(collection, image)};
  requests.a.set_seed(std::string(kScoreSeedBytes, '\0'));
  requests.b.set_values(std::string(words * sizeof(uint32_t), '\0'));
  return {.name = "Score",
          .shares = {absl::StrCat("a seed of ", kScoreSeedBytes, " uniform bytes"),
                     absl::StrCat(words,
                                  " words of 32 bits: the query minus what the seed expands to, "
                                  "uniform for whoever lacks the seed")},
          .bytes_up = {requests.a.ByteSizeLong(), requests.b.ByteSizeLong()},
          .bytes_down = image.AnswerBytes(requests.a)};
}

TwoServerCall FetchCall(const std::string& collection, const TwoServerImage& image, uint32_t group,
                        int64_t fetches) {
  const uint32_t lists = FindListGroup(image.header(), group)->lists();
  auto request = RequestOf<v1::FetchListsRequest>(collection, image);
  request.set_group(group);
  for (int64_t i = 0; i < fetches; ++i) request.add_selections(std::string((lists + 7) / 8, '\0'));
  const std::string share =
      absl::StrCat(fetches, " selections of ", lists, " bits, each bit a fair coin");
  const uint64_t bytes = request.ByteSizeLong();
  return {.name = "FetchLists",
          .shares = {share, share},
          .bytes_up = {bytes, bytes},
          .bytes_down = image.AnswerBytes(request)};
}

}  // namespace

std::string NameOf(TwoServerMode mode) {
  return mode == TwoServerMode::kScores ? "scores" : "lists";
}

std::string NameOf(Secrecy secrecy) {
  return secrecy == Secrecy::kPerfect ? "perfect" : "computational";
}

std::vector<TwoServerCall> CallsOf(const std::string& collection, const TwoServerImage& image,
                                   const TwoServerOptions& options) {
  std::vector<TwoServerCall> calls;
  if (options.mode == TwoServerMode::kScores) {
    calls.push_back(ScoreCall(collection, image));
  } else {
    calls.push_back(
        FetchCall(collection, image, static_cast<uint32_t>(options.partition), options.lists));
  }
  if (options.with_payloads && image.header().has_payloads()) {
    calls.push_back(FetchCall(collection, image, PayloadGroup(image.header()), options.k));
  }
  return calls;
}

nlohmann::json ViewsJson(const std::string& collection, const TwoServerImage& image,
                         const Halves<std::string>& addresses, const TwoServerOptions& options) {
  Halves<nlohmann::json> calls = {nlohmann::json::array(), nlohmann::json::array()};
  for (const TwoServerCall& call : CallsOf(collection, image, options)) {
    calls.a.push_back({{"call", call.name}, {"share", call.shares.a}, {"bytes", call.bytes_up.a}});
    calls.b.push_back({{"call", call.name}, {"share", call.shares.b}, {"bytes", call.bytes_up.b}});
  }
  return {{"collection", collection},
          {"digest", ToHex(image.header().fingerprint())},
          {"scheme", "two-server"},
          {"mode", NameOf(options.mode)},
          {"image", ToHex(image.digest())},
          {"servers",
           {{{"server", addresses.a}, {"operator", image.operators().a}, {"calls", calls.a}},
            {{"server", addresses.b}, {"operator", image.operators().b}, {"calls", calls.b}}}}};
}

}  // namespace privatemail::client
