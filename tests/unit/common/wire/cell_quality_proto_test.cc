#include <cmath>

#include "common/wire/proto_conversions.h"
#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

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
  const auto read = [](auto change) {
    v1::CellQuality proto = Proto();
    change(&proto);
    return FromProto(proto, 1);
  };
  EXPECT_THAT(read([](auto* proto) { proto->set_queries(999); }),
              FailsWith(kInvalid, "quality.queries must be at least 1000, but is 999"));
  EXPECT_THAT(read([](auto* proto) { proto->set_items(1, 8); }),
              FailsWith(kInvalid, "quality.items must be positive and ascend, but has 8 after 8"));
  EXPECT_THAT(read([](auto* proto) { proto->set_items(1, 16385); }),
              FailsWith(kInvalid, "quality.items must be between 1 and 16384, but is 16385"));
  EXPECT_THAT(read([](auto* proto) { proto->clear_items(); }),
              FailsWith(kInvalid, "quality.items must have at least 2 numbers, but has 0"));
  EXPECT_THAT(read([](auto* proto) { proto->set_epsilons(1, std::nan("")); }),
              FailsWith(kInvalid, "quality.epsilons"));
  EXPECT_THAT(read([](auto* proto) { proto->add_partitions(); }),
              FailsWith(kInvalid, "quality.partitions must have 1 partitions, but has 2"));
  EXPECT_THAT(read([](auto* proto) {
                proto->mutable_partitions(0)->mutable_own()->mutable_recall()->push_back(1);
              }),
              FailsWith(kInvalid, "quality.partitions.own must have curves of 4 bytes"));
  EXPECT_THAT(read([](auto* proto) {
                (*proto->mutable_partitions(0)->mutable_other()->mutable_fidelity())[2] = 101;
              }),
              FailsWith(kInvalid, "quality.partitions.other"));
  EXPECT_THAT(read([](auto* proto) { proto->mutable_partitions(0)->clear_other(); }),
              FailsWith(kInvalid, "quality.partitions.other must have 4 means, but has 0"));
}

}  // namespace
}  // namespace privatemail
