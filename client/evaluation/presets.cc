#include "client/evaluation/presets.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace privatemail::client {
namespace {

EmbeddingSettings TableTwo(double kernel_bandwidth, double alpha) {
  EmbeddingSettings settings;
  settings.kernel_bandwidth = kernel_bandwidth;
  settings.alpha = alpha;
  settings.embedding_dim = 2;
  settings.start_stddev = 1e-8;
  settings.steps = 5;
  return settings;
}

}  // namespace

absl::StatusOr<Preset> PresetNamed(absl::string_view name) {
  for (const Preset& preset : {Preset{"cars196", TableTwo(6, .6), .1, 1e-5, ClassHalf::kSecond},
                               Preset{"cub200", TableTwo(5, .5), .1, 1e-5, ClassHalf::kSecond},
                               Preset{"cifar100", TableTwo(6, .6), .1, 1e-5, ClassHalf::kAll}}) {
    if (name == preset.name) return preset;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--preset must be cars196, cub200 or cifar100, but is \"", name, "\""));
}

}  // namespace privatemail::client
