#include "server/services/rpc_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "server/cells/anchor_training.h"
#include "server/services/collection_state.h"
#include "tests/unit/server/fixtures.h"
#include "tests/unit/server/services/all_rpcs.h"

namespace privatemail::testing {
namespace {

using google::protobuf::MethodDescriptor;

TEST(RpcTable, MatchesServiceDescriptors) {
  std::set<std::string> served;
  for (const MethodDescriptor* method : AllMethods()) {
    EXPECT_TRUE(served.insert(method->name()).second) << method->name() << " is there twice";
  }
  // grpc.health.v1.Health.Check, see monitoring_test.cc; Watch is not served.
  EXPECT_TRUE(served.insert("Check").second);
  std::set<std::string> known;
  for (const Rpc& rpc : Rpcs()) known.insert(rpc.name);
  EXPECT_EQ(known, served);
  for (const MethodDescriptor* method : AllMethods()) {
    if (known.count(method->name()) == 0) continue;
    const Rpc& rpc = FindRpc(method->name());
    EXPECT_NE(rpc.any_of, 0u) << rpc.name << " takes no key";
    if (rpc.collection[0] == '\0') continue;
    const auto* field = method->input_type()->FindFieldByName(rpc.collection);
    ASSERT_NE(field, nullptr) << rpc.name;
    EXPECT_EQ(field->type(), google::protobuf::FieldDescriptor::TYPE_STRING) << rpc.name;
  }
}

TEST(CollectionToProto, ReportsCellsStatus) {
  StoredCollection collection = SmallCollection("fruit");
  const auto published = std::make_shared<PublishedCollection>();
  published->name = "fruit";
  published->parameters = collection.parameters;
  published->anchors = collection.anchors;
  CollectionView view;
  view.published = published;
  const auto expect = [&](v1::CellsStatus status, uint64_t items, const char* text) {
    v1::GetCollectionResponse proto;
    CollectionToProto(view, &proto);
    EXPECT_EQ(proto.cells_status(), status);
    EXPECT_EQ(proto.cells_items(), items);
    EXPECT_EQ(proto.cells_partitions(), published->parameters.cell_partitions.size());
    EXPECT_EQ(proto.cells(), text);
  };
  expect(v1::CELLS_STATUS_NONE, 0, "");
  ASSERT_OK_AND_ASSIGN(const auto partitions,
                       PartitionAnchors(published->anchors.features, {3, 5}));
  ASSERT_OK_AND_ASSIGN(published->parameters,
                       MakePublicParameters("uuid", SmallSettings(), published->anchors, {},
                                            "vectors", partitions, CellCode::kScalar8));
  expect(v1::CELLS_STATUS_NOT_BUILT, 0, "");
  view.retriever = std::make_shared<Retriever>(published->parameters, published->anchors.labels,
                                               SomeEmbedding(6));
  expect(v1::CELLS_STATUS_PREPARING, 0, "being made");
  view.cells_problem = absl::ResourceExhaustedError("too large");
  expect(v1::CELLS_STATUS_FAILED, 0, "RESOURCE_EXHAUSTED: too large; a build tries again");
  view.cells_problem = absl::OkStatus();
  view.cells = CellIndex::Create(published->parameters, published->anchors,
                                 GalleryOf(MakeItems(6, 1)), {false});
  expect(v1::CELLS_STATUS_READY, 6, "ready: 6 items");
  view.hidden_in_cells =
      std::make_shared<HiddenRows>(HiddenRows{{true, false, false, true, false, true}, 3});
  expect(v1::CELLS_STATUS_READY, 3, "ready: 3 items");
}

}  // namespace
}  // namespace privatemail::testing
