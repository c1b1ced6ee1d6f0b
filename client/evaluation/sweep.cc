#include "client/evaluation/sweep.h"

#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/exactly.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr Band kNotMeasured = {.mean = kNone, .low = kNone, .high = kNone};

}  // namespace

Condition AskingCondition(std::string name, std::shared_ptr<Stage> stage,
                          std::function<Asking(double x)> asking, bool fixed) {
  const auto run = [stage = std::move(stage), asking = std::move(asking)](
                       double x, uint64_t seed,
                       const std::string& part) -> absl::StatusOr<Answers> {
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Scene> scene, stage->SceneOf(seed));
    return AskAll(*scene, asking(x), part);
  };
  return {.name = std::move(name), .fixed = fixed, .work = 1, .run = run};
}

Condition BuildingCondition(std::string name, std::shared_ptr<Stage> stage,
                            std::function<EmbeddingSettings(double x)> settings, Asking asking,
                            bool fixed) {
  const auto run =
      [stage = std::move(stage), settings = std::move(settings), asking = std::move(asking)](
          double x, uint64_t seed, const std::string& part) -> absl::StatusOr<Answers> {
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Trial> trial, stage->TrialOf(seed));
    return BuildAndAskAll(trial, settings(x), asking, part);
  };
  return {.name = std::move(name), .fixed = fixed, .work = 2, .run = run};
}

Condition FeatureSearchCondition(std::shared_ptr<Stage> stage) {
  const auto run = [stage = std::move(stage)](
                       double /*x*/, uint64_t seed,
                       const std::string& /*part*/) -> absl::StatusOr<Answers> {
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Trial> trial, stage->TrialOf(seed));
    return ScoreRows(*trial, trial->split.gallery.features, trial->split.targets.features);
  };
  return {.name = "features, not private", .fixed = true, .work = 1, .run = run};
}

Condition ChanceCondition(std::shared_ptr<Stage> stage) {
  const auto run = [stage = std::move(stage)](
                       double /*x*/, uint64_t seed,
                       const std::string& /*part*/) -> absl::StatusOr<Answers> {
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Trial> trial, stage->TrialOf(seed));
    return ScoreChance(*trial);
  };
  return {.name = "chance", .fixed = true, .work = .01, .run = run};
}

std::vector<Job> Sweep::Jobs() const {
  std::vector<Job> jobs;
  for (const Condition& condition : conditions_) {
    for (size_t x = 0; x < (condition.fixed ? 1 : xs_.size()); ++x) {
      const std::string at =
          condition.fixed ? condition.name : absl::StrCat(condition.name, " at ", Exactly(xs_[x]));
      for (int64_t seed = 1; seed <= seeds_; ++seed) {
        const auto run = [condition, value = xs_[x], seed,
                          part = absl::StrCat(name_, "/", at)]() -> absl::StatusOr<JobResult> {
          PM_ASSIGN_OR_RETURN(const Answers answers,
                              condition.run(value, static_cast<uint64_t>(seed), part));
          return ToResult(answers);
        };
        jobs.push_back({.key = absl::StrCat(at, ", seed ", seed),
                        .work = condition.work,
                        .split = static_cast<uint64_t>(seed),
                        .run = run,
                        .kind = condition.name});
      }
    }
  }
  return jobs;
}

size_t Sweep::FirstJob(size_t condition, size_t x) const {
  size_t first = 0;
  const auto seeds = static_cast<size_t>(seeds_);
  for (size_t c = 0; c < condition; ++c) {
    first += seeds * (conditions_[c].fixed ? 1 : xs_.size());
  }
  return first + (conditions_[condition].fixed ? 0 : x * seeds);
}

Band Sweep::BandOf(const std::vector<JobResult>& results, size_t condition, size_t x,
                   const char* metric) const {
  const size_t first = FirstJob(condition, x);
  std::vector<std::vector<double>> by_seed;
  for (size_t seed = 0; seed < static_cast<size_t>(seeds_); ++seed) {
    const JobResult& result = results[first + seed];
    if (!result.refused.empty()) return kNotMeasured;
    by_seed.push_back(result.at(metric));
  }
  return BootstrapBand(by_seed, first);
}

void Sweep::TellUnanswered(const std::vector<JobResult>& results, std::vector<std::string>* words) {
  double unanswered = 0;
  for (const JobResult& result : results) {
    if (result.refused.empty()) unanswered += result.at("unanswered")[0];
  }
  if (unanswered == 0) return;
  words->push_back(
      absl::StrCat(unanswered, " releases could not be aligned; they count as finding nothing."));
}

const std::string& Sweep::WhyRefused(const std::vector<JobResult>& results, size_t condition,
                                     size_t x) const {
  const size_t first = FirstJob(condition, x);
  size_t seed = 0;
  while (seed + 1 < static_cast<size_t>(seeds_) && results[first + seed].refused.empty()) ++seed;
  return results[first + seed].refused;
}

void Sweep::TellRefused(const std::vector<JobResult>& results,
                        std::vector<std::string>* words) const {
  std::map<std::string, std::vector<std::string>> lines_by_reason;
  for (size_t c = 0; c < conditions_.size(); ++c) {
    const size_t count = conditions_[c].fixed ? 1 : xs_.size();
    std::string reason;  // the first; others differ in their numbers
    std::vector<std::string> xs;
    for (size_t x = 0; x < count; ++x) {
      const std::string& why = WhyRefused(results, c, x);
      if (why.empty()) continue;
      if (reason.empty()) reason = why;
      xs.push_back(Short(xs_[x]));
    }
    if (xs.empty()) continue;
    const std::string at = xs.size() == count ? "" : absl::StrCat(" at ", absl::StrJoin(xs, ", "));
    lines_by_reason[reason].push_back(absl::StrCat("\"", conditions_[c].name, "\"", at));
  }
  for (const auto& [reason, lines] : lines_by_reason) {
    words->push_back(
        absl::StrCat("Not measured: ", absl::StrJoin(lines, ", "), " (", reason, ")."));
  }
}

FigurePanel Sweep::PanelOf(const std::vector<JobResult>& results, const Metric& metric) const {
  FigurePanel panel{.title = metric.title, .series = {}};
  for (size_t c = 0; c < conditions_.size(); ++c) {
    FigureSeries series{.name = conditions_[c].name, .points = {}};
    if (conditions_[c].fixed) {
      series.mark = FigureSeries::Mark::kReference;
      const Band band = BandOf(results, c, 0, metric.key);
      for (const double x : {xs_.front(), xs_.back()}) series.points.push_back(PointOf(x, band));
    } else {
      for (size_t x = 0; x < xs_.size(); ++x) {
        series.points.push_back(PointOf(xs_[x], BandOf(results, c, x, metric.key)));
      }
    }
    panel.series.push_back(std::move(series));
  }
  return panel;
}

}  // namespace privatemail
