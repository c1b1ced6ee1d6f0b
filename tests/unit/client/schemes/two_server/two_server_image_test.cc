#include "privatemail/two_server_image.h"

#include "tests/testing/fake_image.h"

namespace privatemail::client::two_server_image_test {
namespace {

const FakeImage& Fake() {
  static const FakeImage fake;
  return fake;
}

using Images = Halves<v1::GetImageResponse>;

Images Both() { return {Fake().Served("north"), Fake().Served("south")}; }

absl::StatusOr<TwoServerImage> Agree(const Images& images) {
  return TwoServerImage::Create(Fake().things.parameters, images);
}

// The server's response with another header.
v1::GetImageResponse With(v1::GetImageResponse response, const v1::ImageHeader& header) {
  response.set_header(header.SerializeAsString());
  return response;
}

TEST(TwoServerImage, AgreesOnOneImage) {
  ASSERT_OK_AND_ASSIGN(const TwoServerImage image, Agree(Both()));
  EXPECT_EQ(image.digest(), Sha256::Of(Fake().header.SerializeAsString()));
  EXPECT_EQ(image.operators().a, "north");
  EXPECT_EQ(image.operators().b, "south");
  EXPECT_EQ(image.header().items_version(), 17u);
  EXPECT_THAT(image.CheckScoresAllowed(), IsOk());
}

TEST(TwoServerImage, OneOperatorReturnsFailedPrecondition) {
  Images images = Both();
  images.b.set_operator_name("north");
  EXPECT_THAT(Agree(images), FailsWith(kFailedPrecondition, "both are of north"));
  images.b.clear_operator_name();
  EXPECT_THAT(Agree(images), FailsWith(kFailedPrecondition, "operator of server B must have"));
  images = Both();
  images.a.clear_operator_name();
  EXPECT_THAT(Agree(images), FailsWith(kFailedPrecondition, "operator of server A must have"));
}

TEST(TwoServerImage, StaleMirrorIsToldFromOtherContent) {
  Images images = Both();
  images.b = FakeImage(16).Served("south");
  EXPECT_THAT(Agree(images),
              FailsWith(kFailedPrecondition,
                        "server A serves items_version 17 and server B 16: the copy of server B"));
  std::swap(images.a, images.b);
  EXPECT_THAT(Agree(images), FailsWith(kFailedPrecondition, "the copy of server A has not"));
  v1::ImageHeader header = Fake().header;
  header.mutable_sections(0)->mutable_sha256()->at(0) ^= 1;
  images = Both();
  images.b = With(images.b, header);
  EXPECT_THAT(Agree(images), FailsWith(kFailedPrecondition, "different ones of items_version 17"));
}

TEST(TwoServerImage, OtherCollectionReturnsFailedPrecondition) {
  v1::ImageHeader header = Fake().header;
  header.mutable_fingerprint()->at(3) ^= 1;
  Images images = Both();
  images.b = With(images.b, header);
  EXPECT_THAT(Agree(images), FailsWith(kFailedPrecondition,
                                       "the image of server B (south) is of another collection"));
  PublicParameters none = Fake().things.parameters;
  none.cell_partitions.clear();
  EXPECT_THAT(TwoServerImage::Create(none, Both()), FailsWith(kFailedPrecondition, "no cells"));
}

TEST(TwoServerImage, MalformedHeaderReturnsDataLoss) {
  Images images = Both();
  images.b.set_header("nonsense");
  EXPECT_THAT(Agree(images), FailsWith(kDataLoss, "server B (south): image header: it cannot be"));
  v1::ImageHeader header = Fake().header;
  header.mutable_partitions(0)->set_lists(9);
  header.mutable_sections(2)->set_bytes(9 * FakeImage::kListRows * 4);
  EXPECT_THAT(
      Agree({With(images.a, header), With(images.b, header)}),
      FailsWith(kDataLoss, "partitions[0].lists must be 10 as in the collection, but is 9"));
  header = Fake().header;
  header.set_feature_dim(7);
  header.mutable_sections(3)->set_bytes(FakeImage::kItems * 7 * 2);
  EXPECT_THAT(Agree({With(images.a, header), With(images.b, header)}),
              FailsWith(kDataLoss, "feature_dim must be 8 as in the collection, but is 7"));
}

TEST(TwoServerImage, ScoresNeedBothOperatorsAndTheSection) {
  Images images = Both();
  images.b.set_allows_scores(false);
  ASSERT_OK_AND_ASSIGN(const TwoServerImage refused, Agree(images));
  EXPECT_THAT(refused.CheckScoresAllowed(),
              FailsWith(kFailedPrecondition, "server B (south) does not allow scores"));
  EXPECT_EQ(refused.DefaultMode(), TwoServerMode::kLists);

  v1::ImageHeader header = Fake().header;
  header.set_has_scores(false);
  header.mutable_sections()->DeleteSubrange(3, 1);
  images = Both();
  ASSERT_OK_AND_ASSIGN(const TwoServerImage without,
                       Agree({With(images.a, header), With(images.b, header)}));
  EXPECT_THAT(without.CheckScoresAllowed(), FailsWith(kFailedPrecondition, "has no scores"));
}

TEST(TwoServerImage, DefaultModeFollowsSize) {
  const auto mode_of = [](uint64_t items) {
    v1::ImageHeader header = Fake().header;
    header.set_items(items);
    header.clear_payloads();
    header.mutable_sections()->RemoveLast();
    header.mutable_sections(1)->set_bytes(items * header.code_bytes());
    header.mutable_sections(3)->set_bytes(items * header.feature_dim() * 2);
    const Images images = Both();
    return Agree({With(images.a, header), With(images.b, header)})->DefaultMode();
  };
  EXPECT_EQ(mode_of(100'000), TwoServerMode::kScores);
  EXPECT_EQ(mode_of(100'001), TwoServerMode::kLists);
}

}  // namespace
}  // namespace privatemail::client::two_server_image_test
