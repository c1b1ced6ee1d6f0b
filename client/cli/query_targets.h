// The targets of queries: rows of a vector file, or images. Private.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_TARGETS_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_TARGETS_H_

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/images.h"
#include "client/cli/values.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/search_request.h"

namespace privatemail::client::cli {

struct TargetOptions {
  std::string vectors_file;
  RowSelection rows;  // of vectors_file; none: all
  std::vector<std::string> images;
  std::vector<std::string> labels;  // one for all or one a target: number or class
  std::string labels_file;          // labels of the rows of vectors_file
  std::string own_anchors_file;     // the anchors in the space of vectors_file
  ExtractorOptions extractor;
};

// A target and the facts about it that the command shows.
struct QueryTarget {
  SearchTarget target = {};
  std::string image = {};           // path; empty for a vector
  std::optional<int64_t> row = {};  // of a vector file
  double features_ms = 0;
};

// Adds --vectors, --row, --image and those of the extractor, but no label.
void AddFeatureOptions(CLI::App* command, TargetOptions* options);
// Adds these, --label, --labels and --own-anchors.
void AddTargetOptions(CLI::App* command, TargetOptions* options);

// The rows of --vectors with their labels of --labels, read before any call, so that what no
// collection accepts is refused then. For --image: no rows, but every file is decoded.
// INVALID_ARGUMENT naming option or file: options contradict each other, an unreadable file, a
//   row out of range, another number of labels than of vectors.
// Errors of CheckImage.
absl::StatusOr<std::vector<QueryTarget>> ReadRows(const TargetOptions& options);

// The targets of ReadRows or of the images.
// INVALID_ARGUMENT naming the option: an image is wrong.
// FAILED_PRECONDITION: the extractor is not the collection's.
absl::StatusOr<std::vector<QueryTarget>> ReadTargets(const TargetOptions& options,
                                                     const PublicParameters& parameters,
                                                     std::vector<QueryTarget> rows);

// Gives the targets the labels of --label. INVALID_ARGUMENT naming label: another number of labels.
absl::Status AddLabels(const TargetOptions& options, std::vector<QueryTarget>* targets);

// Reads --own-anchors. INVALID_ARGUMENT: the file cannot be read, or is given with --image, whose
// features are the collection's.
absl::StatusOr<std::optional<FloatMatrix>> ReadOwnAnchors(const TargetOptions& options);

// Returns the values of --label, or the lines of standard input if the only one is "-".
std::vector<std::string> LabelTexts(const std::vector<std::string>& given);

// With --image: waits, before the next call, for a multiple of a second and a tenth for each
// further image after `arrived`, the time of the last answer, so that the server sees no image's
// size in the time that its features take. Without: returns at once.
void WaitForDeparture(const TargetOptions& options, std::chrono::steady_clock::time_point arrived);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_TARGETS_H_
