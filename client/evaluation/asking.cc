#include "client/evaluation/asking.h"

#include <cmath>
#include <numbers>
#include <random>

#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"
#include "common/cells/cell_lists.h"
#include "common/index/k_means.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {
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
  const std::vector<int32_t>& anchor_labels = scene.trial->split.anchors.labels;
  PublicParameters parameters = with.parameters;
  parameters.slot_labels = {with.parameters.slot_labels[static_cast<size_t>(slot)]};
  std::vector<int32_t> labels = parameters.slot_labels;
  labels.insert(labels.end(), anchor_labels.begin(), anchor_labels.end());
  LabelGraph graph(labels, parameters.settings.label_graph,
                   parameters.settings.KernelDenominator());
  return {.parameters = std::move(parameters),
          .anchors = with.anchors,
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

// Nothing where the server would refuse the release.
absl::StatusOr<std::optional<SlotAnswer>> Search(const EmbeddedGallery& gallery,
                                                 const JointSetting& joint,
                                                 const FloatMatrix& release, bool post_process,
                                                 int64_t k, int64_t slot) {
  absl::StatusOr<SlotAnswer> answer = SearchSlot(gallery, release.cast<double>(), joint.label_graph,
                                                 joint.parameters.settings, post_process, slot, k);
  if (absl::IsFailedPrecondition(answer.status())) return std::nullopt;
  PM_RETURN_IF_ERROR(answer.status());
  return *std::move(answer);
}

absl::StatusOr<std::optional<SlotAnswer>> Ask(const JointSetting& joint,
                                              const EmbeddedGallery& gallery, const Asking& asking,
                                              int64_t k, int64_t slot, const RowVector& features,
                                              BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const Released release, ReleaseOf(joint, asking.cost, slot, features, bits));
  return Search(gallery, joint, release.rows, /*post_process=*/true, k, slot);
}

absl::StatusOr<std::optional<SlotAnswer>> AskAnchored(const Scene& scene, const PrivacyCost& cost,
                                                      const PlacedTarget& target, BitSource& bits) {
  PM_RETURN_IF_ERROR(scene.anchored.status());
  const AnchoredSetting& setting = *scene.anchored;
  PM_ASSIGN_OR_RETURN(const ReleasedSlots released, ReleaseAnchored(setting, cost, target, bits));
  return Search(*scene.embedded, scene.joint,
                PosteriorMeanCoordinates(setting, released.noise, TraitsOf(cost.mechanism).law,
                                         released.rows),
                /*post_process=*/false, scene.trial->k, target.slot);
}

absl::StatusOr<std::optional<SlotAnswer>> AskOne(const Scene& scene, const Asking& asking,
                                                 size_t target) {
  const Trial& trial = *scene.trial;
  const auto row = static_cast<Eigen::Index>(target);
  const auto seed_of = [&](absl::string_view what) { return SeedOf(what, trial.seed, target); };
  PM_ASSIGN_OR_RETURN(int64_t slot,
                      scene.joint.parameters.SlotOf(trial.split.targets.labels[target]));
  if (asking.label == Asking::Label::kWrong) {
    slot = WrongSlot(slot, scene.joint.slots(), seed_of("label"));
  }
  const RowVector features =
      asking.feature == Asking::Feature::kOwn
          ? RowVector(trial.split.targets.features.row(row))
          : RandomDirection(trial.split.targets.features.cols(), seed_of("feature"));
  SeededBits bits(seed_of("release"));
  if (asking.scheme == Asking::Scheme::kAnchored) {
    return AskAnchored(scene, asking.cost.value_or(PrivacyCost{}), {.slot = slot, .row = features},
                       bits);
  }
  if (asking.slots) {
    return Ask(scene.joint, *scene.embedded, asking, trial.k, slot, features, bits);
  }
  return Ask(WithoutSlots(scene, slot), *scene.embedded, asking, trial.k, 0, features, bits);
}

constexpr int64_t kCellCounts[] = {2, 3, 4, 6, 8, 11, 15, 20, 30, 50, 80, 150, 300};

// Of a cell's, on an average: with fewer, cells move with every split, and more of them show where
// single items lie.
constexpr int64_t kFewestPoints = 5;

std::vector<int64_t> RowsOf(const std::vector<Neighbor>& neighbors) {
  std::vector<int64_t> rows;
  rows.reserve(neighbors.size());
  for (const Neighbor& neighbor : neighbors) rows.push_back(neighbor.row);
  return rows;
}

// Every fourth item, in no order that labels could have: splits are random.
bool IsKnown(size_t item) { return item % 4 != 0; }

ItemNeighbors NeighborsAmong(const Matrix& items) {
  const int64_t count = std::min<int64_t>(Demand::kRanks + 1, items.rows());
  ItemNeighbors neighbors;
  for (const std::vector<Neighbor>& nearest : ExactIndex(items).Search(items, count)) {
    std::vector<int64_t>& rows = neighbors.emplace_back(RowsOf(nearest));
    const auto item = std::ssize(neighbors) - 1;
    const auto self = std::find(rows.begin(), rows.end(), item);
    rows.erase(self != rows.end() ? self : rows.end() - 1);  // not there among many equal ones
  }
  return neighbors;
}

std::shared_ptr<const ItemNeighbors> NeighborsOf(const Trial& trial) {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const ItemNeighbors>> {
    return std::make_shared<const ItemNeighbors>(NeighborsAmong(trial.split.gallery.features));
  };
  const std::shared_ptr<SceneCache> kept = trial.kept.lock();
  return kept == nullptr ? *make() : *kept->item_neighbors.Get(trial.seed, make);
}

absl::StatusOr<CellMechanism> MechanismOf(int64_t cells, double epsilon) {
  if (cells < 2) return absl::FailedPreconditionError("all anchors lie in one cell");
  return CellMechanism::Create({.cells = cells, .ask = 1, .focus = 1, .epsilon = epsilon});
}

}  // namespace

void Answers::Add(const Scores& scores) {
  class_share.push_back(scores.class_share);
  hit.push_back(scores.hit);
  fidelity.push_back(scores.fidelity);
}

JobResult ToResult(const Answers& answers) {
  JobResult result = {{"class_share", answers.class_share},
                      {"hit", answers.hit},
                      {"fidelity", answers.fidelity},
                      {"residual", {answers.mean_residual}},
                      {"unanswered", {static_cast<double>(answers.unanswered)}}};
  if (!answers.built) result["not_built"] = {1};
  return result;
}

Matrix ExactRows(const JointSetting& joint, const TargetIndependentPart& part, int64_t slot,
                 const RowVector& unit_features) {
  return PrivateIteration(joint, part.start,
                          FeatureGraph(joint, SlotRows(joint, part, slot, unit_features)));
}

absl::StatusOr<Released> ReleaseOf(const JointSetting& joint,
                                   const std::optional<PrivacyCost>& cost, int64_t slot,
                                   const RowVector& unit_features, BitSource& bits) {
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

absl::StatusOr<ReleasedSlots> ReleaseAnchored(const AnchoredSetting& setting,
                                              const std::optional<PrivacyCost>& cost,
                                              const PlacedTarget& target, BitSource& bits) {
  // With slots all rows are scaled alike, independently of the cost.
  constexpr PrivacyCost kAny{.epsilon = 1, .delta = 1e-5};
  PM_ASSIGN_OR_RETURN(AnchoredNoise noise, MakeAnchoredNoise(setting, cost.value_or(kAny)));
  PM_ASSIGN_OR_RETURN(std::vector<int64_t> dummies, DrawDummies(setting.joint, bits));
  const Matrix exact = ScaledSlotRows(setting, noise, dummies, target);
  FloatMatrix rows = exact.cast<float>();
  if (cost) {
    PM_ASSIGN_OR_RETURN(rows, noise.mechanism->Release(exact, bits));
  }
  return ReleasedSlots{
      .rows = std::move(rows), .dummies = std::move(dummies), .noise = std::move(noise)};
}

absl::StatusOr<Answers> AskAll(const Scene& scene, const Asking& asking) {
  const Trial& trial = *scene.trial;
  Answers answers;
  double residuals = 0;
  for (size_t target = 0; target < trial.split.targets.labels.size(); ++target) {
    PM_ASSIGN_OR_RETURN(const std::optional<SlotAnswer> found, AskOne(scene, asking, target));
    if (!found) {
      ++answers.unanswered;
      answers.Add({});
      continue;
    }
    residuals += found->relative_residual;
    answers.Add(ScoreOf(found->rows, trial.split.gallery.labels, trial.split.targets.labels[target],
                        trial.nearest[target]));
  }
  const auto answered = static_cast<double>(trial.split.targets.labels.size()) -
                        static_cast<double>(answers.unanswered);
  answers.mean_residual = residuals / std::max(1.0, answered);
  return answers;
}

absl::StatusOr<Answers> BuildAndAskAll(const std::shared_ptr<const Trial>& trial,
                                       const EmbeddingSettings& settings, const Asking& asking) {
  if (const absl::Status valid = Validate(settings); !valid.ok()) {
    return absl::FailedPreconditionError(valid.message());
  }
  const auto scene = MakeScene(trial, settings);
  if (!absl::IsFailedPrecondition(scene.status())) {
    PM_RETURN_IF_ERROR(scene.status());
    return AskAll(**scene, asking);
  }
  Answers none;
  for (size_t i = 0; i < trial->split.targets.labels.size(); ++i) none.Add({});
  none.unanswered = static_cast<int64_t>(none.hit.size());
  none.built = false;
  return none;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> FoundBy(const Scene& scene,
                                                          const Asking& asking) {
  std::vector<std::vector<int64_t>> rows;
  for (size_t target = 0; target < scene.trial->split.targets.labels.size(); ++target) {
    PM_ASSIGN_OR_RETURN(std::optional<SlotAnswer> found, AskOne(scene, asking, target));
    rows.push_back(found ? std::move(found->rows) : std::vector<int64_t>());
  }
  return rows;
}

Answers ScoreRows(const Trial& trial, const Matrix& gallery, const Matrix& targets) {
  Answers answers;
  const auto found = NearestOf(targets, gallery, trial.k);
  const bool searchable = gallery.allFinite();
  for (size_t i = 0; i < found.size(); ++i) {
    if (!searchable || !targets.row(static_cast<Eigen::Index>(i)).allFinite()) {
      ++answers.unanswered;
      answers.Add({});
      continue;
    }
    answers.Add(ScoreOf(found[i], trial.split.gallery.labels, trial.split.targets.labels[i],
                        trial.nearest[i]));
  }
  return answers;
}

Answers ScoreChance(const Trial& trial) {
  Answers answers;
  for (const int32_t label : trial.split.targets.labels) {
    answers.Add(ScoresByChance(trial.split.gallery.labels, label, trial.k));
  }
  return answers;
}

struct CellTrial::Cells {
  std::vector<std::vector<int64_t>> lists;  // the rows that answer for each
  Matrix centroids;

  int64_t NearestTo(const RowVector& query) const {
    return NearestRows(query, centroids, 1)[0][0].row;
  }
};

int64_t ListLength(double share, int64_t k, int64_t items) {
  return std::max<int64_t>(k, std::llround(share * static_cast<double>(items)));
}

CellTrial::CellTrial(std::shared_ptr<const Trial> trial)
    : trial_(std::move(trial)), neighbors_(NeighborsOf(*trial_)) {}

int64_t CellTrial::LengthOf(double share) const {
  return ListLength(share, trial_->k, trial_->split.gallery.features.rows());
}

std::shared_ptr<const FloatMatrix> CellTrial::Centroids(int64_t count) const {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const FloatMatrix>> {
    return std::make_shared<const FloatMatrix>(
        KMeans(trial_->split.anchors.features.cast<float>(), count, {}));
  };
  return *centroids_.Get(count, make);
}

CellTrial::Cells CellTrial::MakeCells(const CellPlan& plan, double epsilon, bool all) const {
  const Matrix& gallery = trial_->split.gallery.features;
  const FloatMatrix& centroids = *Centroids(plan.cells);
  Cells cells{.lists = {}, .centroids = centroids.cast<double>()};
  KnownQueries known;
  for (size_t item = 0; item < neighbors_->size(); ++item) {
    if (!all && !IsKnown(item)) continue;
    known.nearest.push_back((*neighbors_)[item]);
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
  const ItemNeighbors& neighbors = *neighbors_;
  std::vector<std::vector<int64_t>> answers_for(neighbors.size());  // the cells of each item
  for (size_t cell = 0; cell < cells.lists.size(); ++cell) {
    for (const int64_t row : cells.lists[cell]) {
      answers_for[static_cast<size_t>(row)].push_back(static_cast<int64_t>(cell));
    }
  }
  double found = 0, wanted = 0;
  for (size_t item = 0; item < neighbors.size(); ++item) {
    if (IsKnown(item)) continue;
    const int64_t own =
        cells.NearestTo(trial_->split.gallery.features.row(static_cast<Eigen::Index>(item)));
    const size_t k = std::min(static_cast<size_t>(trial_->k), neighbors[item].size());
    for (size_t near = 0; near < k; ++near) {
      for (const int64_t cell : answers_for[static_cast<size_t>(neighbors[item][near])]) {
        found += cell == own ? nearest : other;
      }
      wanted += 1;
    }
  }
  return found / wanted;
}

absl::StatusOr<CellPlan> CellTrial::PlanFor(double epsilon, double share) const {
  std::optional<CellPlan> best;
  double before = 0;
  int worse = 0;
  for (const int64_t cells : kCellCounts) {
    if (cells > 2 && cells * kFewestPoints > trial_->split.anchors.features.rows()) break;
    CellPlan plan{.cells = cells, .length = LengthOf(share)};
    PM_ASSIGN_OR_RETURN(plan.expected_fidelity, ExpectedFidelity(plan, epsilon));
    // It rises with the cells, then falls.
    worse = plan.expected_fidelity > before ? 0 : worse + 1;
    before = std::max(before, plan.expected_fidelity);
    if (!best || plan.expected_fidelity > best->expected_fidelity) best = plan;
    if (worse == 2) break;
  }
  return *best;
}

absl::StatusOr<Answers> CellTrial::AskAll(const CellPlan& plan, double epsilon,
                                          const std::string& part) const {
  const Cells cells = MakeCells(plan, epsilon, /*all=*/true);
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism, MechanismOf(std::ssize(cells.lists), epsilon));
  const DataSplit& split = trial_->split;
  Answers answers;
  for (size_t target = 0; target < split.targets.labels.size(); ++target) {
    const RowVector features = split.targets.features.row(static_cast<Eigen::Index>(target));
    SeededBits bits(SeedOf(part, trial_->seed, target));
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> asked,
                        mechanism.Choose({cells.NearestTo(features)}, bits));
    const std::vector<int64_t>& returned = cells.lists[static_cast<size_t>(asked[0])];
    const Matrix candidates = split.gallery.features(returned, Eigen::all);
    std::vector<int64_t> found = NearestOf(features, candidates, trial_->k)[0];
    for (int64_t& place : found) place = returned[static_cast<size_t>(place)];
    answers.Add(ScoreOf(found, split.gallery.labels, split.targets.labels[target],
                        trial_->nearest[target]));
  }
  return answers;
}

}  // namespace privatemail::client
