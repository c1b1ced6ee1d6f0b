#include "common/embedding/public_parameters.h"

#include <functional>

#include "common/embedding/default_settings.h"
#include "common/embedding/offered_schemes.h"
#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

using ::testing::ElementsAre;

constexpr char kUuid[] = "00000000-0000-4000-8000-000000000000";

Anchors ThreeAnchors(std::vector<int32_t> labels) {
  Anchors anchors;
  anchors.features.resize(3, 2);
  anchors.features << 1, 0, 0, 1, 1, 1;
  anchors.labels = std::move(labels);
  return anchors;
}

PublicParameters Labelled() {
  return *MakePublicParameters(kUuid, EmbeddingSettings(), ThreeAnchors({4, 7, 4}), {}, "vectors");
}

PublicParameters Unlabelled() {
  PublicParameters parameters =
      *MakePublicParameters(kUuid, DefaultSettings({}), ThreeAnchors({}), {}, "vectors");
  parameters.with_encrypted = true;
  return parameters;
}

PublicParameters WithoutAnchors(Metric metric = Metric::kCosine) {
  return *MakeParametersWithoutAnchors(kUuid, "vectors", metric);
}

// Computed by Python's hashlib over the text that the header describes.
TEST(PublicParameters, FingerprintIsTheDigestOfTheCanonicalText) {
  PublicParameters parameters = Labelled();
  EXPECT_EQ(ToHex(Fingerprint(parameters)),
            "95d71b0215b82eeec1e3fbd395f5a48c42505ba787a665bd0f6aabaa7260468d");
  parameters.metric = Metric::kDot;
  parameters.with_encrypted = true;
  EXPECT_EQ(ToHex(Fingerprint(parameters)),
            "abe6210bdf20ad40f63b3e763711c60ad174c192c7a6b8339d46c140fc667cc1");
  EXPECT_EQ(ToHex(Fingerprint(Unlabelled())),
            "9884e58fef1c30dec404f7a6cd37bcd2ac12a546a31f33d4f5ce17cc1fa89e00");
  EXPECT_EQ(ToHex(Fingerprint(WithoutAnchors())),
            "3311235bf49a49c8b72580b1b6a48f96f5bc57c21dd11ee355df5b6de4dbaab1");
  parameters = WithoutAnchors(Metric::kEuclidean);
  parameters.feature_dim = 128;
  EXPECT_EQ(ToHex(Fingerprint(parameters)),
            "8eee2ddff5cf73ce36027d191d49373dad878283fb9ad533bc27f0e4be8fab2b");
}

// Uploads append names there, and no release depends on them.
TEST(PublicParameters, NamesOfItemsAreNoPartOfTheFingerprint) {
  for (PublicParameters parameters : {Unlabelled(), WithoutAnchors(), Labelled()}) {
    const std::string before = Fingerprint(parameters);
    parameters.class_names = {"a", "b"};
    EXPECT_EQ(Fingerprint(parameters) == before, !parameters.HasClasses());
  }
}

TEST(PublicParameters, ClassNamesArePrintableAndOfBoundedLength) {
  for (const std::string& name : {std::string(), std::string("a\x1b"), std::string(257, 'x')}) {
    for (PublicParameters parameters : {Unlabelled(), WithoutAnchors(), Labelled()}) {
      parameters.class_names = {"a", name};
      EXPECT_THAT(Validate(parameters),
                  FailsWith(kInvalid, "class_names[1] must be 1 to 256 bytes of printable UTF-8"));
    }
  }
  PublicParameters many = WithoutAnchors();
  for (int i = 0; i < 5000; ++i) many.class_names.push_back(std::to_string(i).append(206, 'x'));
  EXPECT_THAT(Validate(many), FailsWith(kInvalid, "class_names must have at most 1048576 bytes"));
  many.class_names.resize(4900);
  EXPECT_THAT(Validate(many), IsOk());
}

TEST(PublicParameters, DigestOfAnchorsWithoutLabelsIsThatOfTheirFeatures) {
  EXPECT_EQ(ToHex(DigestOf(ThreeAnchors({}))),
            "9c334ad8a46185c6623fe1237b275f73e95f384f80aaa5664420c651e08b2291");
}

struct Invalid {
  std::function<PublicParameters()> base;
  std::function<void(PublicParameters*)> spoil;
  const char* message;
};

TEST(PublicParameters, FieldsThatDoNotFitTogetherAreNamed) {
  const auto without = [] { return WithoutAnchors(); };
  for (const Invalid& invalid : {
           Invalid{without, [](auto* p) { p->with_encrypted = false; }, "with_encrypted must be"},
           Invalid{without, [](auto* p) { p->slot_labels.resize(2); }, "slot_labels must not be"},
           Invalid{without,
                   [](auto* p) {
                     p->class_names = {"a", "a"};
                   },
                   "class_names[0] and class_names[1] are the same: \"a\""},
           Invalid{without, [](auto* p) { p->cell_code = CellCode::kPq8; }, "cell_code must not"},
           Invalid{without, [](auto* p) { p->publish_quality = true; }, "publish_quality must not"},
           Invalid{without, [](auto* p) { p->cell_partitions.resize(1); },
                   "cell_partitions must not"},
           Invalid{without, [](auto* p) { p->feature_dim = 16385; },
                   "feature_dim must be at most 16384"},
           Invalid{Labelled, [](auto* p) { p->class_names = {"a"}; }, "class_names must hold no"},
           Invalid{Labelled, [](auto* p) { p->metric = Metric::kEuclidean; },
                   "metric must be cosine"},
           Invalid{Labelled, [](auto* p) { p->slot_labels = {4}; }, "slot_labels must be at least"},
           Invalid{Unlabelled, [](auto* p) { p->with_encrypted = false; }, "anchor_labels must be"},
           Invalid{Unlabelled, [](auto* p) { p->settings.alpha = .6; }, "but are alpha 0.6"},
           Invalid{Unlabelled, [](auto* p) { p->settings.label_graph = LabelGraphKind::kBalanced; },
                   "settings must be alpha 0"},
           Invalid{Unlabelled, [](auto* p) { p->settings.start = StartKind::kClasses; },
                   "start number 2"},
       }) {
    PublicParameters parameters = invalid.base();
    invalid.spoil(&parameters);
    EXPECT_THAT(Validate(parameters), FailsWith(kInvalid, invalid.message));
  }
}

TEST(PublicParameters, NewCollectionsNeedAnExtractorAndAllLabelsOrNone) {
  EXPECT_THAT(MakeParametersWithoutAnchors(kUuid, "", Metric::kDot),
              FailsWith(kInvalid, "extractor must name"));
  EXPECT_THAT(MakeParametersWithoutAnchors(kUuid, std::string(1025, 'x'), Metric::kDot),
              FailsWith(kInvalid, "extractor must have at most 1024 bytes"));
  const auto make = [](std::vector<int32_t> labels) {
    return MakePublicParameters(kUuid, EmbeddingSettings(), ThreeAnchors(std::move(labels)), {},
                                "vectors");
  };
  EXPECT_THAT(make({1, 2}), FailsWith(kInvalid, "no label or one for each of the 3 anchors"));
  EXPECT_THAT(make({5, 5, 5}),
              FailsWith(kInvalid, "must hold at least two classes, but hold only 5: joint"));
}

TEST(PublicParameters, SlotOfLabelWithoutClassesIsNotFound) {
  EXPECT_THAT(Unlabelled().SlotOf(3),
              FailsWith(kNotFound, "the collection's anchors have no labels"));
  EXPECT_THAT(WithoutAnchors().SlotOf(0), FailsWith(kNotFound));
}

TEST(OfferedSchemes, FollowFromAnchorsLabelsCellsAndTheOperator) {
  PublicParameters parameters = Labelled();
  EXPECT_THAT(OfferedSchemes(parameters), ElementsAre("joint"));
  parameters.with_encrypted = true;
  parameters.cell_partitions = {{2, {0, 1, 0}}};
  EXPECT_THAT(OfferedSchemes(parameters), ElementsAre("joint", "cells", "encrypted"));
  parameters = Unlabelled();
  parameters.cell_partitions = {{2, {0, 1, 0}}};
  EXPECT_THAT(OfferedSchemes(parameters), ElementsAre("cells", "encrypted"));
  EXPECT_THAT(OfferedSchemes(WithoutAnchors()), ElementsAre("encrypted"));
}

}  // namespace
}  // namespace privatemail
