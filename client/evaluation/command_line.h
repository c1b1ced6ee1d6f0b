// What privatemail-evaluate is told.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_COMMAND_LINE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

struct EvaluationOptions {
  // Where data come from: vectors and labels, images, or a preset's set in `data`.
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

// The study that the options ask for, its data read; images are described on all cores with a line
// of progress on standard error, which also names files that are no images of a class. Features
// are kept in `out`/features (DescribeImages), and images to unpack are in `out`/unpacked
// meanwhile. INVALID_ARGUMENT: options that contradict each other or that what others ask for would
// ignore; other errors of the files.
absl::StatusOr<Study> StudyOf(const EvaluationOptions& options);

// The same with the flag in place of the field that its message begins with: "kernel_bandwidth must
// be ..." becomes "--bandwidth must be ...".
absl::Status InFlags(const absl::Status& status);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_COMMAND_LINE_H_
