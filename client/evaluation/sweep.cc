#include "client/evaluation/sweep.h"

#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

constexpr char kAllEqual[] =
    "where scores are all 0 or all 1, what it would be had one target come out otherwise";

constexpr double kRisk = .05;  // that any pair is said to differ, and does not
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr Band kNotMeasured = {.mean = kNone, .low = kNone, .high = kNone};
struct Tally {
  int64_t releases = 0;
  int64_t unanswered = 0;
  int64_t not_built = 0;  // jobs that released nothing
};

Tally TallyOf(const std::vector<JobResult>& results, size_t first, size_t count) {
  Tally tally;
  for (size_t i = first; i < first + count; ++i) {
    const JobResult& result = results[i];
    if (!result.refused.empty()) continue;
    if (result.contains("not_built")) {
      ++tally.not_built;
      continue;
    }
    tally.releases += static_cast<int64_t>(result.at("hit").size());
    tally.unanswered += static_cast<int64_t>(result.at("unanswered")[0]);
  }
  return tally;
}

}  // namespace

std::vector<Metric> MetricsAt(int64_t k) {
  return {{.key = "hit",
           .title = absl::StrCat("Recall@", k, " (the papers'): at least one of the ", k,
                                 " has the target's class"),
           .name = absl::StrCat("recall@", k)},
          {.key = "class_share",
           .title =
               absl::StrCat("Precision@", k, ": share of the ", k, " that have the target's class"),
           .name = absl::StrCat("precision@", k)},
          {.key = "fidelity",
           .title = absl::StrCat("Fidelity@", k, ": share of the non-private top ", k,
                                 " that came back"),
           .name = absl::StrCat("fidelity@", k)}};
}

FigureAxis ShareAxis(std::string label) {
  return {.label = std::move(label), .logarithmic = false, .low = 0, .high = 1};
}

FigureAxis EpsilonAxis() {
  FigureAxis axis;
  axis.label = "epsilon of one release (smaller is more private)";
  axis.logarithmic = true;
  return axis;
}

FigureSeries CurveOver(std::string name, const std::vector<double>& epsilons,
                       absl::FunctionRef<double(double epsilon)> height) {
  FigureSeries series{.name = std::move(name), .mark = FigureSeries::Mark::kReference};
  for (const double epsilon : epsilons)
    series.points.push_back({.x = epsilon, .y = height(epsilon)});
  if (epsilons.size() < 2) return series;
  constexpr int kSteps = 96;
  const double from = std::log(epsilons.front());
  const double to = std::log(epsilons.back());
  for (int i = 0; i <= kSteps; ++i) {
    const double epsilon = i == 0        ? epsilons.front()
                           : i == kSteps ? epsilons.back()
                                         : std::exp(from + (to - from) * i / kSteps);
    series.curve.push_back({.x = epsilon, .y = height(epsilon)});
  }
  return series;
}

FigurePoint PointOf(double x, const Band& band) {
  return {.x = x, .y = band.mean, .low = band.low, .high = band.high};
}

Band BandAt(const FigurePoint& point) {
  return {.mean = point.y, .low = point.low, .high = point.high};
}

std::string ScoreBandsInWords(int64_t splits) {
  if (splits == 1) {
    return absl::StrCat("Bands: 95 % bootstrap over the targets of the one split (", kAllEqual,
                        "). They say nothing of other splits or other data.");
  }
  return absl::StrCat("Bands: 95 % Student t over the means of ", splits,
                      " splits of this data set (where these are equal, bootstrap over targets; ",
                      kAllEqual, "). They say nothing of other data.");
}

std::string Short(double value) {
  return std::isnan(value) ? "not known" : absl::StrFormat("%.3g", value);
}

std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string WithBand(const Band& band) {
  if (std::isnan(band.mean)) return Short(band.mean);
  return absl::StrCat(Short(band.mean), " (", Short(band.low), " to ", Short(band.high), ")");
}

Condition AskingCondition(std::string name, std::shared_ptr<Stage> stage,
                          std::function<Asking(double x)> asking, bool fixed) {
  const auto run = [stage = std::move(stage), asking = std::move(asking)](
                       double x, uint64_t seed,
                       const std::string& /*part*/) -> absl::StatusOr<Answers> {
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Scene> scene, stage->SceneOf(seed));
    return AskAll(*scene, asking(x));
  };
  return {.name = std::move(name), .fixed = fixed, .work = 1, .run = run};
}

Condition BuildingCondition(std::string name, std::shared_ptr<Stage> stage,
                            std::function<EmbeddingSettings(double x)> settings, Asking asking,
                            bool fixed) {
  const auto run =
      [stage = std::move(stage), settings = std::move(settings), asking = std::move(asking)](
          double x, uint64_t seed, const std::string& /*part*/) -> absl::StatusOr<Answers> {
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Trial> trial, stage->TrialOf(seed));
    return BuildAndAskAll(trial, settings(x), asking);
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
      const std::string at = condition.fixed
                                 ? condition.name
                                 : absl::StrCat(condition.name, " at ", FormatExact(xs_[x]));
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
                        .run = run});
      }
    }
  }
  return jobs;
}

size_t Sweep::JobsOf(size_t condition) const {
  return static_cast<size_t>(seeds_) * (conditions_[condition].fixed ? 1 : xs_.size());
}

size_t Sweep::FirstJob(size_t condition, size_t x) const {
  size_t first = 0;
  for (size_t c = 0; c < condition; ++c) first += JobsOf(c);
  return first + (conditions_[condition].fixed ? 0 : x * static_cast<size_t>(seeds_));
}

std::vector<std::vector<double>> Sweep::BySplit(const std::vector<JobResult>& results,
                                                size_t condition, size_t x,
                                                const char* metric) const {
  const size_t first = FirstJob(condition, x);
  std::vector<std::vector<double>> by_split;
  for (size_t seed = 0; seed < static_cast<size_t>(seeds_); ++seed) {
    by_split.push_back(results[first + seed].at(metric));
  }
  return by_split;
}

Band Sweep::BandOf(const std::vector<JobResult>& results, size_t condition, size_t x,
                   const char* metric) const {
  for (size_t seed = 0; seed < static_cast<size_t>(seeds_); ++seed) {
    if (!results[FirstJob(condition, x) + seed].refused.empty()) return kNotMeasured;
  }
  return BandOfScores(BySplit(results, condition, x, metric), FirstJob(condition, x));
}

std::vector<double> Sweep::SamplesOf(const std::vector<JobResult>& results, size_t condition,
                                     size_t x, const char* metric) const {
  const std::vector<std::vector<double>> by_split = BySplit(results, condition, x, metric);
  if (by_split.size() == 1) return by_split.front();
  std::vector<double> means;
  for (const std::vector<double>& values : by_split) {
    means.push_back(std::accumulate(values.begin(), values.end(), 0.0) /
                    static_cast<double>(values.size()));
  }
  return means;
}

std::string Sweep::DifferencesInWords(const std::vector<JobResult>& results, size_t condition,
                                      const char* metric) const {
  std::vector<std::vector<double>> samples;
  for (size_t x = 0; x < xs_.size(); ++x) {
    if (std::isnan(BandOf(results, condition, x, metric).mean)) continue;
    samples.push_back(SamplesOf(results, condition, x, metric));
  }
  if (samples.size() < 2) return "There is no other value to compare it with.";
  const size_t pairs = samples.size() * (samples.size() - 1) / 2;
  const double certainty = 1 - kRisk / static_cast<double>(pairs);
  size_t differ = 0;
  for (size_t one = 0; one < samples.size(); ++one) {
    for (size_t other = 0; other < one; ++other) {
      const auto band = BandOfDifference(samples[one], samples[other], certainty);
      differ += band && (band->low > 0 || band->high < 0) ? 1 : 0;
    }
  }
  const std::string test =
      absl::StrCat(" (paired t over the ", seeds_ > 1 ? "splits" : "targets of the one split",
                   ", 5 % over all pairs together).");
  if (differ == 0) {
    return absl::StrCat("No two of the ", samples.size(), " values are shown to differ", test);
  }
  return absl::StrCat(differ, " of the ", Counted(static_cast<int64_t>(pairs), "pair"),
                      " of values ", differ == 1 ? "is" : "are", " shown to differ", test);
}

void Sweep::AddNotes(const std::vector<JobResult>& results, std::vector<std::string>* words) const {
  std::vector<std::string> unanswered;
  std::vector<std::string> not_built;
  for (size_t c = 0; c < conditions_.size(); ++c) {
    const Tally tally = TallyOf(results, FirstJob(c, 0), JobsOf(c));
    const std::string of = absl::StrCat(" of \"", conditions_[c].name, "\"");
    if (tally.unanswered > 0) {
      unanswered.push_back(absl::StrCat(tally.unanswered, " of ", tally.releases, of));
    }
    if (tally.not_built > 0) not_built.push_back(absl::StrCat(tally.not_built, of));
  }
  if (!unanswered.empty()) {
    words->push_back(absl::StrCat("Releases that could not be aligned count as finding nothing: ",
                                  absl::StrJoin(unanswered, ", "), "."));
  }
  if (!not_built.empty()) {
    words->push_back(absl::StrCat(
        "Where the server refuses to build, nothing is released and nothing found; out of ",
        xs_.size() * static_cast<size_t>(seeds_), " settings and splits each, these are ",
        absl::StrJoin(not_built, ", "), "."));
  }
  TellRefused(results, words);
  words->push_back(ScoreBandsInWords(seeds_));
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
  FigurePanel panel{.title = metric.title};
  for (size_t c = 0; c < conditions_.size(); ++c) {
    FigureSeries series{.name = conditions_[c].name};
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

}  // namespace privatemail::client
