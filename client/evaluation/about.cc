#include "client/evaluation/about.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/flags/names.h"
#include "client/evaluation/data.h"
#include "client/evaluation/split.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// Of one party's rows in the splits.
class Rows {
 public:
  void Add(const LabelledRows& part) {
    const auto rows = static_cast<int64_t>(part.labels.size());
    least_ = most_ == 0 ? rows : std::min(least_, rows);
    most_ = std::max(most_, rows);
  }

  // "8000", or "7960 to 8000"
  std::string Text() const {
    return least_ == most_ ? absl::StrCat(most_) : absl::StrCat(least_, " to ", most_);
  }

 private:
  int64_t least_ = 0;
  int64_t most_ = 0;
};

template <typename Value>
std::string NameOf(const std::map<std::string, Value>& names, Value value) {
  return std::find_if(names.begin(), names.end(),
                      [&](const auto& name) { return name.second == value; })
      ->first;
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> About(const Study& study) {
  Rows anchors;
  Rows gallery;
  Rows targets;
  for (int64_t seed = 1; seed <= study.seeds; ++seed) {
    PM_ASSIGN_OR_RETURN(const DataSplit split,
                        MakeSplit(study.data, study.sizes, static_cast<uint64_t>(seed)));
    anchors.Add(split.anchors);
    gallery.Add(split.gallery);
    targets.Add(split.targets);
  }
  return std::vector<std::pair<std::string, std::string>>{
      {"Data", study.about},
      {"Anchors, gallery, targets of a split",
       absl::StrCat(anchors.Text(), "; ", gallery.Text(), "; ", targets.Text())},
      {"Retrieved", absl::StrCat("k = ", study.k)},
      {"Splits", absl::StrCat(study.seeds, " of this data set, each with noise of its own")},
      {"Bands", "each figure says of what kind"},
      {"Noise", "seeded: it can be drawn again, and was never released"}};
}

std::vector<std::pair<std::string, std::string>> SettingsOf(const Study& study) {
  const EmbeddingSettings& s = study.settings;
  return {{"--bandwidth (s)", FormatExact(s.kernel_bandwidth)},
          {"--alpha", FormatExact(s.alpha)},
          {"--kernel", NameOf(cli::kKernelNames, s.kernel)},
          {"--label-graph", NameOf(cli::kLabelGraphNames, s.label_graph)},
          {"--dim", absl::StrCat(s.embedding_dim)},
          {"--steps (T)", absl::StrCat(s.steps)},
          {"Scaled in every step", s.normalise ? "yes" : "no"},
          {"Standard deviation of the start", FormatExact(s.start_stddev)},
          {"--epsilons (cells have their own)",
           absl::StrJoin(study.epsilons, ", ",
                         [](std::string* text, double epsilon) { *text += FormatExact(epsilon); })},
          {"--epsilon", FormatExact(study.epsilon)},
          {"--delta", FormatExact(study.delta)},
          {"-k", absl::StrCat(study.k)},
          {"--seeds", absl::StrCat(study.seeds, study.seeds > 1 ? ": 1 to " : ": ", study.seeds)},
          {"--targets", absl::StrCat(study.sizes.targets)},
          {"--anchors-per-class", absl::StrCat(study.sizes.anchors_per_class)},
          {"--gallery-per-class", absl::StrCat(study.sizes.gallery_per_class)},
          {"Program", "privatemail-evaluate " PRIVATEMAIL_VERSION},
          {"SHA-256 of the data", DigestOf(study.data)}};
}

}  // namespace privatemail::client
