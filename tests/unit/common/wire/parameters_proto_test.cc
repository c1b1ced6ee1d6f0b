#include <limits>

#include "common/embedding/default_settings.h"
#include "common/items/item_checks.h"
#include "common/wire/proto_conversions.h"
#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kUuid[] = "00000000-0000-4000-8000-000000000000";

PublicParameters WithAnchors(std::vector<int32_t> labels) {
  Anchors anchors;
  anchors.features.resize(3, 2);
  anchors.features << 1, 0, 0, 1, 1, 1;
  anchors.labels = std::move(labels);
  const EmbeddingSettings settings =
      anchors.labels.empty() ? DefaultSettings({}) : EmbeddingSettings();
  return *MakePublicParameters(kUuid, settings, anchors, {}, "vectors");
}

v1::PublicParameters Encode(const PublicParameters& parameters) {
  v1::PublicParameters proto;
  ToProto(parameters, &proto);
  return proto;
}

TEST(ParametersProto, EveryKindOfCollectionRoundTrips) {
  PublicParameters labelled = WithAnchors({1, 2, 1});
  PublicParameters encrypted = labelled;
  encrypted.with_encrypted = true;
  encrypted.metric = Metric::kDot;
  PublicParameters unlabelled = WithAnchors({});
  unlabelled.with_encrypted = true;
  PublicParameters empty = *MakeParametersWithoutAnchors(kUuid, "vectors", Metric::kEuclidean);
  PublicParameters filled = empty;
  filled.feature_dim = 16384;
  for (const PublicParameters& parameters : {labelled, encrypted, unlabelled, empty, filled}) {
    ASSERT_OK_AND_ASSIGN(const PublicParameters read, FromProto(Encode(parameters)));
    EXPECT_EQ(Fingerprint(read), Fingerprint(parameters));
    EXPECT_EQ(read.metric, parameters.metric);
    EXPECT_EQ(read.with_encrypted, parameters.with_encrypted);
    EXPECT_EQ(read.feature_dim, parameters.feature_dim);
  }
  EXPECT_FALSE(Encode(empty).has_settings());
  EXPECT_FALSE(Encode(labelled).with_encrypted());
}

TEST(ParametersProto, MalformedFieldIsNamed) {
  const v1::PublicParameters empty =
      Encode(*MakeParametersWithoutAnchors(kUuid, "vectors", Metric::kCosine));
  v1::PublicParameters bad = empty;
  ToProto(EmbeddingSettings(), bad.mutable_settings());
  EXPECT_THAT(FromProto(bad),
              FailsWith(kInvalid, "settings must not be given where there are no anchors"));
  bad = empty;
  for (const int metric : {0, 4}) {
    bad.set_metric(static_cast<v1::Metric>(metric));
    EXPECT_THAT(FromProto(bad), FailsWith(kInvalid,
                                          "metric must be 1 (cosine), 2 (dot) or 3 "
                                          "(euclidean), but is "));
  }
  bad = empty;
  bad.set_extractor(std::string(1025, 'x'));
  EXPECT_THAT(FromProto(bad), FailsWith(kInvalid, "extractor must have at most 1024 bytes"));
  bad = Encode(WithAnchors({1, 2, 1}));
  bad.mutable_settings()->clear_start();
  EXPECT_THAT(FromProto(bad), FailsWith(kInvalid, "settings.start must be 1 (random)"));
  bad = Encode(WithAnchors({1, 2, 1}));
  bad.set_feature_dim(0);
  EXPECT_THAT(FromProto(bad), FailsWith(kInvalid, "feature_dim must be between 1 and"));
}

TEST(ParametersProto, MalformedParametersOfferNothing) {
  EXPECT_THAT(OfferedSchemes(v1::PublicParameters()), IsEmpty());
  EXPECT_THAT(OfferedSchemes(Encode(WithAnchors({1, 2, 1}))), ElementsAre("joint"));
}

TEST(ItemLabelProto, RoundTrips) {
  for (const int32_t label :
       {0, 5, -3, kNoLabel + 1, std::numeric_limits<int32_t>::max(), kNoLabel}) {
    v1::Item item;
    item.set_label(77);  // overwritten
    LabelToProto(label, &item);
    EXPECT_EQ(item.unlabelled(), label == kNoLabel);
    EXPECT_EQ(item.label(), label == kNoLabel ? 0 : label);
    ASSERT_OK_AND_ASSIGN(const int32_t read, LabelFromProto(item));
    EXPECT_EQ(read, label);
  }
}

TEST(ItemLabelProto, AmbiguousLabelsAreRefused) {
  v1::Item item;
  item.set_label(5);
  item.set_unlabelled(true);
  EXPECT_THAT(LabelFromProto(item),
              FailsWith(kInvalid, "label must be 0 where unlabelled is set, but is 5"));
  item.set_unlabelled(false);
  item.set_label(kNoLabel);
  EXPECT_THAT(LabelFromProto(item), FailsWith(kInvalid, "label must not be -2147483648"));
}

}  // namespace
}  // namespace privatemail
