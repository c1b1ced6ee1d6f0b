#include "tests/unit/server/fixtures.h"

#include <random>

#include "absl/strings/str_format.h"
#include "server/store/types.h"

namespace privatemail::testing {
namespace {

std::vector<float> Features(unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<float> features(kDim);
  for (float& value : features) value = normal(bits);
  return features;
}

constexpr int32_t kLabels[] = {3, 5, 9};

}  // namespace

Anchors SmallAnchors() {
  Anchors anchors;
  anchors.features.resize(12, kDim);
  for (int i = 0; i < 12; ++i) {
    const std::vector<float> features = Features(1000 + i);
    anchors.features.row(i) = Eigen::Map<const Eigen::RowVectorXf>(features.data(), kDim);
    anchors.labels.push_back(kLabels[i % 3]);
  }
  return anchors;
}

EmbeddingSettings SmallSettings() {
  EmbeddingSettings settings;
  settings.kernel_bandwidth = 1;
  settings.steps = 3;
  return settings;
}

StoredCollection SmallCollection(const std::string& name) {
  StoredCollection collection;
  collection.name = name;
  collection.anchors = SmallAnchors();
  collection.parameters =
      *MakePublicParameters(*NewUuid(), SmallSettings(), collection.anchors, {}, "vectors");
  return collection;
}

Item MakeItem(const std::string& id, int32_t label, unsigned seed) {
  return {id, label, Features(seed), "", 0};
}

std::vector<Item> MakeItems(int count, unsigned seed) {
  std::vector<Item> items;
  items.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    items.push_back(MakeItem(absl::StrFormat("item-%03d", i), kLabels[i % 3], seed + i));
  }
  return items;
}

Gallery GalleryOf(const std::vector<Item>& items) {
  Gallery gallery;
  gallery.features.resize(static_cast<Eigen::Index>(items.size()), kDim);
  for (const Item& item : items) {
    const auto row = static_cast<Eigen::Index>(gallery.ids.size());
    gallery.features.row(row) = Eigen::Map<const Eigen::RowVectorXf>(item.features.data(), kDim);
    gallery.ids.push_back(item.id);
    gallery.labels.push_back(item.label);
    gallery.payloads.push_back(item.payload);
  }
  return gallery;
}

absl::Status RemoveRows(Store* store) {
  while (true) {
    const absl::StatusOr<bool> more = store->RemoveSomeRows();
    if (!more.ok() || !*more) return more.status();
  }
}

absl::Status Import(Store* store, StoredCollection collection, const Gallery& gallery) {
  collection.items = gallery.ids.size();
  collection.latest_version = gallery.version;
  return store->Import(collection, [&](Store::GalleryPartVisitor visit) { return visit(gallery); });
}

Gallery ManyItems(int rows, const std::string& payload) {
  Gallery gallery;
  gallery.features = FloatMatrix::Random(rows, kDim);
  gallery.labels.assign(static_cast<size_t>(rows), 3);
  gallery.payloads.assign(static_cast<size_t>(rows), payload);
  for (int i = 0; i < rows; ++i) gallery.ids.push_back(absl::StrFormat("%06d", i));
  return gallery;
}

Embedding EmbeddingOf(const Gallery& gallery) {
  Embedding embedding;
  embedding.items_version = gallery.version;
  embedding.objective = -1.25;
  embedding.ids = gallery.ids;
  embedding.labels = gallery.labels;
  embedding.payloads = gallery.payloads;
  embedding.coordinates = Matrix::Random(gallery.features.rows(), 2);
  embedding.anchor_coordinates = Matrix::Random(12, 2);
  return embedding;
}

Embedding SomeEmbedding(int items) { return EmbeddingOf(GalleryOf(MakeItems(items, 1))); }

}  // namespace privatemail::testing
