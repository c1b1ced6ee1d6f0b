#include "server/engine/collection_view.h"

#include <iterator>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

namespace privatemail::server {

uint64_t CollectionView::embedded_items() const {
  if (retriever == nullptr) return 0;
  return static_cast<uint64_t>(retriever->items() - (hidden == nullptr ? 0 : hidden->count));
}

// Every change, and nothing else, takes the next version.
uint64_t CollectionView::changes_since_embedding() const {
  if (!published->parameters.HasAnchors()) return 0;  // searched as stored
  if (retriever == nullptr) return items;  // versions of a restored collection do not start at 1
  const uint64_t embedded = retriever->items_version();
  // Another daemon may have embedded changes that this one has not adopted yet.
  return latest_version > embedded ? latest_version - embedded : 0;
}

// Features, and images of the iterate with their degrees: four of the iteration and one a core of
// an exact product.
int64_t CollectionView::build_memory(Features features) const {
  const int64_t images = 4 + static_cast<int64_t>(std::thread::hardware_concurrency());
  const PublicParameters& parameters = published->parameters;
  const int64_t image_values = images * (parameters.settings.embedding_dim + 1);
  const int64_t rows = static_cast<int64_t>(items) + parameters.anchor_count;
  const int64_t feature_bytes = features == Features::kInMemory
                                    ? parameters.feature_dim * static_cast<int64_t>(sizeof(float))
                                    : 0;
  // Class sums, code and their products.
  const int64_t class_values = 8 * std::ssize(parameters.slot_labels) *
                               static_cast<int64_t>(parameters.settings.embedding_dim);
  return rows * feature_bytes +
         (rows * image_values + class_values) * static_cast<int64_t>(sizeof(double));
}

int64_t CollectionView::resident_memory() const {
  return MemoryOf(published->parameters) + (retriever == nullptr ? 0 : retriever->memory()) +
         (cells == nullptr ? 0 : cells->memory()) +
         (encrypted == nullptr ? 0 : encrypted->memory());
}

int64_t MemoryOf(const PublicParameters& parameters) {
  constexpr int64_t kFloat = sizeof(float), kDouble = sizeof(double), kLabel = sizeof(int32_t);
  const int64_t of_anchor = parameters.feature_dim * kFloat +
                            parameters.settings.embedding_dim * kDouble + 2 * kLabel +
                            std::ssize(parameters.cell_partitions) * kDouble;
  const int64_t of_class = 2 * kLabel + 3 * kDouble;
  int64_t bytes =
      parameters.anchor_count * of_anchor + std::ssize(parameters.slot_labels) * of_class;
  for (const std::string& name : parameters.class_names) {
    bytes += static_cast<int64_t>(sizeof(std::string)) + std::ssize(name);
  }
  if (parameters.cell_codebook.has_value()) {
    bytes += parameters.cell_codebook->centroids.size() * kFloat;
  }
  return bytes;
}

absl::Status CheckBuildMemory(absl::string_view purpose, int64_t bytes, int64_t memory) {
  if (bytes <= memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("memory of ", purpose, " in bytes is at least ",
                                                   bytes, ", more than the limit of ", memory,
                                                   " (max_build_memory)"));
}

}  // namespace privatemail::server
