#include "common/wire/proto_conversions.h"

#include <cmath>
#include <limits>

#include "common/embedding/default_settings.h"
#include "common/items/item_checks.h"
#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kCollection[] = "00000000-0000-4000-8000-000000000000";

PublicParameters WithAnchors(std::vector<int32_t> labels) {
  Anchors anchors;
  anchors.features.resize(3, 2);
  anchors.features << 1, 0, 0, 1, 1, 1;
  anchors.labels = std::move(labels);
  const EmbeddingSettings settings =
      anchors.labels.empty() ? DefaultSettings({}) : EmbeddingSettings();
  return *MakePublicParameters(kCollection, settings, anchors, {}, "vectors");
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
  PublicParameters empty =
      *MakeParametersWithoutAnchors(kCollection, "vectors", Metric::kEuclidean);
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
      Encode(*MakeParametersWithoutAnchors(kCollection, "vectors", Metric::kCosine));
  v1::PublicParameters bad = empty;
  ToProto(EmbeddingSettings(), bad.mutable_settings());
  EXPECT_THAT(FromProto(bad), FailsWith(kInvalid, "settings must not be given"));
  bad = empty;
  for (const int metric : {0, 4}) {
    bad.set_metric(static_cast<v1::Metric>(metric));
    EXPECT_THAT(FromProto(bad), FailsWith(kInvalid, "metric must be 1 (cosine)"));
  }
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
  EXPECT_THAT(LabelFromProto(item), FailsWith(kInvalid, "label must be 0"));
  item.set_unlabelled(false);
  item.set_label(kNoLabel);
  EXPECT_THAT(LabelFromProto(item), FailsWith(kInvalid, "label must not be -2147483648"));
}

CellQuality Quality() {
  const std::vector<MeasuredQuality> means = {{{.25, .003}, {1, 0}}, {{.5, .016}, {.07, .001}}};
  return {.queries = 1000,
          .items = {8, 11},
          .epsilons = {1, 2},
          .partitions = {{.own = {means[0], means[1], means[1], means[0]},
                          .other = {means[1], means[1], means[0], means[0]}}}};
}

v1::CellQuality Proto() {
  v1::CellQuality proto;
  ToProto(Quality(), &proto);
  return proto;
}

TEST(CellQualityProto, KeepsWhatIsPublished) {
  ASSERT_OK_AND_ASSIGN(const CellQuality read, FromProto(Proto(), 1));
  EXPECT_EQ(read.queries, 1000);
  EXPECT_EQ(read.items, Quality().items);
  EXPECT_EQ(read.epsilons, Quality().epsilons);
  ASSERT_EQ(read.partitions.size(), 1);
  const CellQuality quality = Quality();
  for (size_t i = 0; i < 4; ++i) {
    const MeasuredQuality& own = read.partitions[0].own[i];
    const MeasuredQuality& sent = quality.partitions[0].own[i];
    EXPECT_EQ(own.fidelity.value, sent.fidelity.value);
    EXPECT_EQ(own.fidelity.standard_error, sent.fidelity.standard_error);
    EXPECT_EQ(own.recall.value, sent.recall.value);
    EXPECT_EQ(own.recall.standard_error, sent.recall.standard_error);
  }
  EXPECT_EQ(read.partitions[0].other[0].recall.value, .07);
}

TEST(CellQualityProto, MalformedFieldIsNamed) {
  const auto refused = [](const char* message, auto change) {
    v1::CellQuality proto = Proto();
    change(&proto);
    EXPECT_THAT(FromProto(proto, 1), FailsWith(kInvalid, message));
  };
  refused("quality.queries must be at least 1000", [](auto* p) { p->set_queries(999); });
  refused("quality.items must be positive and ascend", [](auto* p) { p->set_items(1, 8); });
  refused("quality.items must be between 1 and 16384", [](auto* p) { p->set_items(1, 16385); });
  refused("quality.items must have at least 2", [](auto* p) { p->clear_items(); });
  refused("quality.epsilons", [](auto* p) { p->set_epsilons(1, std::nan("")); });
  refused("quality.partitions must have 1", [](auto* p) { p->add_partitions(); });
  refused("quality.partitions.own must have curves of 4 bytes",
          [](auto* p) { p->mutable_partitions(0)->mutable_own()->mutable_recall()->push_back(1); });
  refused("quality.partitions.other", [](auto* p) {
    (*p->mutable_partitions(0)->mutable_other()->mutable_fidelity())[2] = 101;
  });
  refused("other must have 4 means", [](auto* p) { p->mutable_partitions(0)->clear_other(); });
}

}  // namespace
}  // namespace privatemail
