#include "client/simulation/queries.h"

#include <cmath>
#include <numbers>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/cells/cell_lists.h"
#include "common/embedding/alignment.h"
#include "common/embedding/embed_rows.h"
#include "common/index/k_means.h"
#include "common/numerics/neighbors.h"
#include "common/numerics/point_source.h"

namespace privatemail::client::simulation {
namespace {

RowVector RandomDirection(Eigen::Index dim, uint64_t seed) {
  std::mt19937_64 bits(seed);
  const auto uniform = [&] { return (static_cast<double>(bits() >> 11) + 1) * 0x1p-53; };
  const RowVector normal = RowVector::NullaryExpr(dim, [&](Eigen::Index /*column*/) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  });
  return normal.normalized();
}

// The searcher's side of a target that has no slots to hide in.
JointSetting WithoutSlots(const Scene& scene, int64_t slot) {
  const JointSetting& with = scene.joint;
  PublicParameters parameters = with.parameters;
  parameters.slot_labels = {with.parameters.slot_labels[static_cast<size_t>(slot)]};
  LabelGraph graph(JoinLabels({parameters.slot_labels, scene.trial->split().anchors.labels}),
                   parameters.settings.label_graph, parameters.settings.KernelDenominator());
  return {.parameters = std::move(parameters),
          .anchors = with.anchors,
          .own_anchors = false,
          .pool = std::nullopt,
          .of_slot = {with.of_slot[static_cast<size_t>(slot)]},
          .label_graph = std::move(graph),
          .slot_of_anchor = {}};
}

int64_t WrongSlot(int64_t slot, int64_t slots, uint64_t seed) {
  std::mt19937_64 bits(seed);
  const auto others = static_cast<uint64_t>(slots - 1);
  return (slot + 1 + static_cast<int64_t>(bits() % others)) % slots;
}

// A release after post-processing, and the server's alignment of it: Kabsch-Umeyama on the anchor
// rows. FAILED_PRECONDITION: it cannot be aligned, or vanishes or overflows.
absl::StatusOr<Alignment> AlignRows(const Scene& scene, const JointSetting& joint,
                                    const FloatMatrix& release) {
  const Matrix& server = scene.embedded->anchors;
  PM_ASSIGN_OR_RETURN(const Matrix rows, PostProcess(release.cast<double>(), joint.label_graph,
                                                     joint.parameters.settings));
  Alignment result{.anchors = rows.bottomRows(server.rows()), .slots = rows.topRows(joint.slots())};
  const AlignmentTarget target(server);
  PM_ASSIGN_OR_RETURN(const Similarity map, target.KabschUmeyama(result.anchors));
  result.aligned_anchors = map.Apply(result.anchors);
  result.aligned_slots = map.Apply(result.slots);
  result.residual = target.RelativeResidual(map, result.anchors);
  return result;
}

struct SlotAnswer {
  std::vector<int64_t> rows;     // the k nearest of the gallery
  double relative_residual = 0;  // of the anchors under the alignment
};

// Nothing where the server would refuse the release.
absl::StatusOr<std::optional<SlotAnswer>> QueryJoint(const JointSetting& joint, const Scene& scene,
                                                     const QueryConfig& config, int64_t slot,
                                                     const RowVector& features, BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const Released release, Release(joint, config.cost, slot, features, bits));
  const absl::StatusOr<Alignment> aligned = AlignRows(scene, joint, release.rows);
  if (absl::IsFailedPrecondition(aligned.status())) return std::nullopt;
  PM_RETURN_IF_ERROR(aligned.status());
  // A server refuses a release of which any slot overflows.
  if (!aligned->aligned_slots.allFinite()) return std::nullopt;
  return SlotAnswer{
      RowsOf(scene.embedded->items.Search(aligned->aligned_slots.row(slot), scene.trial->k()))[0],
      aligned->residual};
}

absl::StatusOr<std::optional<SlotAnswer>> QueryOne(const Scene& scene, const QueryConfig& config,
                                                   size_t target) {
  const LabelledRows& targets = scene.trial->split().targets;
  const auto seed_of = [&](absl::string_view what) {
    return SeedOf(what, scene.trial->seed(), target);
  };
  PM_ASSIGN_OR_RETURN(int64_t slot, scene.joint.parameters.SlotOf(targets.labels[target]));
  if (config.label == QueryConfig::Label::kWrong) {
    slot = WrongSlot(slot, scene.joint.slots(), seed_of("label"));
  }
  const RowVector features =
      config.feature == QueryConfig::Feature::kOwn
          ? RowVector(targets.features.row(static_cast<Eigen::Index>(target)))
          : RandomDirection(targets.features.cols(), seed_of("feature"));
  SeededBits bits(seed_of("release"));
  if (config.slots) return QueryJoint(scene.joint, scene, config, slot, features, bits);
  return QueryJoint(WithoutSlots(scene, slot), scene, config, 0, features, bits);
}

constexpr int64_t kCellCounts[] = {2, 3, 4, 6, 8, 11, 15, 20, 30, 50, 80, 150, 300};

// The minimum mean number of points per cell: with fewer, cells move with every split, and more of
// them show where single items lie.
constexpr int64_t kFewestPoints = 5;

// Every fourth item, in no order that labels could have: splits are random.
bool IsKnown(size_t item) { return item % 4 != 0; }

std::vector<std::vector<int64_t>> NeighborsAmong(const Matrix& items) {
  std::vector<std::vector<int64_t>> neighbors =
      RowsOf(ExactIndex(items).Search(items, Demand::kRanks + 1));
  for (size_t item = 0; item < neighbors.size(); ++item) {
    std::vector<int64_t>& rows = neighbors[item];
    const auto self = std::ranges::find(rows, static_cast<int64_t>(item));
    rows.erase(self != rows.end() ? self : rows.end() - 1);  // not there among many equal ones
  }
  return neighbors;
}

absl::StatusOr<CellMechanism> MechanismOf(int64_t cells, double epsilon) {
  if (cells < 2) return absl::FailedPreconditionError("all anchors lie in one cell");
  return CellMechanism::Create({.cells = cells, .ask = 1, .focus = 1, .epsilon = epsilon});
}

}  // namespace

Matrix ExactRows(const JointSetting& joint, const TargetIndependentPart& part, int64_t slot,
                 const RowVector& unit_features) {
  return PrivateIteration(joint, part.start,
                          FeatureGraph(joint, SlotRows(joint, part, slot, unit_features)));
}

absl::StatusOr<Released> Release(const JointSetting& joint, const std::optional<PrivacyCost>& cost,
                                 int64_t slot, const RowVector& unit_features, BitSource& bits) {
  if (cost) {
    PM_ASSIGN_OR_RETURN(TargetIndependentPart part, DrawTargetIndependentPart(joint, *cost, bits));
    PM_ASSIGN_OR_RETURN(std::vector<FloatMatrix> released,
                        ReleaseIterations(joint, part, *cost, slot, unit_features, bits));
    const double noise_stddev = part.noise.mechanism->noise_stddev();
    return Released{
        .rows = std::move(released.back()), .known = std::move(part), .noise_stddev = noise_stddev};
  }
  PM_ASSIGN_OR_RETURN(TargetIndependentPart part, DrawStartAndDummies(joint, bits));
  FloatMatrix rows = ExactRows(joint, part, slot, unit_features).cast<float>();
  return Released{.rows = std::move(rows), .known = std::move(part)};
}

absl::StatusOr<Answers> QueryAll(const Scene& scene, const QueryConfig& config) {
  Answers answers;
  double residuals = 0;
  int64_t answered = 0;
  for (size_t target = 0; target < scene.trial->split().targets.labels.size(); ++target) {
    PM_ASSIGN_OR_RETURN(std::optional<SlotAnswer> answer, QueryOne(scene, config, target));
    answers.rows.push_back(answer ? std::move(answer->rows) : std::vector<int64_t>());
    if (!answer) continue;
    residuals += answer->relative_residual;
    ++answered;
  }
  answers.mean_residual = residuals / static_cast<double>(std::max<int64_t>(1, answered));
  return answers;
}

absl::StatusOr<EmbeddedTogether> EmbedTogether(const Scene& scene) {
  const Split& split = scene.trial->split();
  const Eigen::Index gallery = split.gallery.features.rows();
  const Eigen::Index targets = split.targets.features.rows();
  Matrix rows(gallery + targets + split.anchors.features.rows(), split.gallery.features.cols());
  rows << split.gallery.features, split.targets.features, split.anchors.features;
  PM_ASSIGN_OR_RETURN(
      const EmbeddedRows embedded,
      EmbedRows(scene.joint.parameters, std::make_shared<MatrixPoints>(std::move(rows)),
                JoinLabels({split.gallery.labels, split.targets.labels, split.anchors.labels}),
                nullptr));
  return EmbeddedTogether{.gallery = embedded.coordinates.topRows(gallery),
                          .targets = embedded.coordinates.middleRows(gallery, targets)};
}

absl::StatusOr<Objective> ServerObjective(const Scene& scene, int iterations) {
  const Split& split = scene.trial->split();
  const PublicParameters& parameters = scene.joint.parameters;
  const EmbeddingSettings& settings = parameters.settings;
  const LabelGraph label_graph(JoinLabels({split.gallery.labels, split.anchors.labels}),
                               settings.label_graph, settings.KernelDenominator());
  PM_ASSIGN_OR_RETURN(const auto feature_graph, scene.trial->ServerGraph(parameters));
  Matrix z = PublicStart(parameters, label_graph);
  Objective result;
  for (int step = 0; step < iterations; ++step) {
    Vector degrees;
    absl::StatusOr<Matrix> next =
        SmlqIterate(std::move(z), *feature_graph, label_graph, settings.alpha, 1,
                    /*normalise=*/false, nullptr, &degrees);
    if (absl::IsFailedPrecondition(next.status())) break;  // it overflows
    PM_RETURN_IF_ERROR(next.status());
    z = *std::move(next);
    PM_ASSIGN_OR_RETURN(const double objective,
                        SmlqObjective(z, *feature_graph, degrees, label_graph, settings.alpha));
    const double scaled = objective / z.squaredNorm();
    if (!std::isfinite(objective) || !std::isfinite(scaled)) break;
    result.as_defined.push_back(objective);
    result.scaled.push_back(scaled);
  }
  return result;
}

absl::StatusOr<Alignment> AlignRelease(const Scene& scene, int64_t target, const PrivacyCost& cost,
                                       const std::string& part) {
  const LabelledRows& targets = scene.trial->split().targets;
  PM_RETURN_IF_ERROR(CheckIntegerBetween("target", target, 0, std::ssize(targets.labels) - 1));
  PM_ASSIGN_OR_RETURN(const int64_t slot,
                      scene.joint.parameters.SlotOf(targets.labels[static_cast<size_t>(target)]));
  SeededBits bits(SeedOf(part, scene.trial->seed()));
  PM_ASSIGN_OR_RETURN(const Released released,
                      Release(scene.joint, cost, slot, targets.features.row(target), bits));
  PM_ASSIGN_OR_RETURN(Alignment result, AlignRows(scene, scene.joint, released.rows));
  result.slot = slot;
  return result;
}

struct CellTrial::Cells {
  std::vector<std::vector<int64_t>> lists;  // the rows that answer for each
  Matrix centroids;

  int64_t NearestTo(const RowVector& query) const {
    return NearestRows(query, centroids, 1)[0][0].row;
  }
};

CellTrial::CellTrial(const Trial& trial)
    : trial_(trial), neighbors_(NeighborsAmong(trial.split().gallery.features)) {}

std::shared_ptr<const FloatMatrix> CellTrial::Centroids(int64_t count) const {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const FloatMatrix>> {
    return std::make_shared<const FloatMatrix>(
        KMeans(trial_.split().anchors.features.cast<float>(), count, {}));
  };
  return *centroids_.Get(count, make);
}

CellTrial::Cells CellTrial::MakeCells(const CellPlan& plan, double epsilon, bool all) const {
  const Matrix& gallery = trial_.split().gallery.features;
  const FloatMatrix& centroids = *Centroids(plan.cells);
  Cells cells{.lists = {}, .centroids = centroids.cast<double>()};
  KnownQueries known;
  for (size_t item = 0; item < neighbors_.size(); ++item) {
    if (!all && !IsKnown(item)) continue;
    known.nearest.push_back(neighbors_[item]);
    known.cells.push_back(cells.NearestTo(gallery.row(static_cast<Eigen::Index>(item))));
  }
  cells.lists = CellLists(Demand(known, centroids.rows(), gallery.rows()),
                          FindItemCells(gallery.cast<float>(), centroids), epsilon, plan.length);
  return cells;
}

absl::StatusOr<double> CellTrial::ExpectedFidelity(const CellPlan& plan, double epsilon) const {
  const Cells cells = MakeCells(plan, epsilon, /*all=*/false);
  const int64_t count = std::ssize(cells.lists);
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism, MechanismOf(count, epsilon));
  const double nearest = mechanism.OverlapProbabilities()[1];
  const double other = (1 - nearest) / static_cast<double>(count - 1);
  std::vector<std::vector<int64_t>> answers_for(neighbors_.size());  // the cells of each item
  for (size_t cell = 0; cell < cells.lists.size(); ++cell) {
    for (const int64_t row : cells.lists[cell]) {
      answers_for[static_cast<size_t>(row)].push_back(static_cast<int64_t>(cell));
    }
  }
  double found = 0, wanted = 0;
  for (size_t item = 0; item < neighbors_.size(); ++item) {
    if (IsKnown(item)) continue;
    const int64_t own =
        cells.NearestTo(trial_.split().gallery.features.row(static_cast<Eigen::Index>(item)));
    const size_t k = std::min(static_cast<size_t>(trial_.k()), neighbors_[item].size());
    for (size_t near = 0; near < k; ++near) {
      for (const int64_t cell : answers_for[static_cast<size_t>(neighbors_[item][near])]) {
        found += cell == own ? nearest : other;
      }
      wanted += 1;
    }
  }
  return found / wanted;
}

absl::StatusOr<CellPlan> CellTrial::PlanFor(double epsilon, double share) const {
  const int64_t items = trial_.split().gallery.features.rows();
  // As many as are asked for can come back.
  const int64_t length =
      std::max<int64_t>(trial_.k(), std::llround(share * static_cast<double>(items)));
  std::optional<CellPlan> best;
  double before = 0;
  int worse = 0;
  for (const int64_t cells : kCellCounts) {
    if (cells > 2 && cells * kFewestPoints > trial_.split().anchors.features.rows()) break;
    CellPlan plan{.cells = cells, .length = length};
    PM_ASSIGN_OR_RETURN(plan.expected_fidelity, ExpectedFidelity(plan, epsilon));
    // It rises with the cells, then falls.
    worse = plan.expected_fidelity > before ? 0 : worse + 1;
    before = std::max(before, plan.expected_fidelity);
    if (!best || plan.expected_fidelity > best->expected_fidelity) best = plan;
    if (worse == 2) break;
  }
  return *best;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> CellTrial::QueryAll(
    const CellPlan& plan, double epsilon, const std::string& part) const {
  const Cells cells = MakeCells(plan, epsilon, /*all=*/true);
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism, MechanismOf(std::ssize(cells.lists), epsilon));
  const Split& split = trial_.split();
  std::vector<std::vector<int64_t>> answers;
  for (size_t target = 0; target < split.targets.labels.size(); ++target) {
    const RowVector features = split.targets.features.row(static_cast<Eigen::Index>(target));
    SeededBits bits(SeedOf(part, trial_.seed(), target));
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> chosen,
                        mechanism.Choose({cells.NearestTo(features)}, bits));
    const std::vector<int64_t>& returned = cells.lists[static_cast<size_t>(chosen[0])];
    const Matrix candidates = split.gallery.features(returned, Eigen::all);
    std::vector<int64_t>& found =
        answers.emplace_back(NearestOf(features, candidates, trial_.k())[0]);
    for (int64_t& place : found) place = returned[static_cast<size_t>(place)];
  }
  return answers;
}

}  // namespace privatemail::client::simulation
