// Bytes and fidelity of each item code.
//
// usage: code_fidelity VECTORS LABELS ANCHORS CELLS ITEMS
//
// VECTORS and LABELS have the formats of common/features/vector_file.h. Rows are split at random
// into ANCHORS anchors, kTargets targets and a gallery. Each target queries its nearest one of
// CELLS cells for ITEMS items and ranks them by their decoded features. Fidelity is the mean share
// of the kMatches nearest returned items among the kMatches ranked first.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/embedding/default_settings.h"
#include "common/features/vector_file.h"
#include "common/numerics/neighbors.h"
#include "tests/benchmarks/coded_items.h"
#include "tests/testing/build_cells.h"

namespace privatemail {
namespace {

using namespace server;  // NOLINT: lists

constexpr int64_t kMatches = 8;
constexpr int64_t kTargets = 500;
constexpr double kEpsilon = 4;  // decides which items are worth sending

struct Scene {
  Anchors anchors;
  Gallery gallery;
  FloatMatrix unit_anchors;
  Matrix unit_items;
  Matrix unit_targets;
};

Scene Deal(const Labelled& all, int64_t anchors) {
  std::vector<int64_t> rows(all.labels.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), std::mt19937_64(1));
  const auto targets_begin = rows.begin() + anchors;
  const auto gallery_begin = targets_begin + kTargets;
  Scene scene;
  scene.anchors = Take(all, rows.begin(), targets_begin);
  scene.gallery = GalleryOf(Take(all, gallery_begin, rows.end()));
  scene.unit_anchors = UnitRows("anchors", scene.anchors.features).value().cast<float>();
  scene.unit_items = UnitRows("gallery", scene.gallery.features).value();
  scene.unit_targets =
      UnitRows("targets", Take(all, targets_begin, gallery_begin).features).value();
  return scene;
}

std::vector<int64_t> RowsOf(const std::vector<Neighbor>& neighbors) {
  std::vector<int64_t> rows;
  for (const Neighbor& one : neighbors) rows.push_back(one.row);
  std::sort(rows.begin(), rows.end());
  return rows;
}

double FidelityOf(const Scene& scene, const CellIndex& index, const Matrix& decoded,
                  const PublicParameters& parameters, int64_t items) {
  const Matrix centroids =
      CellCentroids(parameters.cell_partitions[0], scene.unit_anchors.cast<double>());
  double sum = 0;
  for (Eigen::Index i = 0; i < kTargets; ++i) {
    const Matrix target = scene.unit_targets.row(i);
    const auto cell = static_cast<uint32_t>(NearestRows(target, centroids, 1)[0][0].row);
    const auto rows = index.RowsFor(0, {cell}, kEpsilon, items, [] { return false; }).value();
    const std::vector<int64_t> answer(rows.begin(), rows.end());
    const auto first = RowsOf(NearestRows(target, decoded(answer, Eigen::all), kMatches)[0]);
    const auto nearest =
        RowsOf(NearestRows(target, scene.unit_items(answer, Eigen::all), kMatches)[0]);
    std::vector<int64_t> both;
    std::set_intersection(first.begin(), first.end(), nearest.begin(), nearest.end(),
                          std::back_inserter(both));
    sum += static_cast<double>(both.size()) / kMatches;
  }
  return sum / kTargets;
}

void Measure(const Scene& scene, const char* name, CellCode code, int64_t cells, int64_t items) {
  EmbeddingSettings settings;
  settings.alpha = DefaultAlpha(settings.label_graph, scene.anchors.labels);
  const PublicParameters parameters = ParametersOf(scene.anchors, settings, code, {cells}).value();
  const std::optional<ProductCodebook>& codebook = parameters.cell_codebook;
  const auto index = testing::BuildCells(parameters, scene.anchors, scene.gallery);
  const Matrix decoded = DecodedItems(parameters, *index);
  const double error = (decoded - scene.unit_items).rowwise().squaredNorm().mean();
  std::printf("%-8s %4ld bytes an item, relative squared error of items %.2g", name,
              static_cast<long>(ItemCodeBytes(parameters)), error);
  if (codebook) std::printf(" (stated of the anchors: %.2g)", codebook->relative_squared_error);
  std::printf(", fidelity@%ld among the returned %.3f\n", static_cast<long>(kMatches),
              FidelityOf(scene, *index, decoded, parameters, items));
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  int64_t anchors = 0, cells = 0, items = 0;
  if (argc != 6 || !absl::SimpleAtoi(argv[3], &anchors) || !absl::SimpleAtoi(argv[4], &cells) ||
      !absl::SimpleAtoi(argv[5], &items)) {
    std::fprintf(stderr, "usage: code_fidelity VECTORS LABELS ANCHORS CELLS ITEMS\n");
    return 2;
  }
  const Labelled all{ReadVectors(argv[1]).value(), ReadLabels(argv[2])->numbers};
  const int64_t gallery = all.features.rows() - anchors - kTargets;
  if (std::ssize(all.labels) != all.features.rows() || anchors < 1 || items < kMatches ||
      items > gallery) {
    std::fprintf(stderr,
                 "LABELS must be one for each row of VECTORS, ANCHORS at least 1, and ITEMS "
                 "between %ld and what is left for the gallery, %ld\n",
                 static_cast<long>(kMatches), static_cast<long>(gallery));
    return 2;
  }
  const Scene scene = Deal(all, anchors);
  std::printf(
      "%ld anchors, %ld items of %ld dimensions, %ld of them return for one of %ld cells, "
      "%ld targets\n",
      static_cast<long>(anchors), static_cast<long>(gallery),
      static_cast<long>(all.features.cols()), static_cast<long>(items), static_cast<long>(cells),
      static_cast<long>(kTargets));
  for (const auto& [name, code] : kFeatureCodes) Measure(scene, name, code, cells, items);
  return 0;
}

}  // namespace
}  // namespace privatemail

int main(int argc, char** argv) { return privatemail::Main(argc, argv); }
