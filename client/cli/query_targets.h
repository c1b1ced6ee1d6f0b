// The targets of `privatemail query`: rows of a vector file, or pictures. Private.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_TARGETS_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_TARGETS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/images.h"
#include "privatemail/joint_client.h"

namespace privatemail::client::cli {

struct TargetOptions {
  std::string vectors_file;
  std::vector<int64_t> rows;
  std::vector<std::string> images;
  std::vector<std::string>
      labels;               // one for all, or one a target: a number or a class name; none: guessed
  std::string labels_file;  // labels of the rows of vectors_file
  std::string own_anchors_file;  // the anchors in the space of vectors_file; empty: as published
  ExtractorOptions extractor;
};

struct NamedTarget {
  std::string name;   // file, or file and row
  std::string image;  // path of the picture; empty for a vector
  Target target;
  bool guessed = false;  // the label is to be guessed from the anchors, or was
  double features_ms = 0;
};

// What was given with --label; for "-" alone, the lines of standard input.
std::vector<std::string> LabelTexts(const std::vector<std::string>& given);

// What one of them says: a class's number or name. INVALID_ARGUMENT listing classes for anything
// else.
absl::StatusOr<int32_t> LabelFrom(const std::string& text, const PublicParameters& parameters);

// Those that say what is asked for, without its label.
void AddFeatureOptions(CLI::App* command, TargetOptions* options);
void AddTargetOptions(CLI::App* command, TargetOptions* options);

// Features of the anchors by a model of one's own, in which --vectors are given, too; nothing: the
// published ones serve.
void AddOwnAnchorsOption(CLI::App* command, TargetOptions* options);
absl::StatusOr<std::optional<FloatMatrix>> ReadOwnAnchors(const TargetOptions& options);

// Targets without labels, of any number of columns where the anchors are one's own. Errors as
// ReadTargets.
absl::StatusOr<std::vector<NamedTarget>> ReadFeatures(const TargetOptions& options,
                                                      const PublicParameters& parameters);

// The same with their labels; where none was given, `guessed`, with a label that means nothing yet.
absl::StatusOr<std::vector<NamedTarget>> ReadLabelled(const TargetOptions& options,
                                                      const PublicParameters& parameters);

// The same with what the client guesses. INVALID_ARGUMENT naming the option, FAILED_PRECONDITION
// for another extractor than the collection's.
absl::StatusOr<std::vector<NamedTarget>> ReadTargets(const TargetOptions& options,
                                                     const SlotClient& client);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_TARGETS_H_
