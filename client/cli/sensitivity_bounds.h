// The bounds on how far a joint release can move, by name.
#ifndef PRIVATEMAIL_CLIENT_CLI_SENSITIVITY_BOUNDS_H_
#define PRIVATEMAIL_CLIENT_CLI_SENSITIVITY_BOUNDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/matrix.h"
#include "common/embedding/smlq.h"

namespace privatemail::client::cli {

// One iteration over a collection's labels.
struct BoundQuestion {
  EmbeddingSettings settings;
  int64_t slots = 0;
  std::vector<int32_t> labels;  // by slot, then of the anchors
  Matrix start;                 // a row for each label
  Matrix anchors;               // unit rows; empty where the bound needs none
  int changed_rows = 2;
};

struct BoundValue {
  const char* key;   // in JSON
  const char* text;  // "L2 sensitivity"
  double value;
};

struct SensitivityBound {
  const char* name;
  const char* source;  // where the proof is, or that there is none
  bool proven;
  bool needs_anchors;  // their features, not their labels alone
  bool takes_changed;  // whether one row may change or two
  absl::StatusOr<std::vector<BoundValue>> (*compute)(const BoundQuestion& question);
};

// "replace-target", "known-anchors", ...; INVALID_ARGUMENT listing all for another name.
absl::StatusOr<SensitivityBound> SensitivityBoundFromName(absl::string_view name);
std::string SensitivityBoundNames();  // for messages and --help

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_SENSITIVITY_BOUNDS_H_
