// Jobs of experiments, and a runner that caches their results and resumes an interrupted run.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_RUNNER_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/report/figure.h"

namespace privatemail::client {

// Named lists of finite numbers, such as one of each target. Kept in a file, so nothing that is
// drawn depends on whether it was computed now or before.
struct JobResult : std::map<std::string, std::vector<double>> {
  using map::map;
  std::string refused;  // why there are no lists: noise or settings that cannot be made
};

// Part of an experiment. Its result depends on the study and `key` alone, whatever runs beside it.
struct Job {
  std::string key;  // all of its settings that are not the study's
  double work = 1;  // how long it takes beside other jobs: for estimates
  // Jobs of one split run one after the other, since they share what is made of it; 0: of none.
  uint64_t split = 0;
  std::function<absl::StatusOr<JobResult>()> run;  // called from any thread
};

struct Experiment {
  std::string name;  // letters, digits and '-'
  std::vector<Job> jobs = {};
  // results: one a job, in their order; any of them may be refused.
  std::function<absl::StatusOr<std::vector<Figure>>(const std::vector<JobResult>& results)> draw =
      nullptr;
};

struct RunProgress {
  int64_t jobs = 0;
  int64_t done = 0;
  int64_t kept = 0;          // of those that are done: by an earlier run
  double seconds = 0;        // since the run began
  double seconds_left = -1;  // by the work that is done; negative while no job has ended
};

struct RunOptions {
  std::string folder;  // made if it is not there; results of jobs are in `jobs` in it
  std::string study;   // all that results depend on beside their jobs
  std::function<void(const RunProgress&)> progress = {};  // from one thread, ten times a second
};

// The figures of all experiments, in order, equal on any number of cores. Results are cached by
// study, experiment and key. A job that returns FAILED_PRECONDITION or a non-finite number is
// refused, which is not cached; any other error ends the run and names the experiment.
absl::StatusOr<std::vector<Figure>> RunExperiments(const std::vector<Experiment>& experiments,
                                                   const RunOptions& options);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_RUNNER_H_
