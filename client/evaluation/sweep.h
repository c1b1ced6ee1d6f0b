// Parts of figures, and conditions that experiments measure over a range of x.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_SWEEP_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_SWEEP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/metrics.h"
#include "client/evaluation/report/figure.h"
#include "client/evaluation/runner.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// One of the scores of an answer, as lists of a JobResult and panels are named.
struct Metric {
  const char* key;    // in a JobResult
  std::string title;  // "Recall@8: at least one of the 8 is of the class (the papers')"
  std::string name;   // "recall@8", in words
};
std::vector<Metric> MetricsAt(int64_t k);  // recall, precision, fidelity

// A share: from 0 to 1.
FigureAxis ShareAxis(std::string label);
FigureAxis EpsilonAxis();

// A known function of epsilon as a reference: points at these epsilons, a curve between the first
// and the last.
FigureSeries CurveOver(std::string name, const std::vector<double>& epsilons,
                       absl::FunctionRef<double(double epsilon)> height);

// One point with its band.
FigurePoint PointOf(double x, const Band& band);
Band BandAt(const FigurePoint& point);

// A remark for figures that compare settings.
inline constexpr char kStartsDiffer[] =
    "Every setting has a start of its own on the server, as every collection has: what two of them "
    "differ by is partly their starts.";

// The kind of interval that BandOfScores gives for this many splits: "Bands: ..."
std::string ScoreBandsInWords(int64_t splits);

// Three significant digits, without an exponent where that is short; "not known" for NaN.
std::string Short(double value);
// "1 run", "3 runs"
std::string Counted(int64_t count, absl::string_view noun);
// "0.95 (0.93 to 0.97)"
std::string WithBand(const Band& band);

struct Condition {
  std::string name;
  bool fixed = false;  // the same at every x: run once, drawn as a reference
  double work = 1;     // of one job, beside the others of the run
  // part: names experiment, condition and x, for seeds where draws are to be its own. x means
  // nothing where it is fixed.
  std::function<absl::StatusOr<Answers>(double x, uint64_t seed, const std::string& part)> run;
};

// A condition that asks a stage's scenes. asking: what to ask at x.
Condition AskingCondition(std::string name, std::shared_ptr<Stage> stage,
                          std::function<Asking(double x)> asking, bool fixed = false);

// A condition that asks scenes of its own. settings: theirs at x.
Condition BuildingCondition(std::string name, std::shared_ptr<Stage> stage,
                            std::function<EmbeddingSettings(double x)> settings, Asking asking,
                            bool fixed = false);

// Of no privacy: a search over the features, and of an answer that is drawn blindly.
Condition FeatureSearchCondition(std::shared_ptr<Stage> stage);
Condition ChanceCondition(std::shared_ptr<Stage> stage);

class Sweep {
 public:
  // conditions: their names differ.
  Sweep(std::string name, std::vector<Condition> conditions, std::vector<double> xs, int64_t seeds)
      : name_(std::move(name)),
        conditions_(std::move(conditions)),
        xs_(std::move(xs)),
        seeds_(seeds) {}

  const std::vector<Condition>& conditions() const { return conditions_; }
  const std::vector<double>& xs() const { return xs_; }

  // One for every condition, x (once where it is fixed) and seed.
  std::vector<Job> Jobs() const;

  // Reads results of Jobs(), in their order. A band is that of BandOfScores; all NaN where a job
  // was refused, which plots leave out.
  Band BandOf(const std::vector<JobResult>& results, size_t condition, size_t x,
              const char* metric) const;
  // The mean of each split, in the order of seeds; of a single split the score of each target. What
  // bands of ratios are made of. None of the jobs may be refused.
  std::vector<double> SamplesOf(const std::vector<JobResult>& results, size_t condition, size_t x,
                                const char* metric) const;
  // The number of pairs of values of x whose scores differ for a condition, in words. Student's t
  // over pairs with Bonferroni's share of 5 %; refused values are left out.
  std::string DifferencesInWords(const std::vector<JobResult>& results, size_t condition,
                                 const char* metric) const;
  // Remarks on a figure: unanswered releases per condition, conditions for which the server refused
  // to build, refused ones with their reasons, and the kind of intervals.
  void AddNotes(const std::vector<JobResult>& results, std::vector<std::string>* words) const;
  // One series a condition: a line over the xs, or a dashed reference.
  FigurePanel PanelOf(const std::vector<JobResult>& results, const Metric& metric) const;

 private:
  size_t FirstJob(size_t condition, size_t x) const;
  // Of the first seed that was; empty where none was.
  const std::string& WhyRefused(const std::vector<JobResult>& results, size_t condition,
                                size_t x) const;
  // Adds a sentence for every reason why conditions were refused, at some xs or at all: of each
  // condition the first.
  void TellRefused(const std::vector<JobResult>& results, std::vector<std::string>* words) const;
  size_t JobsOf(size_t condition) const;
  std::vector<std::vector<double>> BySplit(const std::vector<JobResult>& results, size_t condition,
                                           size_t x, const char* metric) const;

  std::string name_;
  std::vector<Condition> conditions_;
  std::vector<double> xs_;
  int64_t seeds_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_SWEEP_H_
