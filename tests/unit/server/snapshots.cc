#include "tests/unit/server/snapshots.h"

#include <utility>

#include "common/wire/proto_conversions.h"
#include "server/snapshot/snapshot_io.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

SnapshotWriter::Emit AppendTo(std::string* bytes) {
  return [bytes](absl::string_view block) {
    bytes->append(block.data(), block.size());
    return absl::OkStatus();
  };
}

Item ItemOf(const Gallery& gallery, size_t row) {
  const auto features = gallery.features.row(static_cast<Eigen::Index>(row));
  return {gallery.ids[row],
          gallery.labels[row],
          {features.begin(), features.end()},
          gallery.payloads[row],
          0};
}

}  // namespace

Gallery LoadGallery(const Catalog& catalog, const CollectionView& view) {
  Gallery all;
  std::vector<FloatMatrix> features;
  EXPECT_THAT(catalog.ReadGallery(view,
                                  [&](int64_t, Gallery part) {
                                    features.push_back(std::move(part.features));
                                    AppendRows(std::move(part), &all);
                                    return absl::OkStatus();
                                  }),
              IsOk());
  all.features.resize(static_cast<Eigen::Index>(all.ids.size()),
                      view.published->parameters.feature_dim);
  Eigen::Index row = 0;
  for (const FloatMatrix& part : features) {
    all.features.middleRows(row, part.rows()) = part;
    row += part.rows();
  }
  return all;
}

std::string SnapshotOf(const Catalog& catalog, const CollectionView& view) {
  std::string bytes;
  EXPECT_THAT(WriteSnapshot(catalog, view, AppendTo(&bytes)), IsOk());
  return bytes;
}

std::string BytesOf(const SnapshotContents& contents) {
  const StoredCollection& collection = contents.collection;
  v1::SnapshotCollection head;
  head.set_name(collection.name);
  ToProto(collection.parameters, head.mutable_parameters());
  head.set_items(collection.items);
  head.set_latest_version(collection.latest_version);
  std::string bytes;
  SnapshotWriter writer(AppendTo(&bytes));
  EXPECT_THAT(writer.Begin(head, collection.anchors), IsOk());
  for (size_t row = 0; row < contents.gallery.ids.size(); ++row) {
    const Item item = ItemOf(contents.gallery, row);
    v1::Item message;
    message.set_id(item.id);
    message.set_label(item.label);
    message.set_payload(item.payload);
    message.mutable_features()->Assign(item.features.begin(), item.features.end());
    EXPECT_THAT(writer.Add(message), IsOk());
  }
  EXPECT_THAT(writer.Finish(), IsOk());
  return bytes;
}

absl::StatusOr<SnapshotContents> Parse(const std::string& bytes) {
  std::vector<Item> items;
  SnapshotParser parser({[](const v1::SnapshotCollection&) { return absl::OkStatus(); },
                         [&](const Gallery& part) {
                           for (size_t row = 0; row < part.ids.size(); ++row) {
                             items.push_back(ItemOf(part, row));
                           }
                           return absl::OkStatus();
                         }});
  if (absl::Status status = parser.Read(bytes); !status.ok()) return status;
  auto collection = parser.Finish();
  if (!collection.ok()) return collection.status();
  return SnapshotContents{*std::move(collection), GalleryOf(items)};
}

absl::StatusOr<CollectionView> Restore(Catalog* catalog, const SnapshotContents& contents) {
  return catalog->Restore(contents.collection,
                          [&](Store::GalleryPartVisitor visit) { return visit(contents.gallery); });
}

}  // namespace privatemail::testing
