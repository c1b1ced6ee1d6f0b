#include "client/evaluation/experiments/library_baselines.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/evaluation/baselines/all_baselines.h"
#include "client/evaluation/split.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

// Whom the baselines tell apart; the experiment names them in the words of a reader.
struct Told {
  const char* id;
  const char* name;
  const char* protects;
  double work;              // in releases of 100 targets, about
  bool embeds_all = false;  // gallery and targets together, in O(n^2) a step
};
constexpr Told kTold[] = {
    {"pca", "PCA, not private", "nobody", 1},
    {"t-sne", "t-SNE, not private", "nobody", 100, true},
    {"analyse-gauss", "private PCA, analyse-Gauss",
     "gallery rows, from whoever sees the axes; not the targets", 1},
    {"published-ppca", "private PCA, exponential mechanism, as published",
     "gallery rows, from whoever sees the axes; not the targets", 2},
    {"candidate-ppca", "private PCA, exponential mechanism over public candidates",
     "gallery rows, from whoever sees the axes; not the targets", 4},
    {"random-projection", "private random projections", "each target's features", 1},
    {"dp-dsne", "DP-dSNE", "rows of gallery and targets, but not from who embeds them", 100, true},
};

// Evenly taken numbers below `rows`, at most so many.
std::vector<int64_t> Some(int64_t rows, int64_t most) {
  const int64_t count = std::min(rows, most);
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < count; ++i) taken.push_back(i * rows / count);
  return taken;
}

// Where no target comes near.
constexpr double kFarAway = 1e12;

absl::StatusOr<BaselineRows> Embed(const baselines::Baseline& baseline,
                                   const baselines::Settings& settings, int64_t most_rows,
                                   const DataSplit& split, const baselines::Cost& cost,
                                   BitSource& bits) {
  const std::vector<int64_t> kept = Some(split.gallery.features.rows(), most_rows);
  DataSplit part{split.anchors, RowsOf(split.gallery, kept), split.targets};
  PM_ASSIGN_OR_RETURN(baselines::BaselineResult result, baseline.run(part, settings, cost, bits));
  BaselineRows rows{
      Matrix::Constant(split.gallery.features.rows(), result.gallery.cols(), kFarAway),
      std::move(result.targets)};
  for (size_t i = 0; i < kept.size(); ++i) {
    rows.gallery.row(kept[i]) = result.gallery.row(static_cast<Eigen::Index>(i));
  }
  return rows;
}

std::string NameOf(const Told& told, int64_t gallery_rows, int64_t most_rows) {
  if (gallery_rows <= most_rows) return told.name;
  return absl::StrCat(told.name, " (", most_rows, " gallery rows)");
}

}  // namespace

std::vector<Baseline> LibraryBaselines(int64_t dimension, int64_t gallery_rows,
                                       int64_t most_joint_rows) {
  const auto settings = baselines::Settings::OfDimension(dimension);
  std::vector<Baseline> all;
  for (const Told& told : kTold) {
    const baselines::Baseline* baseline = baselines::BaselineFromName(told.id).value();
    const int64_t most_rows = told.embeds_all ? most_joint_rows : gallery_rows;
    all.push_back(
        {.name = NameOf(told, gallery_rows, most_rows),
         .is_private = baseline->takes_epsilon,
         .protects = told.protects,
         .work = told.work,
         .rows = [=](const DataSplit& split, double epsilon, double delta, BitSource& bits) {
           return Embed(*baseline, settings, most_rows, split, {epsilon, delta}, bits);
         }});
  }
  return all;
}

}  // namespace privatemail
