// The parameters of the second paper's experiments (appendix A, table 2).
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_PRESETS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_PRESETS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/evaluation/split.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {

struct Preset {
  const char* name;
  EmbeddingSettings settings;
  double epsilon;
  double delta;
  // Cars196 and CUB-200-2011 as in retrieval: networks are trained on the first half of the
  // classes, and the second is searched. CIFAR-100 is searched in all classes.
  ClassHalf searched;
};

// "cars196", "cub200" or "cifar100"; INVALID_ARGUMENT listing them for another name.
absl::StatusOr<Preset> PresetNamed(absl::string_view name);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_PRESETS_H_
