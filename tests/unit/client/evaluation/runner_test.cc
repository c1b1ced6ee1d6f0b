#include "client/evaluation/runner.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/evaluation/experiments/experiments.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

// Jobs 0 .. count - 1, each of which counts its runs and gives its number; the figure is their sum.
Experiment Counting(int count, std::atomic<int>* runs, absl::Status (*fails)(int) = nullptr) {
  Experiment experiment;
  experiment.name = "counting";
  for (int i = 0; i < count; ++i) {
    const auto run = [i, runs, fails]() -> absl::StatusOr<JobResult> {
      ++*runs;
      if (fails != nullptr && !fails(i).ok()) return fails(i);
      return JobResult{{"number", {i + .1}}};
    };
    experiment.jobs.push_back({.key = std::to_string(i), .run = run});
  }
  experiment.draw = [](const std::vector<JobResult>& results) {
    Figure figure;
    for (const JobResult& result : results) {
      figure.words.push_back(std::to_string(result.at("number")[0]));
    }
    return std::vector<Figure>{figure};
  };
  return experiment;
}

TEST(Runner, GoesOnWhereItWasInterrupted) {
  const TemporaryFolder folder;
  const RunOptions options{.folder = folder.path(), .study = "s"};
  std::atomic<int> runs = 0;
  EXPECT_THAT(RunExperiments({Counting(4, &runs,
                                       [](int i) {
                                         return i == 3 ? absl::UnavailableError("pulled the plug")
                                                       : absl::OkStatus();
                                       })},
                             options),
              FailsWith(absl::StatusCode::kUnavailable, "counting, 3: pulled the plug"));
  runs = 0;
  ASSERT_OK_AND_ASSIGN(const std::vector<Figure> figures,
                       RunExperiments({Counting(4, &runs)}, options));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(figures[0].words.size(), 4u);
}

TEST(Runner, RunsAgainWhatBelongsToAnotherStudyOrIsDamaged) {
  const TemporaryFolder folder;
  std::atomic<int> runs = 0;
  const auto run = [&](const std::string& study) {
    runs = 0;
    EXPECT_THAT(RunExperiments({Counting(2, &runs)}, {.folder = folder.path(), .study = study}),
                IsOk());
    return runs.load();
  };
  EXPECT_EQ(run("one"), 2);
  EXPECT_EQ(run("other"), 2);
  EXPECT_EQ(run("one"), 0);
  for (const auto& file : std::filesystem::directory_iterator(folder / "jobs")) {
    std::ofstream(file.path()) << "{\"settings\": \"";
  }
  EXPECT_EQ(run("one"), 2);
  for (const auto& file : std::filesystem::directory_iterator(folder / "jobs")) {
    std::ofstream(file.path()) << "{\"settings\": \"one\\ncounting: 0\", \"result\": 3}";
  }
  EXPECT_EQ(run("one"), 2);
}

// A job whose noise cannot be made, or whose result is no number, ends no run.
TEST(Runner, HandsOverWhyAJobHasNoResult) {
  const TemporaryFolder folder;
  Experiment experiment;
  experiment.name = "broken";
  int runs = 0;
  experiment.jobs.push_back({.key = "infinite", .run = [] {
                               return JobResult{{"y", {std::numeric_limits<double>::infinity()}}};
                             }});
  experiment.jobs.push_back({.key = "no noise", .run = [&runs]() -> absl::StatusOr<JobResult> {
                               ++runs;
                               return absl::FailedPreconditionError("no bound can be proven");
                             }});
  experiment.jobs.push_back({.key = "good", .run = [] { return JobResult{{"y", {1}}}; }});
  experiment.draw = [](const std::vector<JobResult>& results) {
    Figure figure;
    for (const JobResult& result : results) figure.words.push_back(result.refused);
    return std::vector<Figure>{figure};
  };
  for (int time = 1; time <= 2; ++time) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Figure> figures,
                         RunExperiments({experiment}, {.folder = folder.path(), .study = "s"}));
    EXPECT_THAT(figures[0].words,
                testing::ElementsAre("its y would be inf", "no bound can be proven", ""));
    EXPECT_EQ(runs, time);  // a refusal is not kept
  }
}

TEST(Runner, TellsHowFarItIs) {
  const TemporaryFolder folder;
  std::atomic<int> runs = 0;
  RunProgress last;
  const RunOptions options{.folder = folder.path(),
                           .study = "s",
                           .progress = [&](const RunProgress& progress) { last = progress; }};
  ASSERT_THAT(RunExperiments({Counting(3, &runs)}, options), IsOk());
  EXPECT_EQ(last.done, 3);
  EXPECT_EQ(last.kept, 0);
  EXPECT_EQ(last.seconds_left, 0);
  ASSERT_THAT(RunExperiments({Counting(5, &runs)}, options), IsOk());
  EXPECT_EQ(last.done, 5);
  EXPECT_EQ(last.kept, 3);
}

// Allows this thread one core within its scope.
class OneCore {
 public:
  OneCore() {
    EXPECT_EQ(::sched_getaffinity(0, sizeof(before_), &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  }
  ~OneCore() { EXPECT_EQ(::sched_setaffinity(0, sizeof(before_), &before_), 0); }

 private:
  cpu_set_t before_ = {};
};

TEST(Runner, RunsJobsOfOneSplitOneAfterTheOtherAndHandsThemOverInOrder) {
  const OneCore one;
  const TemporaryFolder folder;
  std::vector<int> ran;
  Experiment experiment{.name = "splits", .jobs = {}, .draw = nullptr};
  for (int i = 0; i < 6; ++i) {
    experiment.jobs.push_back({.key = std::to_string(i),
                               .split = static_cast<uint64_t>(i % 3),
                               .run = [&ran, i]() -> absl::StatusOr<JobResult> {
                                 ran.push_back(i);
                                 return JobResult{{"number", {i + .0}}};
                               }});
  }
  std::vector<double> drawn;
  experiment.draw = [&](const std::vector<JobResult>& results) {
    for (const JobResult& result : results) drawn.push_back(result.at("number")[0]);
    return std::vector<Figure>();
  };
  ASSERT_THAT(RunExperiments({experiment}, {.folder = folder.path(), .study = "s"}), IsOk());
  EXPECT_THAT(ran, testing::ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(drawn, testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Runner, GivesTheSameFiguresOnAnyNumberOfCores) {
  const Study study = SmallStudy();
  const auto run = [&] {
    return FiguresOf(MakeRecallExperiment(std::make_shared<Stage>(study), {}), study);
  };
  const std::vector<Figure> on_all = run();
  std::vector<Figure> on_one;
  {
    const OneCore one_core;
    on_one = run();
  }
  ASSERT_EQ(on_all.size(), on_one.size());
  EXPECT_EQ(on_all[0].words, on_one[0].words);
  for (size_t panel = 0; panel < on_all[0].panels.size(); ++panel) {
    for (size_t s = 0; s < on_all[0].panels[panel].series.size(); ++s) {
      const FigureSeries& one = on_all[0].panels[panel].series[s];
      const FigureSeries& other = on_one[0].panels[panel].series[s];
      for (size_t i = 0; i < one.points.size(); ++i) {
        EXPECT_EQ(one.points[i].y, other.points[i].y) << one.name;
        if (!std::isnan(one.points[i].low)) {
          EXPECT_EQ(one.points[i].low, other.points[i].low) << one.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace privatemail::client
