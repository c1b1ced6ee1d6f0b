#include "server/services/collection_state.h"

#include <memory>

#include "absl/strings/match.h"
#include "common/base/operator_only_error.h"
#include "server/engine/encrypted_collection.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/testing/build_cells.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/server/engine/store_with_hooks.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

class CollectionState : public ::testing::Test {
 protected:
  CollectionState() {
    parameters_ = *MakePublicParameters("uuid", SmallSettings(), anchors_, {}, "vectors", {halves_},
                                        CellCode::kFloat16);
  }

  CollectionView View() const {
    CollectionView view;
    view.published = std::make_shared<PublishedCollection>(
        PublishedCollection{"fruit", parameters_, Fingerprint(parameters_), anchors_});
    return view;
  }
  CollectionView Built() const {
    CollectionView view = View();
    view.retriever =
        std::make_shared<const Retriever>(parameters_, anchors_.labels, SomeEmbedding(4));
    return view;
  }

  const Anchors anchors_ = SmallAnchors();
  const CellPartition halves_{.cells = 2, .cell_of_anchor = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}};
  PublicParameters parameters_;
};

TEST_F(CollectionState, CellsAreDescribedAtEachStage) {
  const auto expect = [](const CollectionView& view, v1::CellsStatus status, uint64_t items,
                         const std::string& text) {
    v1::GetCollectionResponse proto;
    CollectionToProto(view, &proto);
    EXPECT_EQ(proto.cells_status(), status);
    EXPECT_EQ(proto.cells_items(), items);
    EXPECT_EQ(proto.cells_partitions(), view.published->parameters.cell_partitions.size());
    EXPECT_EQ(proto.cells(), text);
  };
  expect(View(), v1::CELLS_STATUS_NOT_BUILT, 0, "");
  constexpr char kNotBuilt[] = "collection fruit is not built yet";
  EXPECT_THAT(RequireRetriever(View()), FailsWith(kFailedPrecondition, kNotBuilt));
  EXPECT_THAT(RequireCells(View()), FailsWith(kFailedPrecondition, kNotBuilt));
  CollectionView view = Built();
  EXPECT_THAT(RequireCells(view), FailsWith(kUnavailable, "collection fruit is being built"));
  expect(view, v1::CELLS_STATUS_PREPARING, 0, "being made");
  view.cells_problem = absl::UnavailableError("could not be built: no memory");
  const std::string problem = "could not be built: no memory; a build tries again";
  EXPECT_THAT(RequireCells(view), FailsWith(kUnavailable, problem));
  expect(view, v1::CELLS_STATUS_FAILED, 0, "UNAVAILABLE: " + problem);
  view.cells = BuildCells(parameters_, anchors_, GalleryOf(MakeItems(6, 1)));
  EXPECT_THAT(RequireCells(view), IsOk());
  expect(view, v1::CELLS_STATUS_READY, 6,
         "ready: 6 items of an earlier build; UNAVAILABLE: " + problem);
  view.cells_problem = absl::OkStatus();
  view.hidden_in_cells =
      std::make_shared<HiddenRows>(HiddenRows{{true, false, false, true, false, true}, 3});
  expect(view, v1::CELLS_STATUS_READY, 3, "ready: 3 items");
  parameters_.cell_partitions.clear();
  expect(View(), v1::CELLS_STATUS_NONE, 0, "");
  EXPECT_THAT(
      RequireCells(Built()),
      FailsWith(kFailedPrecondition, "collection fruit has no cells: it offers the scheme joint"));
}

// Errors of the store may name its file or host.
TEST_F(CollectionState, RowsThatTheStoreCannotReadHideItsDetailsFromSearchers) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> sqlite, SqliteStore::Open(folder.path()));
  StoreHooks hooks;
  StoreWithHooks store(std::move(sqlite), &hooks);
  CollectionView view = View();
  view.encrypted = std::make_shared<EncryptedCollection>([](int64_t) { return absl::OkStatus(); });
  EXPECT_THAT(RequireRows(view),
              FailsWith(kUnavailable, "the rows of collection fruit are being loaded: try again"));
  for (const bool marked : {false, true}) {
    hooks.read_changes = [marked](uint64_t) {
      const absl::Status failure = absl::UnavailableError("host db7.internal is away");
      return marked ? OperatorOnlyError(failure) : failure;
    };
    EXPECT_FALSE(view.encrypted->CatchUp(store, parameters_).ok());
    const absl::Status status = RequireRows(view).status();
    EXPECT_THAT(status, FailsWith(kUnavailable, "cannot be loaded: host db7.internal is away"));
    EXPECT_EQ(IsOperatorOnlyError(status), marked);
    EXPECT_EQ(absl::StrContains(HideOperatorDetails(status).message(), "db7"), !marked);
  }
}

}  // namespace
}  // namespace privatemail::testing
