// The experiments by name.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_ALL_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_ALL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/evaluation/experiments/recall.h"
#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// All of them, as MakeExperiments takes them, in the order of a report, with ", " between.
std::string ExperimentNames();

// names: separated by commas; empty: all, the attacks only if they are asked for. In the order of a
// report. INVALID_ARGUMENT listing all names for one that is none.
absl::StatusOr<std::vector<Experiment>> MakeExperiments(const std::shared_ptr<Stage>& stage,
                                                        absl::string_view names, bool attacks,
                                                        const std::vector<Baseline>& baselines);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_ALL_H_
