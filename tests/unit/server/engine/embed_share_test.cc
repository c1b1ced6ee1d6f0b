#include "common/base/validate.h"
#include "server/engine/embed.h"
#include "tests/testing/threaded_rows.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

constexpr int kRows = 4012;  // 16 blocks, the last of 172 rows

// A collection with a polynomial plan, and its rows.
class EmbedShareTest : public ::testing::Test {
 protected:
  EmbedShareTest() {
    collection_.parameters.settings.kernel_bandwidth = 6;
    const Gallery gallery = GalleryOf(MakeItems(kRows, 1));
    labels_ = gallery.labels;
    rows_ = *UnitRows("items", gallery.features);
  }

  absl::StatusOr<EmbeddedRows> Embed(const std::shared_ptr<const RowShare>& share,
                                     const StepObserver& observer = nullptr) const {
    const auto first = labels_.begin() + share->first_row();
    return EmbedShare(
        collection_.parameters, share,
        std::make_shared<MatrixPoints>(rows_.middleRows(share->first_row(), share->rows())),
        {first, first + share->rows()}, CountLabels(labels_), observer);
  }

  StoredCollection collection_ = SmallCollection("fruit");
  std::vector<int32_t> labels_;
  Matrix rows_;
};

TEST_F(EmbedShareTest, AnyNumberOfProcessesGivesSameBits) {
  const auto whole =
      EmbedRows(collection_.parameters, std::make_shared<MatrixPoints>(rows_), labels_, nullptr);
  ASSERT_THAT(whole, IsOk());
  for (const int parties : {1, 2, 3, 16}) {
    ThreadedRows rows(kRows, parties);
    rows.ForAll([&](int party) {
      const auto share = rows.Share(party);
      const auto part = Embed(share);
      ASSERT_THAT(part, IsOk());
      EXPECT_EQ(part->coordinates, whole->coordinates.middleRows(share->first_row(), share->rows()))
          << party << " of " << parties;
      EXPECT_EQ(part->objective, whole->objective);
    });
  }
}

TEST_F(EmbedShareTest, FailureOfOneProcessEndsAll) {
  ThreadedRows rows(kRows, 3);
  rows.ForAll([&](int party) {
    const auto share = rows.Share(party);
    const auto fails = [&](double done, int) {
      return party == 1 && done >= 2 ? absl::CancelledError("enough") : absl::OkStatus();
    };
    const absl::Status own = Embed(share, fails).status();
    EXPECT_THAT(share->Agree(own), FailsWith(kCancelled, "enough")) << party;
  });
}

TEST_F(EmbedShareTest, PlanWithoutPolynomialReturnsFailedPrecondition) {
  collection_.parameters.settings.kernel_bandwidth = .1;
  ThreadedRows rows(kRows, 2);
  rows.ForAll([&](int party) {
    EXPECT_THAT(Embed(rows.Share(party)),
                FailsWith(kFailedPrecondition,
                          "cannot share these rows, expected a plan with a polynomial, got tiled"));
  });
}

TEST(DeterministicStart, RowsAreIndependentOfFirstRow) {
  for (const int k : {1, 2, 3}) {
    const Matrix whole = DeterministicStart("some fingerprint", 50, k, 2);
    for (const int first : {0, 1, 2, 17, 49}) {
      EXPECT_EQ(DeterministicStart("some fingerprint", 50 - first, k, 2, first),
                whole.bottomRows(50 - first));
    }
  }
}

}  // namespace
}  // namespace privatemail::testing
