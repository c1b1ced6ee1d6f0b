// The trace of searches: number, order, sizes and times of the messages that a server sees depend
// on neither targets nor answers.

#include <algorithm>
#include <filesystem>
#include <future>
#include <map>

#include "client/search/departures.h"
#include "privatemail/search.h"
#include "tests/unit/client/search/encrypted_server.h"

namespace privatemail::client::trace_test {
namespace {

constexpr int kTargets = 1000;
constexpr int kDim = 16;

enum class Kind { kHonest, kRandom, kZero, kTruncated };

// One message of a search, as the server sees it.
struct Message {
  std::string call;
  size_t bytes;

  bool operator==(const Message&) const = default;
};
using Trace = std::vector<Message>;

struct Traces {
  std::map<std::string, int> distinct;  // how many searches had this trace, as text
  // From an answer's end to the next search, by the class of the nearest item of that answer.
  std::map<int32_t, std::vector<double>> gap_ms;
  double end_ms = 0;  // from the last answer to the end of the client
  int failed = 0;
};

std::string ToText(const Trace& trace) {
  std::string text;
  for (const Message& message : trace)
    absl::StrAppend(&text, message.call, " ", message.bytes, "; ");
  return text;
}

EncryptedServer::Answer Changed(Kind kind, EncryptedServer::Answer answer, BitSource& bits) {
  std::string* scores = answer.back().mutable_scores()->mutable_answers();
  switch (kind) {
    case Kind::kHonest:
      break;
    case Kind::kRandom:
      EXPECT_THAT(
          bits.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(scores->data()), scores->size())),
          IsOk());
      break;
    case Kind::kZero:
      std::fill(scores->begin(), scores->end(), '\0');
      break;
    case Kind::kTruncated:
      scores->resize(scores->size() - 1);
      break;
  }
  return answer;
}

// Searches for each target in turn, after a first search that brings keys and table.
Traces TracesOf(Kind kind) {
  const FloatMatrix features = NormalRows(300, kDim, 1);
  EncryptedThings things(features);
  EncryptedServer server(&things);
  SecureBits bits;
  TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  auto client =
      *SearchClient::Connect({.connection = server.options, .state_folder = folder.path()});
  const auto search = [&](const Eigen::RowVectorXf& target) {
    return client->Search({.collection = "things", .targets = {{.features = target}}});
  };
  absl::StatusOr<SearchResponse> answer = search(features.row(0));
  EXPECT_THAT(answer, IsOk());
  auto last = server.TakeSeen().back();
  server.answer = [&](const v1::SearchEncryptedRequest& request) {
    return Changed(kind, things.Answer(request), bits);
  };
  Traces traces;
  for (int i = 0; i < kTargets; ++i) {
    // Some are items themselves, whose scores are extreme; others are random.
    Eigen::RowVectorXf target = NormalRows(1, kDim, 500 + i);
    if (i % 3 == 0) target = features.row(i % 300);
    const int32_t nearest = answer.ok() ? answer->results[0].matches[0].label : 0;
    answer = search(target);
    if (kind == Kind::kTruncated) {
      EXPECT_THAT(answer, FailsWith(kDataLoss, "scores.answers must have 9216 bytes"));
    }
    traces.failed += answer.ok() ? 0 : 1;
    Trace trace;
    const auto seen = server.TakeSeen();
    for (const auto& one : seen) trace.push_back({one.call, one.bytes.size()});
    ++traces.distinct[ToText(trace)];
    traces.gap_ms[nearest].push_back(
        std::chrono::duration<double, std::milli>(seen.front().arrived - last.answered).count());
    last = seen.back();
  }
  client = nullptr;
  traces.end_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - last.answered)
          .count();
  return traces;
}

// The value that a tenth are below. Other work on the machine delays most messages, but not all; a
// delay by what was decrypted would be in every one of them.
double LowestTenth(std::vector<double> values) {
  const auto tenth = values.begin() + std::ssize(values) / 10;
  std::nth_element(values.begin(), tenth, values.end());
  return *tenth;
}

// A search leaves one interval of 10 ms after the last answer: never before, and rarely an interval
// later, since ranking, which depends on what was decrypted, takes less. On a busy machine messages
// arrive some milliseconds after they left.
TEST(Trace, NumberOrderSizesAndGapsOfMessagesDoNotDependOnTargetsOrAnswers) {
  std::map<Kind, std::future<Traces>> runs;
  for (const Kind kind : {Kind::kHonest, Kind::kRandom, Kind::kZero, Kind::kTruncated}) {
    runs[kind] = std::async(std::launch::async, TracesOf, kind);
  }
  std::map<std::string, int> of_honest;
  const double interval = static_cast<double>(SearchInterval({}).count());
  for (auto& [kind, run] : runs) {
    const Traces traces = run.get();
    EXPECT_EQ(traces.distinct.size(), 1U) << traces.distinct.begin()->first;
    if (kind == Kind::kHonest) of_honest = traces.distinct;
    EXPECT_EQ(traces.distinct, of_honest);
    EXPECT_EQ(traces.failed, kind == Kind::kTruncated ? kTargets : 0);
    EXPECT_GE(traces.end_ms, interval);
    for (const auto& [nearest, gaps] : traces.gap_ms) {
      EXPECT_GE(*std::min_element(gaps.begin(), gaps.end()), interval) << nearest;
      std::vector<double> lateness;
      for (const double gap : gaps) lateness.push_back(gap - interval);
      EXPECT_LT(LowestTenth(lateness), interval) << static_cast<int>(kind) << ", " << nearest;
    }
  }
}

}  // namespace
}  // namespace privatemail::client::trace_test
