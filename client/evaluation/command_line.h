// Options of privatemail-evaluate.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_COMMAND_LINE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// For the head of the report, sizes of all splits among it. Errors of MakeSplit.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> About(const Study& study);

// All of the study under the names of the command line, numbers with every digit, and what no
// option changes: version, scaling and start of the iteration, the data's digest.
std::vector<std::pair<std::string, std::string>> SettingsOf(const Study& study);

struct EvaluationOptions {
  // The source of the data: vectors and labels, images, or a preset's set in `data`.
  std::string vectors;
  std::string labels;
  std::string images;
  std::string preset;
  std::string data;
  std::string onnx;  // empty: the built-in descriptor
  std::string input_size = "224x224";
  std::string classes;  // all, first or second; empty: the preset's, or all

  std::string out;
  std::string experiments;  // names with commas between; empty: all but the attacks
  bool attacks = false;
  bool tune = false;

  Study study;
  const CLI::App* app = nullptr;  // knows what was given: what was not, preset or data say
};

void AddEvaluationOptions(CLI::App& app, EvaluationOptions* options);

// The study with its data. Reports progress and skipped files on standard error; caches features in
// `out`/features. INVALID_ARGUMENT: options that contradict each other or would be ignored; other
// errors of the files.
absl::StatusOr<Study> StudyOf(const EvaluationOptions& options);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_COMMAND_LINE_H_
