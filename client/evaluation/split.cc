#include "client/evaluation/split.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

// std::shuffle and the standard distributions differ between libraries; this does not.
template <typename T>
void Shuffle(std::mt19937_64& bits, std::vector<T>* items) {
  for (size_t i = items->size(); i > 1; --i) std::swap((*items)[i - 1], (*items)[bits() % i]);
}

absl::Status CheckSizes(const SplitSizes& sizes) {
  constexpr int64_t kMost = int64_t{1} << 40;
  PM_RETURN_IF_ERROR(CheckIntegerBetween("anchors_per_class", sizes.anchors_per_class, 1, kMost));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("targets", sizes.targets, 1, kMost));
  return CheckIntegerBetween("gallery_per_class", sizes.gallery_per_class, 1, kMost);
}

void Take(int64_t count, std::vector<int64_t>* rows, std::vector<int64_t>* party) {
  for (int64_t i = 0; i < count && !rows->empty(); ++i) {
    party->push_back(rows->back());
    rows->pop_back();
  }
}

// From class to class, as long as one has more than the row that the gallery needs.
absl::StatusOr<std::vector<int64_t>> TakeTargets(int64_t count,
                                                 std::vector<std::vector<int64_t>>* classes) {
  std::vector<int64_t> targets;
  for (bool found = true; found && static_cast<int64_t>(targets.size()) < count;) {
    found = false;
    for (std::vector<int64_t>& rows : *classes) {
      if (rows.size() < 2 || static_cast<int64_t>(targets.size()) == count) continue;
      Take(1, &rows, &targets);
      found = true;
    }
  }
  if (static_cast<int64_t>(targets.size()) == count) return targets;
  return absl::InvalidArgumentError(
      absl::StrCat("targets must be at most ", targets.size(),
                   ", the rows that anchors and gallery leave, but is ", count));
}

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

LabelledRows RowsOf(const LabelledRows& data, const std::vector<int64_t>& rows) {
  LabelledRows part;
  part.class_names = data.class_names;
  part.features.resize(static_cast<Eigen::Index>(rows.size()), data.features.cols());
  for (size_t i = 0; i < rows.size(); ++i) {
    part.features.row(static_cast<Eigen::Index>(i)) = data.features.row(rows[i]);
    part.labels.push_back(data.labels[static_cast<size_t>(rows[i])]);
  }
  return part;
}

absl::StatusOr<DataSplit> MakeSplit(const LabelledRows& data, const SplitSizes& sizes,
                                    uint64_t seed) {
  PM_RETURN_IF_ERROR(CheckSizes(sizes));
  std::map<int32_t, std::vector<int64_t>> of_class;
  for (size_t i = 0; i < data.labels.size(); ++i) {
    of_class[data.labels[i]].push_back(static_cast<int64_t>(i));
  }
  if (of_class.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels must have at least 2 classes, but have ", of_class.size()));
  }
  std::mt19937_64 bits(SeedOf("split", seed));
  std::vector<int64_t> anchors;
  std::vector<std::vector<int64_t>> classes;
  for (auto& [label, rows] : of_class) {
    if (static_cast<int64_t>(rows.size()) <= sizes.anchors_per_class) {
      return absl::InvalidArgumentError(absl::StrCat(
          "anchors_per_class must leave a row of every class to the gallery, but is ",
          sizes.anchors_per_class, " and class ", label, " has ", rows.size(), " rows"));
    }
    Shuffle(bits, &rows);
    Take(sizes.anchors_per_class, &rows, &anchors);
    classes.push_back(std::move(rows));
  }
  Shuffle(bits, &classes);
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> targets, TakeTargets(sizes.targets, &classes));
  std::vector<int64_t> gallery;
  for (std::vector<int64_t>& rows : classes) Take(sizes.gallery_per_class, &rows, &gallery);
  std::sort(gallery.begin(), gallery.end());
  return DataSplit{.anchors = RowsOf(data, anchors),
                   .gallery = RowsOf(data, gallery),
                   .targets = RowsOf(data, targets)};
}

int64_t CountClasses(const LabelledRows& data) {
  const std::set<int32_t> distinct(data.labels.begin(), data.labels.end());
  return static_cast<int64_t>(distinct.size());
}

LabelledRows ClassesOf(const LabelledRows& data, ClassHalf half) {
  const std::set<int32_t> distinct(data.labels.begin(), data.labels.end());
  const std::vector<int32_t> classes(distinct.begin(), distinct.end());
  if (half == ClassHalf::kAll || classes.empty()) return data;
  const int32_t middle = classes[classes.size() / 2];
  std::vector<int64_t> rows;
  for (size_t i = 0; i < data.labels.size(); ++i) {
    if ((data.labels[i] < middle) == (half == ClassHalf::kFirst)) {
      rows.push_back(static_cast<int64_t>(i));
    }
  }
  return RowsOf(data, rows);
}

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
