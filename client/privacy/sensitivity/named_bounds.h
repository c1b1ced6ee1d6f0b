// Bounds on the sensitivity of an iteration by their names, for `privatemail sensitivity` and
// Python.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_NAMED_BOUNDS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_NAMED_BOUNDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {

// The change of a release when its target is replaced. All of it is public.
struct BoundRequest {
  std::string bound;                        // of SensitivityBoundNames
  EmbeddingSettings settings = {};          // of the collection
  std::vector<int32_t> anchor_labels = {};  // their classes have a slot each
  std::optional<FloatMatrix> anchors = {};  // a row a label; for known-anchors only
  // Rows that differ, for known-anchors and replace-target: 2, or 1 when the class is public.
  std::optional<int> changed = {};
  std::optional<uint64_t> seed = {};  // of a repeatable random start; secure bits if absent
};

struct BoundValue {
  const char* key;  // in JSON
  double value;
};

struct NamedBound {
  std::string source;  // the proof, or that there is none
  bool proven = false;
  int64_t rows = 0;  // of slots and anchors
  std::vector<BoundValue> values = {};
};

// "known-anchors, replace-target, ..."; releases use the first by default.
std::string SensitivityBoundNames();

// INVALID_ARGUMENT: an unknown name, settings out of range, or a field that is missing or that
// the bound does not use.
absl::StatusOr<NamedBound> ComputeBound(const BoundRequest& request);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_NAMED_BOUNDS_H_
