// Processor and wall time of an image's answers; baseline: plain loops with the same
// multiplications or xors over the same memory.
//
// usage: image_benchmark [ITEMS [DIM [LISTS [LIST_ITEMS]]]]    1,000,000 x 128, 4,096 lists of 200
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/sha256.h"
#include "common/base/thread_pool.h"
#include "common/image/image_header.h"
#include "common/image/item_list.h"
#include "common/image/score_shares.h"
#include "server/image/image.h"
#include "server/image/shared_pass.h"
#include "tests/benchmarks/verdict.h"

namespace privatemail::server {
namespace {

constexpr int kPairs = 7;                   // of interleaved runs
constexpr int kCallers = 16, kQueries = 3;  // of a caller, one after the other
constexpr size_t kFetches = 8;
constexpr uint32_t kCodeBytes = 32, kIdBytes = 8;
constexpr double kMaxRatio = 1.3, kMinGain = 2;

struct Sizes {
  uint64_t items = 1'000'000;
  uint32_t dim = 128, lists = 4096, list_items = 200;
};

struct Seconds {
  double wall = 0, processor = 0;
};

double ProcessorSeconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
Seconds Time(const Work& work) {
  const double processor = ProcessorSeconds();
  const auto start = std::chrono::steady_clock::now();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          ProcessorSeconds() - processor};
}

Seconds Median(std::vector<Seconds> runs) {
  const auto middle = [&](double Seconds::*field) {
    std::sort(runs.begin(), runs.end(),
              [&](const Seconds& a, const Seconds& b) { return a.*field < b.*field; });
    return runs[runs.size() / 2].*field;
  };
  return {middle(&Seconds::wall), middle(&Seconds::processor)};
}

// Medians of works that take turns.
std::vector<Seconds> Interleave(const std::vector<std::function<void()>>& works) {
  std::vector<std::vector<Seconds>> runs(works.size());
  for (int pair = 0; pair < kPairs; ++pair) {
    for (size_t i = 0; i < works.size(); ++i) runs[i].push_back(Time(works[i]));
  }
  std::vector<Seconds> medians;
  for (const auto& of_work : runs) medians.push_back(Median(of_work));
  return medians;
}

std::string RandomBytes(size_t count, std::mt19937_64* bits) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*bits)());
  return bytes;
}

std::shared_ptr<const Image> MakeRandomImage(const Sizes& sizes) {
  std::mt19937_64 bits(1);
  ImageParts parts;
  v1::ImageHeader header;
  const auto add = [&](v1::ImageSection section, std::string bytes) {
    v1::ImageSectionHeader* added = header.add_sections();
    added->set_section(section);
    added->set_bytes(bytes.size());
    added->set_sha256(Sha256::Of(bytes));
    parts.sections.push_back(std::move(bytes));
  };
  header.set_version(kImageVersion);
  header.set_fingerprint(std::string(32, 'f'));
  header.set_items(sizes.items);
  header.set_feature_dim(sizes.dim);
  header.set_id_bytes(kIdBytes);
  header.set_code_bytes(kCodeBytes);
  header.set_has_scores(true);
  v1::ListGroup* group = header.add_partitions();
  group->set_lists(sizes.lists);
  group->set_rows(sizes.list_items);
  group->set_list_bytes(kListChecksumBytes +
                        sizes.list_items * ItemRecordBytes(kIdBytes, kCodeBytes));
  {
    v1::ImageTable table;
    for (uint64_t row = 0; row < sizes.items; ++row) {
      table.add_ids(absl::StrCat(10'000'000 + row));
      table.add_labels(0);
    }
    add(v1::IMAGE_SECTION_TABLE, table.SerializeAsString());
  }
  add(v1::IMAGE_SECTION_CODES, RandomBytes(sizes.items * kCodeBytes, &bits));
  std::vector<uint32_t> rows(size_t{sizes.lists} * sizes.list_items);
  for (uint32_t& row : rows) row = static_cast<uint32_t>(bits() % sizes.items);
  add(v1::IMAGE_SECTION_LISTS,
      {reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(uint32_t)});
  add(v1::IMAGE_SECTION_SCORES, RandomBytes(sizes.items * sizes.dim * sizeof(int16_t), &bits));
  parts.header = header.SerializeAsString();
  return Image::Create(std::move(parts)).value();
}

std::vector<uint32_t> RandomShare(uint32_t dim, uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::vector<uint32_t> share(dim);
  for (uint32_t& word : share) word = static_cast<uint32_t>(bits());
  return share;
}

std::vector<std::string> RandomSelections(uint32_t lists, uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::vector<std::string> selections;
  for (size_t i = 0; i < kFetches; ++i) {
    std::string selection = RandomBytes((lists + 7) / 8, &bits);
    if (lists % 8 != 0) {
      selection.back() = static_cast<char>(selection.back() & ((1 << lists % 8) - 1));
    }
    selections.push_back(std::move(selection));
  }
  return selections;
}

// The baseline: every product of a word and an int16, rows shared out among the cores.
std::string PlainScores(const Image& image, const std::vector<uint32_t>& share) {
  const size_t items = image.header().items(), dim = image.header().feature_dim();
  constexpr size_t kRows = 4096;
  std::string scores(items * kScoreBytes, '\0');
  ParallelFor(static_cast<int>((items + kRows - 1) / kRows), [&](int part) {
    const size_t first = static_cast<size_t>(part) * kRows;
    for (size_t row = first; row < std::min(first + kRows, items); ++row) {
      const int16_t* values = image.scores() + row * dim;
      uint32_t sum = 0;
      for (size_t i = 0; i < dim; ++i) sum += share[i] * static_cast<uint32_t>(values[i]);
      const uint32_t score = SentScore(sum);
      for (size_t byte = 0; byte < kScoreBytes; ++byte) {
        scores[row * kScoreBytes + byte] = static_cast<char>(score >> (8 * byte));
      }
    }
  });
  return scores;
}

// The baseline: every list under the mask of its bit, selections shared out among the cores.
std::string PlainLists(const Image& image, const std::vector<std::string>& selections) {
  const v1::ListGroup& of = image.header().partitions(0);
  std::string answer(selections.size() * of.list_bytes(), '\0');
  ParallelFor(static_cast<int>(selections.size()), [&](int fetch) {
    const auto index = static_cast<size_t>(fetch);
    const size_t bytes = of.list_bytes();
    char* const out = answer.data() + index * bytes;
    for (size_t list = 0; list < of.lists(); ++list) {
      const int bit = (selections[index][list / 8] >> (list % 8)) & 1;
      const char mask = static_cast<char>(-bit);
      const char* const in = image.lists(0).data() + list * bytes;
      for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(out[i] ^ (in[i] & mask));
    }
  });
  return answer;
}

void PrintRatio(const char* what, const Seconds& ours, const Seconds& plain) {
  std::printf(
      "%s: %.1f ms, processor %.1f ms; plain loop %.1f ms, processor %.1f ms: %.2f times "
      "the wall time, %.2f the processor time (target at most %.1f: %s)\n",
      what, 1e3 * ours.wall, 1e3 * ours.processor, 1e3 * plain.wall, 1e3 * plain.processor,
      ours.wall / plain.wall, ours.processor / plain.processor, kMaxRatio,
      Verdict(ours.processor <= kMaxRatio * plain.processor));
}

// The queries of kCallers callers at once, and of one caller.
template <typename Call>
void MeasureSharing(const char* what, const Call& call) {
  const auto alone = [&] {
    for (int query = 0; query < kQueries; ++query) call(query);
  };
  const auto together = [&] {
    std::vector<std::future<void>> calls;
    for (int caller = 0; caller < kCallers; ++caller) {
      calls.push_back(std::async(std::launch::async, [&, caller] {
        for (int query = 0; query < kQueries; ++query) call(kQueries * caller + query);
      }));
    }
    for (auto& one : calls) one.get();
  };
  const std::vector<Seconds> times = Interleave({together, alone});
  const double queries = kCallers * kQueries;
  const double rate = queries / times[0].wall, alone_rate = kQueries / times[1].wall;
  const double processor = times[0].processor / queries;
  const double alone_processor = times[1].processor / kQueries;
  std::printf(
      "%s: %d callers %.0f queries a second, processor %.1f ms each; one caller %.0f, "
      "processor %.1f ms each: %.2f times the rate (target at least %.0f: %s), %.2f of the "
      "processor time\n",
      what, kCallers, rate, 1e3 * processor, alone_rate, 1e3 * alone_processor, rate / alone_rate,
      kMinGain, Verdict(rate >= kMinGain * alone_rate), processor / alone_processor);
}

void PrintShares(const char* what, const std::vector<Seconds>& times) {
  std::printf("%s by share, processor: random %.2f ms, zeros %.2f times, ones %.2f times\n", what,
              1e3 * times[0].processor, times[1].processor / times[0].processor,
              times[2].processor / times[0].processor);
}

int Measure(const Sizes& sizes) {
  const auto image = MakeRandomImage(sizes);
  SharedPass pass(image);
  std::printf(
      "n %llu, d %u, K %u lists of %llu bytes, %.0f MB in memory; %zu lists a query; "
      "medians of %d interleaved runs\n",
      static_cast<unsigned long long>(sizes.items), sizes.dim, sizes.lists,
      static_cast<unsigned long long>(image->header().partitions(0).list_bytes()),
      1e-6 * static_cast<double>(image->memory()), kFetches, kPairs);
  const std::vector<uint32_t> share = RandomShare(sizes.dim, 2);
  const std::vector<std::string> selections = RandomSelections(sizes.lists, 3);
  if (*pass.Scores(share, nullptr) != PlainScores(*image, share) ||
      *pass.Lists(0, selections, nullptr) != PlainLists(*image, selections)) {
    std::puts("answers differ from those of the plain loops");
    return 1;
  }
  const auto scores = [&](const std::vector<uint32_t>& of) { pass.Scores(of, nullptr).value(); };
  const auto lists = [&](const std::vector<std::string>& of) {
    pass.Lists(0, of, nullptr).value();
  };
  std::vector<Seconds> times =
      Interleave({[&] { scores(share); }, [&] { PlainScores(*image, share); }});
  PrintRatio("scores of a query", times[0], times[1]);
  times = Interleave({[&] { lists(selections); }, [&] { PlainLists(*image, selections); }});
  PrintRatio("lists of a query", times[0], times[1]);

  MeasureSharing(
      "scores", [&](int caller) { scores(RandomShare(sizes.dim, static_cast<uint64_t>(caller))); });
  MeasureSharing("lists", [&](int caller) {
    lists(RandomSelections(sizes.lists, static_cast<uint64_t>(caller)));
  });

  const std::vector<uint32_t> zeros(sizes.dim), ones(sizes.dim, ~uint32_t{0});
  PrintShares("scores",
              Interleave({[&] { scores(share); }, [&] { scores(zeros); }, [&] { scores(ones); }}));
  std::string all((sizes.lists + 7) / 8, '\xff');
  if (sizes.lists % 8 != 0) all.back() = static_cast<char>((1 << sizes.lists % 8) - 1);
  const std::vector<std::string> none_selected(kFetches, std::string(all.size(), '\0'));
  const std::vector<std::string> all_selected(kFetches, all);
  PrintShares("lists", Interleave({[&] { lists(selections); }, [&] { lists(none_selected); },
                                   [&] { lists(all_selected); }}));
  return 0;
}

}  // namespace
}  // namespace privatemail::server

int main(int argc, char** argv) {
  privatemail::server::Sizes sizes;
  if (argc > 1) sizes.items = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2) sizes.dim = static_cast<uint32_t>(std::atoi(argv[2]));
  if (argc > 3) sizes.lists = static_cast<uint32_t>(std::atoi(argv[3]));
  if (argc > 4) sizes.list_items = static_cast<uint32_t>(std::atoi(argv[4]));
  return privatemail::server::Measure(sizes);
}
