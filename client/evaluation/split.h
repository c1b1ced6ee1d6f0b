// Labelled rows shared out among the three parties of an experiment.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_SPLIT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_SPLIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/evaluation/dataset.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {

struct SplitSizes {
  int64_t anchors_per_class = 10;
  int64_t targets = 100;           // in all
  int64_t gallery_per_class = 80;  // at most
};

// Stratified and random by `seed` alone: per class the anchors, the targets (spread evenly over
// classes), and the rest, up to its limit, as gallery. INVALID_ARGUMENT naming the size or the
// class: fewer than 2 classes, a size below 1, a class with too few rows, not enough rows for the
// targets.
absl::StatusOr<DataSplit> MakeSplit(const LabelledRows& data, const SplitSizes& sizes,
                                    uint64_t seed);

// The rows of these numbers, in their order.
LabelledRows RowsOf(const LabelledRows& data, const std::vector<int64_t>& rows);

int64_t CountClasses(const LabelledRows& data);

// Which of the classes, in ascending order of their labels: the papers' image sets are split by
// class, the first half to train a network on, the second to search.
enum class ClassHalf { kAll, kFirst, kSecond };
LabelledRows ClassesOf(const LabelledRows& data, ClassHalf half);

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

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_SPLIT_H_
