// Views that either of two servers has of queries for two targets, by the production code, and
// planted faults.
//
// If section 9 of PRIVACY.md holds, every bit of a view is uniform and independent of the others,
// so the following counts are binomial with known probabilities, and public parts are equal:
//   each bit; each pair of bits (their xor); each bit and the same of the query before; the weight.
// A count of n with probability p is an alarm if n KL(count / n, p) > ln(2 M / alpha) (Chernoff),
// for M counts in all: the false-alarm probability of each view is below alpha = 1e-7, of all below
// 2e-6.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <mutex>
#include <set>

#include "client/schemes/two_server/shares.h"
#include "common/base/thread_pool.h"
#include "privatemail/two_server_client.h"
#include "tests/testing/fake_image.h"

namespace privatemail::client::two_server_audit {
namespace {

constexpr double kAlpha = 1e-7;
constexpr int kChunks = 64;

// A message to one server, apart into what is public and the bits of the share.
struct Message {
  std::string open;
  std::string bits;  // 0 or 1, one a byte
};
using View = std::vector<Message>;

const FakeImage& Fake() {
  static const FakeImage fake;
  return fake;
}

const TwoServerClient& Client() {
  static const TwoServerClient client = *TwoServerClient::Create(
      Fake().things.collection, Fake().things.chunks,
      *TwoServerImage::Create(Fake().things.parameters,
                              {Fake().Served("north"), Fake().Served("south")}),
      Fake().table);
  return client;
}

void AppendBits(const std::string& bytes, size_t count, std::string* bits) {
  const size_t begin = bits->size();
  bits->resize(begin + count);
  for (size_t i = 0; i < count; ++i) {
    (*bits)[begin + i] = static_cast<char>(static_cast<uint8_t>(bytes[i / 8]) >> (i % 8) & 1);
  }
}

Message Parts(v1::ScoreRequest request) {
  Message message;
  const std::string share = request.has_seed() ? request.seed() : request.values();
  AppendBits(share, 8 * share.size(), &message.bits);
  request.clear_share();
  message.open = "Score " + request.SerializeAsString();
  return message;
}

Message Parts(v1::FetchListsRequest request) {
  Message message;
  const size_t lists = Fake().groups[request.group()].size();
  message.open = absl::StrCat("FetchLists of ", request.selections_size(), " ");
  for (const std::string& selection : request.selections()) {
    AppendBits(selection, lists, &message.bits);
    const int beyond = static_cast<uint8_t>(selection[(lists - 1) / 8]) >> (lists - 1) % 8 >> 1;
    absl::StrAppend(&message.open, selection.size(), " bytes, ", beyond, " beyond the lists ");
  }
  request.clear_selections();
  message.open += request.SerializeAsString();
  return message;
}

// Changes of a query that the planted faults make; by default the production code's.
struct Steps {
  std::function<TwoServerOptions(const Eigen::RowVectorXf&, TwoServerOptions)> options =
      [](const auto&, TwoServerOptions given) { return given; };
  std::function<void(Halves<v1::FetchListsRequest>*)> lists = [](auto*) {};
  std::function<void(Halves<v1::FetchListsRequest>*)> payloads = [](auto*) {};
  bool stops_early = false;  // when the answers are wrong
  // The seed of a query's bits, from its number.
  std::function<uint64_t(int64_t)> seed = nullptr;
};

struct Experiment {
  TwoServerOptions options;
  Steps steps = {};
  int64_t wrong_list = -1;  // the answer is wrong if this list is fetched
};

Halves<View> Query(const Experiment& experiment, const Eigen::RowVectorXf& target, int64_t number,
                   BitSource& given) {
  const Steps& steps = experiment.steps;
  std::optional<SeededBits> own;
  if (steps.seed) own.emplace(steps.seed(number));
  BitSource& bits = own.has_value() ? *own : given;
  PreparedTwoServerQuery query =
      *Client().Prepare(target, steps.options(target, experiment.options), nullptr, bits);
  Halves<View> views;
  const auto see = [&](const auto& requests) {
    views.a.push_back(Parts(requests.a));
    views.b.push_back(Parts(requests.b));
  };
  auto* fetches = std::get_if<Halves<v1::FetchListsRequest>>(&query.requests);
  if (fetches != nullptr) steps.lists(fetches);
  std::visit(see, query.requests);
  if (!experiment.options.with_payloads) return views;

  Halves<std::string> answers =
      std::visit([](const auto& requests) { return Fake().Answers(requests); }, query.requests);
  const std::vector<int64_t>& lists = query.state.lists();
  const bool wrong = std::find(lists.begin(), lists.end(), experiment.wrong_list) != lists.end();
  if (wrong) answers.a[5] = static_cast<char>(answers.a[5] ^ 1);
  auto payloads = *Client().Rank(answers, &query.state, bits);
  if (steps.stops_early && wrong) return views;
  steps.payloads(&*payloads);
  see(*payloads);
  return views;
}

// The bits of many views of one server: plane[bit] holds bit number `view` of every view.
struct Planes {
  int64_t views = 0;
  std::set<std::string> shapes;  // public parts, numbers and sizes of messages
  std::vector<std::vector<uint64_t>> planes;
  std::vector<int64_t> weights;
};

std::string ShapeOf(const View& view) {
  std::string shape;
  for (const Message& message : view)
    absl::StrAppend(&shape, message.bits.size(), " ", message.open, "\n");
  return shape;
}

class Collector {
 public:
  explicit Collector(int64_t views) { planes_.views = views; }

  // number: from 0; concurrent calls are for different words of the planes.
  void Add(const View& view, int64_t number) {
    std::string bits;
    for (const Message& message : view) bits += message.bits;
    const std::string shape = ShapeOf(view);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (planes_.shapes.insert(shape).second && planes_.shapes.size() == 1) {
        words_.assign(static_cast<size_t>((planes_.views + 63) / 64),
                      std::vector<uint64_t>(bits.size()));
        planes_.weights.assign(bits.size() + 1, 0);
      }
      if (bits.size() + 1 != planes_.weights.size()) return;
      ++planes_.weights[static_cast<size_t>(std::count(bits.begin(), bits.end(), 1))];
    }
    std::vector<uint64_t>& word = words_[static_cast<size_t>(number / 64)];
    for (size_t bit = 0; bit < bits.size(); ++bit) {
      word[bit] |= static_cast<uint64_t>(bits[bit]) << (number % 64);
    }
  }

  Planes Take() {
    planes_.planes.assign(words_.front().size(), std::vector<uint64_t>(words_.size()));
    for (size_t word = 0; word < words_.size(); ++word) {
      for (size_t bit = 0; bit < words_[word].size(); ++bit) {
        planes_.planes[bit][word] = words_[word][bit];
      }
    }
    return std::move(planes_);
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<uint64_t>> words_;  // of 64 views each: a word of every plane
  Planes planes_;
};

// The largest n KL(count / n, p) of all counts, and how many there were.
class Alarms {
 public:
  void Offer(int64_t count, int64_t n, double p) {
    const double share = static_cast<double>(count) / static_cast<double>(n);
    const auto term = [](double x, double y) { return x == 0 ? 0 : x * std::log(x / y); };
    largest_ =
        std::max(largest_, static_cast<double>(n) * (term(share, p) + term(1 - share, 1 - p)));
    ++counts_;
  }
  void Merge(const Alarms& other) {
    largest_ = std::max(largest_, other.largest_);
    counts_ += other.counts_;
  }
  bool Sounds() const { return largest_ > Bound(); }
  double largest() const { return largest_; }
  double Bound() const { return std::log(2 * static_cast<double>(counts_) / kAlpha); }

 private:
  double largest_ = 0;
  int64_t counts_ = 0;
};

Alarms TestUniform(const Planes& seen) {
  const std::vector<std::vector<uint64_t>>& planes = seen.planes;
  const auto ones = [](const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
    int64_t count = 0;
    for (size_t i = 0; i < a.size(); ++i) count += std::popcount(a[i] ^ b[i]);
    return count;
  };
  std::mutex mutex;
  Alarms all;
  const std::vector<uint64_t> zero(planes.front().size());
  ParallelFor(static_cast<int>(planes.size()), [&](int bit) {
    Alarms own;
    const std::vector<uint64_t>& plane = planes[static_cast<size_t>(bit)];
    own.Offer(ones(plane, zero), seen.views, .5);
    // Moved by one view; the first has none before it.
    std::vector<uint64_t> before(plane.size());
    for (size_t i = 0; i < plane.size(); ++i) {
      before[i] = plane[i] << 1 | (i == 0 ? plane[0] & 1 : plane[i - 1] >> 63);
    }
    const int64_t rest = seen.views % 64;
    if (rest != 0) before.back() &= (uint64_t{1} << rest) - 1;
    own.Offer(ones(plane, before), seen.views - 1, .5);
    for (size_t other = static_cast<size_t>(bit) + 1; other < planes.size(); ++other) {
      own.Offer(ones(plane, planes[other]), seen.views, .5);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    all.Merge(own);
  });
  const auto bits = static_cast<double>(planes.size());
  for (size_t weight = 0; weight < seen.weights.size(); ++weight) {
    const auto w = static_cast<double>(weight);
    const double log_p = std::lgamma(bits + 1) - std::lgamma(w + 1) - std::lgamma(bits - w + 1) -
                         bits * std::log(2.);
    all.Offer(seen.weights[weight], seen.views, std::exp(log_p));
  }
  return all;
}

// The first is near the cell of list 0 and finds items that share a list of payloads; the other is
// not and does not.
std::vector<Eigen::RowVectorXf> TwoTargets() {
  std::vector<Eigen::RowVectorXf> targets(2);
  for (unsigned seed = 1; targets[0].size() == 0 || targets[1].size() == 0; ++seed) {
    const Eigen::RowVectorXf target = NormalRows(1, PublishedThings::kDim, seed);
    SeededBits bits(1);
    PreparedTwoServerQuery query =
        *Client().Prepare(target, {.lists = 2, .k = 3, .with_payloads = true}, nullptr, bits);
    const auto& lists = std::get<Halves<v1::FetchListsRequest>>(query.requests);
    const auto payloads = *Client().Rank(Fake().Answers(lists), &query.state, bits);
    std::set<std::string> fetched;
    for (int i = 0; i < payloads->a.selections_size(); ++i) {
      fetched.insert(XorBytes(payloads->a.selections(i), payloads->b.selections(i)));
    }
    const bool near = query.state.lists().front() == 0;
    if (near && fetched.size() < 3) targets[0] = target;
    if (!near && fetched.size() == 3) targets[1] = target;
  }
  return targets;
}

// Empty: nothing can be told. Otherwise what told the targets apart, or a view from uniform bits.
std::string Distinguish(const Experiment& experiment, int64_t views) {
  Halves<std::set<std::string>> shapes;
  std::vector<Alarms> alarms;
  for (const Eigen::RowVectorXf& target : TwoTargets()) {
    Collector a(views);
    Collector b(views);
    // Whole words of the planes are written by one task.
    const int64_t per_chunk = (views / kChunks + 64) / 64 * 64;
    ParallelFor(kChunks, [&](int chunk) {
      SeededBits bits(SeedOf("two-server views", static_cast<uint64_t>(chunk), alarms.size()));
      for (int64_t i = chunk * per_chunk; i < std::min(views, (chunk + 1) * per_chunk); ++i) {
        const Halves<View> seen = Query(experiment, target, i, bits);
        a.Add(seen.a, i);
        b.Add(seen.b, i);
      }
    });
    for (auto& [collector, known] : {std::pair{&a, &shapes.a}, {&b, &shapes.b}}) {
      const Planes planes = collector->Take();
      known->insert(planes.shapes.begin(), planes.shapes.end());
      alarms.push_back(TestUniform(planes));
    }
  }
  if (shapes.a.size() != 1 || shapes.b.size() != 1) {
    return absl::StrCat("numbers or sizes of messages: ", shapes.a.size(), " and ", shapes.b.size(),
                        " shapes");
  }
  std::string told;
  for (const Alarms& one : alarms) {
    if (one.Sounds()) absl::StrAppend(&told, "bits: ", one.largest(), " > ", one.Bound(), "; ");
  }
  return told;
}

constexpr int64_t kViews = 1'000'000;
constexpr int64_t kFaultViews = 20'000;

const TwoServerOptions kScores = {.mode = TwoServerMode::kScores, .k = 3};
const TwoServerOptions kLists = {.lists = 2, .k = 3};

TwoServerOptions WithPayloads(TwoServerOptions options) {
  options.with_payloads = true;
  return options;
}

TEST(TwoServerAudit, ScoresTellNeitherServerAnything) {
  EXPECT_EQ(Distinguish({.options = kScores}, kViews), "");
}

TEST(TwoServerAudit, ListsTellNeitherServerAnything) {
  EXPECT_EQ(Distinguish({.options = kLists}, kViews), "");
}

TEST(TwoServerAudit, PayloadsAfterScoresTellNeitherServerAnything) {
  EXPECT_EQ(Distinguish({.options = WithPayloads(kScores)}, kViews), "");
}

TEST(TwoServerAudit, PayloadsAfterListsTellNeitherServerAnything) {
  EXPECT_EQ(Distinguish({.options = WithPayloads(kLists)}, kViews), "");
}

// A server that is wrong for one list sees no more than one that is right.
TEST(TwoServerAudit, SelectiveFailureTellsNothingDuringTheQuery) {
  EXPECT_EQ(Distinguish({.options = WithPayloads(kLists), .wrong_list = 0}, kViews), "");
}

void ExpectCaught(const Experiment& experiment, const std::string& by) {
  EXPECT_THAT(Distinguish(experiment, kFaultViews), ::testing::HasSubstr(by));
}

TEST(TwoServerAudit, DetectsShareUsedForTwoQueries) {
  const auto seed = [](int64_t number) {
    return SeedOf("reused", static_cast<uint64_t>(number / 2));
  };
  ExpectCaught({.options = kScores, .steps = {.seed = seed}}, "bits");
  ExpectCaught({.options = kLists, .steps = {.seed = seed}}, "bits");
}

TEST(TwoServerAudit, DetectsConstantSeed) {
  const auto seed = [](int64_t /*number*/) { return uint64_t{1}; };
  ExpectCaught({.options = kScores, .steps = {.seed = seed}}, "bits");
  ExpectCaught({.options = kLists, .steps = {.seed = seed}}, "bits");
}

TEST(TwoServerAudit, DetectsSelectionSentToBoth) {
  const auto plain = [](Halves<v1::FetchListsRequest>* requests) {
    for (int i = 0; i < requests->a.selections_size(); ++i) {
      const std::string selection = XorBytes(requests->a.selections(i), requests->b.selections(i));
      requests->a.set_selections(i, selection);
      requests->b.set_selections(i, selection);
    }
  };
  ExpectCaught({.options = kLists, .steps = {.lists = plain}}, "bits");
}

// A fault in the first selection to server A if it fetches list 0.
void ExpectCaughtInSelectionOfFirstList(const std::function<void(std::string*)>& fault) {
  const auto lists = [&fault](Halves<v1::FetchListsRequest>* requests) {
    const std::string selection = XorBytes(requests->a.selections(0), requests->b.selections(0));
    if ((selection[0] & 1) != 0) fault(requests->a.mutable_selections(0));
  };
  ExpectCaught({.options = kLists, .steps = {.lists = lists}}, "numbers or sizes");
}

TEST(TwoServerAudit, DetectsLengthOfSelectionThatDependsOnTarget) {
  ExpectCaughtInSelectionOfFirstList([](std::string* selection) { selection->push_back('\0'); });
}

TEST(TwoServerAudit, DetectsBitBeyondTheListsThatDependsOnTarget) {
  ExpectCaughtInSelectionOfFirstList([](std::string* selection) {
    selection->back() = static_cast<char>(selection->back() | 0x80);
  });
}

TEST(TwoServerAudit, DetectsNumberOfListsThatDependsOnTarget) {
  const Eigen::RowVectorXf first = TwoTargets().front();
  const auto depends = [first](const Eigen::RowVectorXf& target, TwoServerOptions options) {
    options.lists = target == first ? 2 : 3;
    return options;
  };
  ExpectCaught({.options = kLists, .steps = {.options = depends}}, "numbers or sizes");
}

TEST(TwoServerAudit, DetectsEarlyStopAtWrongAnswer) {
  ExpectCaught({.options = WithPayloads(kLists), .steps = {.stops_early = true}, .wrong_list = 0},
               "numbers or sizes");
}

TEST(TwoServerAudit, DetectsFewerPayloadFetchesOfSharedLists) {
  const auto once = [](Halves<v1::FetchListsRequest>* requests) {
    std::set<std::string> known;
    Halves<v1::FetchListsRequest> kept = *requests;
    kept.a.clear_selections();
    kept.b.clear_selections();
    for (int i = 0; i < requests->a.selections_size(); ++i) {
      const std::string& a = requests->a.selections(i);
      const std::string& b = requests->b.selections(i);
      if (!known.insert(XorBytes(a, b)).second) continue;
      kept.a.add_selections(a);
      kept.b.add_selections(b);
    }
    *requests = std::move(kept);
  };
  ExpectCaught({.options = WithPayloads(kLists), .steps = {.payloads = once}}, "numbers or sizes");
}

}  // namespace
}  // namespace privatemail::client::two_server_audit
