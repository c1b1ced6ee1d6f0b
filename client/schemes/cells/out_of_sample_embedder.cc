#include "privatemail/out_of_sample_embedder.h"

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/query_limits.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/affinity.h"
#include "common/embedding/alignment.h"
#include "common/embedding/embed_rows.h"
#include "common/embedding/label_graph.h"
#include "common/embedding/plan_affinity.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {
namespace {

// The tolerance of the server's own embedding.
constexpr double kAffinityTolerance = 1e-6;
constexpr int64_t kMaxIterateValues = int64_t{1} << 27;

// The effect of one iteration on a row that moves no other.
struct Step {
  Matrix class_sums;  // slots x k: for each class sum_j A_cj x_j of the label graph
  Matrix factor;      // k x k, of all rows at its end
};

// The embedding of the anchors alone.
struct EmbeddedAnchors {
  Matrix starts;  // n x (T k): the start of each iteration
  std::vector<Step> steps = {};
  Matrix coordinates = {};  // n x k: the result
};

absl::Status CheckSize(const EmbeddingSettings& settings, int64_t anchors) {
  const int64_t values = anchors * settings.embedding_dim * settings.steps;
  if (values <= kMaxIterateValues) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("anchors x embedding_dim x steps must be at most ", kMaxIterateValues,
                   " to place queries among them, but is ", values));
}

std::unique_ptr<AffinityOperator> FeatureGraph(const EmbeddingSettings& settings,
                                               const Matrix& unit_anchors) {
  const AffinityPlan plan = PlanAffinity({.rows = unit_anchors.rows(),
                                          .cols = unit_anchors.cols(),
                                          .kernel_denominator = settings.KernelDenominator(),
                                          .columns = settings.embedding_dim,
                                          .products = settings.steps,
                                          .in_memory = true,
                                          .max_squared_length = kUnitSquaredLength,
                                          .tolerance = kAffinityTolerance});
  return MakeAffinity(plan, unit_anchors, settings.KernelDenominator(), settings.steps);
}

// first_of_slot: a row of each class, where L_Y x = degree x - sum_j A_j x_j is solved for the sum.
Matrix ClassSums(const LabelGraph& label_graph, const std::vector<int64_t>& first_of_slot,
                 const Matrix& x) {
  const Matrix product = label_graph.MultiplyLaplacian(x);
  Matrix sums(std::ssize(first_of_slot), x.cols());
  for (Eigen::Index slot = 0; slot < sums.rows(); ++slot) {
    const int64_t row = first_of_slot[static_cast<size_t>(slot)];
    sums.row(slot) = label_graph.DegreeOf(row) * x.row(row) - product.row(row);
  }
  return sums;
}

absl::StatusOr<EmbeddedAnchors> EmbedAnchors(const PublicParameters& parameters,
                                             const Matrix& unit_anchors,
                                             const LabelGraph& label_graph,
                                             const std::vector<int64_t>& first_of_slot,
                                             const ComputingDeadline& deadline) {
  const EmbeddingSettings& settings = parameters.settings;
  const Eigen::Index n = unit_anchors.rows();
  const Eigen::Index k = settings.embedding_dim;
  PM_RETURN_IF_ERROR(CheckSize(settings, n));
  const auto feature_graph = FeatureGraph(settings, unit_anchors);
  EmbeddedAnchors embedded{.starts = Matrix(n, k * settings.steps)};
  Matrix x = PublicStart(parameters, label_graph);
  for (int step = 1; step <= settings.steps; ++step) {
    embedded.starts.middleCols((step - 1) * k, k) = x;
    Step& one = embedded.steps.emplace_back();
    one.class_sums = ClassSums(label_graph, first_of_slot, x);
    PM_ASSIGN_OR_RETURN(
        x, SmlqUpdate(x, *feature_graph, label_graph, settings.alpha, deadline.products()));
    PM_ASSIGN_OR_RETURN(one.factor, NormalisingFactor("the anchors", step, settings.steps,
                                                      settings.normalise, label_graph, x));
    x *= one.factor;
    PM_RETURN_IF_ERROR(deadline.Check());
  }
  embedded.coordinates = std::move(x);
  return embedded;
}

}  // namespace

struct OutOfSampleEmbedder::Setting {
  PublicParameters parameters;
  Matrix anchors;          // unit rows
  Vector squared_lengths;  // of them
  Matrix class_means;      // slots x d
  Vector label_degrees;    // of each class
  Matrix starts;           // slots x k: the start of a row of each class; 0 if starts are random
  EmbeddedAnchors embedded;
  Similarity to_server;
  ExpectedAlignment expected_alignment;
  double pairing_score = 0;
};

absl::StatusOr<OutOfSampleEmbedder> OutOfSampleEmbedder::Create(const PublicParameters& parameters,
                                                                const Matrix& unit_anchors,
                                                                const std::vector<int32_t>& labels,
                                                                const Matrix& server_anchors,
                                                                const ClientLimits& limits) {
  const ComputingDeadline deadline("placing queries among the anchors", limits);
  if (std::ssize(labels) != unit_anchors.rows()) {
    return absl::InvalidArgumentError(absl::StrCat("anchors must have one label a row, but have ",
                                                   unit_anchors.rows(), " rows and ", labels.size(),
                                                   " labels"));
  }
  PM_RETURN_IF_ERROR(CheckLabels("anchors", parameters, labels));
  PM_ASSIGN_OR_RETURN(const auto of_slot, RowsBySlot("anchors", parameters, labels));
  std::vector<int64_t> first_of_slot;
  first_of_slot.reserve(of_slot.size());
  for (const std::vector<int64_t>& rows : of_slot) first_of_slot.push_back(rows.front());
  const EmbeddingSettings& settings = parameters.settings;
  const LabelGraph label_graph(labels, settings.label_graph, settings.KernelDenominator());
  auto setting = std::make_shared<Setting>();
  PM_ASSIGN_OR_RETURN(setting->embedded,
                      EmbedAnchors(parameters, unit_anchors, label_graph, first_of_slot, deadline));
  const Matrix& own = setting->embedded.coordinates;
  PM_ASSIGN_OR_RETURN(setting->to_server, KabschUmeyama(own, server_anchors, /*with_scale=*/true));
  std::vector<int64_t> slot_of_anchor;
  for (const int32_t label : labels) slot_of_anchor.push_back(*parameters.SlotOf(label));
  PM_ASSIGN_OR_RETURN(setting->expected_alignment,
                      ExpectAlignment(MeansThenRows(own, slot_of_anchor), slot_of_anchor,
                                      server_anchors, deadline.work()));
  setting->pairing_score =
      PairingScore(setting->to_server.Apply(own), server_anchors, slot_of_anchor);
  setting->label_degrees.resize(std::ssize(first_of_slot));
  for (Eigen::Index slot = 0; slot < setting->label_degrees.size(); ++slot) {
    setting->label_degrees[slot] = label_graph.DegreeOf(first_of_slot[static_cast<size_t>(slot)]);
  }
  setting->starts = Matrix::Zero(std::ssize(first_of_slot), settings.embedding_dim);
  if (settings.start == StartKind::kClasses) {
    setting->starts =
        settings.start_stddev * ClassCode(setting->starts.rows(), settings.embedding_dim);
  }
  setting->parameters = parameters;
  setting->anchors = unit_anchors;
  setting->squared_lengths = unit_anchors.rowwise().squaredNorm();
  setting->class_means = ClassMeans(parameters, unit_anchors, labels);
  return OutOfSampleEmbedder(std::move(setting));
}

int32_t OutOfSampleEmbedder::GuessLabel(const RowVector& unit_features) const {
  const int64_t slot = NearestSlot(setting_->class_means, unit_features);
  return setting_->parameters.slot_labels[static_cast<size_t>(slot)];
}

absl::StatusOr<RowVector> OutOfSampleEmbedder::Embed(const RowVector& unit_features,
                                                     int32_t label) const {
  const EmbeddingSettings& settings = setting_->parameters.settings;
  const EmbeddedAnchors& embedded = setting_->embedded;
  PM_RETURN_IF_ERROR(CheckColumns("query", setting_->anchors.cols(), unit_features.size()));
  const absl::StatusOr<int64_t> slot = setting_->parameters.SlotOf(label);
  if (!slot.ok()) return absl::InvalidArgumentError(slot.status().message());
  Matrix affinity(1, setting_->anchors.rows());
  AffinityBetween(unit_features, Vector::Constant(1, unit_features.squaredNorm()),
                  setting_->anchors, setting_->squared_lengths, settings.KernelDenominator(),
                  &affinity);
  const double degree = affinity.sum();
  const RowVector pulls = affinity * embedded.starts;
  // The update of SmlqIterate for this row alone.
  RowVector x = setting_->starts.row(*slot);
  for (size_t step = 0; step < embedded.steps.size(); ++step) {
    const auto& [class_sums, factor] = embedded.steps[step];
    if (degree > ZeroDegreeThreshold(setting_->anchors.rows())) {
      const RowVector label_term = setting_->label_degrees[*slot] * x - class_sums.row(*slot);
      const RowVector pull = pulls.segment(static_cast<Eigen::Index>(step) * x.size(), x.size());
      x = 0.5 * ((settings.alpha * label_term + pull) / degree + x);
    }
    x *= factor;
  }
  const Matrix placed = setting_->to_server.Apply(Matrix(x));
  if (placed.allFinite()) return RowVector(placed.row(0));
  return RowVector::Constant(x.size(), std::numeric_limits<double>::infinity());
}

const ExpectedAlignment& OutOfSampleEmbedder::expected_alignment() const {
  return setting_->expected_alignment;
}

double OutOfSampleEmbedder::pairing_score() const { return setting_->pairing_score; }

}  // namespace privatemail::client
