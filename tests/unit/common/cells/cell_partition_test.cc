#include "common/cells/cell_partition.h"

#include <functional>

#include "common/embedding/public_parameters.h"
#include "common/wire/proto_conversions.h"
#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

PublicParameters SomeParameters() {
  PublicParameters parameters;
  parameters.collection_uuid = "4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5";
  parameters.feature_dim = 4;
  parameters.extractor = "vectors";
  parameters.slot_labels = {3, 5, 9};
  parameters.anchor_count = 4;
  parameters.anchor_digest = std::string(32, 'x');
  return parameters;
}

PublicParameters WithCells() {
  PublicParameters parameters = SomeParameters();
  parameters.cell_partitions = {{2, {0, 1, 1, 0}}, {3, {0, 1, 2, 2}}};
  parameters.cell_code = CellCode::kScalar8;
  return parameters;
}

TEST(CellPartition, FingerprintCoversCells) {
  const std::function<void(PublicParameters*)> changes[] = {
      [](PublicParameters* p) { p->cell_partitions[0].cells = 4; },
      [](PublicParameters* p) { p->cell_partitions[1].cell_of_anchor[3] = 1; },
      [](PublicParameters* p) { std::swap(p->cell_partitions[0], p->cell_partitions[1]); },
      [](PublicParameters* p) { p->cell_partitions.pop_back(); },
      [](PublicParameters* p) { p->cell_code = CellCode::kFloat16; },
  };
  const std::string before = Fingerprint(WithCells());
  EXPECT_NE(before, Fingerprint(SomeParameters()));
  for (const auto& change : changes) {
    PublicParameters parameters = WithCells();
    change(&parameters);
    EXPECT_NE(Fingerprint(parameters), before);
  }
}

TEST(CellPartition, RoundTripValidatesFields) {
  v1::PublicParameters message;
  ToProto(WithCells(), &message);
  ASSERT_OK_AND_ASSIGN(const PublicParameters back, FromProto(message));
  EXPECT_EQ(Fingerprint(back), Fingerprint(WithCells()));

  const std::pair<std::function<void(v1::PublicParameters*)>, const char*> faults[] = {
      {[](auto* m) { m->mutable_cell_partitions(1)->set_cells(1); },
       "[1].cells must be between 2 and 4, but is 1"},
      {[](auto* m) { m->mutable_cell_partitions(0)->set_cells(5); },
       "[0].cells must be between 2 and 4, but is 5"},
      {[](auto* m) { m->mutable_cell_partitions(0)->add_cell_of_anchor(0); },
       "must hold one cell for each of the 4"},
      {[](auto* m) { m->mutable_cell_partitions(0)->set_cell_of_anchor(2, 2); },
       "must be between 0 and 1, but is 2"},
      {[](auto* m) { m->mutable_cell_partitions(0)->set_cell_of_anchor(2, 0xFFFFFFFF); },
       "between 0 and 1, but is -1"},
      {[](auto* m) { m->mutable_cell_partitions(1)->set_cell_of_anchor(1, 0); },
       "[1].cell_of_anchor must name each"},
      {[](auto* m) {
         for (int i = 0; i < 7; ++i) *m->add_cell_partitions() = m->cell_partitions(0);
       },
       "cell_partitions must be at most 8, but are 9"},
      {[](auto* m) { m->clear_cell_code(); }, "cell_code must be given where there are cells"},
      {[](auto* m) { m->clear_cell_partitions(); }, "cell_code must not be given"},
      {[](auto* m) { m->set_cell_code(static_cast<v1::CellCode>(7)); },
       "cell_code must be 1 (float16)"},
  };
  for (const auto& [spoil, part] : faults) {
    v1::PublicParameters spoilt = message;
    spoil(&spoilt);
    EXPECT_THAT(FromProto(spoilt), FailsWith(kInvalid, part));
  }
}

TEST(CellPartition, TooManyCellsAreRejected) {
  CellPartition partition{.cells = kMaxCells + 1, .cell_of_anchor = {}};
  for (int32_t i = 0; i <= kMaxCells; ++i) partition.cell_of_anchor.push_back(i);
  EXPECT_THAT(Validate({partition}, kMaxCells + 1), FailsWith(kInvalid, "must be between"));
}

}  // namespace
}  // namespace privatemail
