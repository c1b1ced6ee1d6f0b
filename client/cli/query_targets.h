// The targets of queries: rows of a vector file, or images. Private.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_TARGETS_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_TARGETS_H_

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/images.h"
#include "client/cli/values.h"
#include "client/queries/query_batch.h"
#include "privatemail/joint_client.h"

namespace privatemail::client::cli {

struct TargetOptions {
  std::string vectors_file;
  RowSelection rows;
  std::vector<std::string> images;
  std::vector<std::string> labels;  // one for all or one a target: number or class; none: guessed
  std::string labels_file;          // labels of the rows of vectors_file
  std::string own_anchors_file;     // the anchors in the space of vectors_file; empty: as published
  ExtractorOptions extractor;
};

// The values of --label; for "-" alone, the lines of standard input.
std::vector<std::string> LabelTexts(const std::vector<std::string>& given);

// INVALID_ARGUMENT: neither none, nor one, nor one for each query.
absl::Status CheckLabelCount(size_t labels, size_t queries);

// The label of a class's number or name. INVALID_ARGUMENT listing the classes: neither.
absl::StatusOr<int32_t> LabelFrom(const std::string& text, const PublicParameters& parameters);

// --vectors, --row, --image and the extractor; no label.
void AddFeatureOptions(CLI::App* command, TargetOptions* options);
void AddTargetOptions(CLI::App* command, TargetOptions* options);

// The anchors by the model that made --vectors; nothing: the published anchors are used.
void AddOwnAnchorsOption(CLI::App* command, TargetOptions* options);
absl::StatusOr<std::optional<FloatMatrix>> ReadOwnAnchors(const TargetOptions& options);

// The rows of --vectors, read before any call, so that what no collection accepts is refused then.
// For --image: no rows, but every file is decoded.
// metric: cosine for schemes that need a direction, dot if the collection may allow zero rows.
// INVALID_ARGUMENT naming option or file: options contradict each other, an unreadable file, a
//   non-finite or, by cosine, zero row, a row out of range, another number of labels than of
//   vectors.
// Errors of CheckImage.
absl::StatusOr<std::vector<NamedTarget>> ReadRows(const TargetOptions& options, Metric metric);

// The targets of ReadRows, or of the images, without labels; with own anchors of any number of
// columns. Errors as ReadLabelled.
absl::StatusOr<std::vector<NamedTarget>> ReadFeatures(const TargetOptions& options,
                                                      const PublicParameters& parameters,
                                                      std::vector<NamedTarget> rows);

// With --image: waits, before the next call, for a multiple of a second and a tenth for each
// further image after `arrived`, the time of the last answer, so that the server sees no image's
// size in the time that its features take. Without: returns at once.
void WaitForDeparture(const TargetOptions& options, std::chrono::steady_clock::time_point arrived);

// Targets with their labels; without a given label `guessed` is set and the label is undefined.
// INVALID_ARGUMENT naming the option: options, images or labels are wrong, or rows of another
//   dimension, or zero if the collection's metric is cosine.
// FAILED_PRECONDITION: the extractor is not the collection's.
absl::StatusOr<std::vector<NamedTarget>> ReadLabelled(const TargetOptions& options,
                                                      const PublicParameters& parameters,
                                                      std::vector<NamedTarget> rows);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_TARGETS_H_
