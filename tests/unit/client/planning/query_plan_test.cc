#include "client/planning/query_plan.h"

#include <cmath>
#include <string>

#include "common/items/item_code.h"
#include "privatemail/v1/retrieval.pb.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

constexpr int64_t kFrame = 5;  // gRPC's, before each message

PublicParameters Parameters(CellCode code, int64_t dim, int32_t largest_label) {
  PublicParameters parameters;
  parameters.feature_dim = dim;
  parameters.slot_labels = {0, largest_label};
  parameters.cell_code = code;
  return parameters;
}

// As protobuf counts messages that are closed when they reach 64 KiB.
int64_t BytesOfMessages(const PublicParameters& parameters, int64_t items, int64_t id_bytes) {
  int64_t bytes = 0;
  v1::RetrieveCellsResponse message;
  message.set_items_version(1'000'000'000'000);
  const auto close = [&] {
    bytes += static_cast<int64_t>(message.ByteSizeLong()) + kFrame;
    message.clear_ids();
    message.clear_labels();
    message.clear_codes();
  };
  for (int64_t item = 0; item < items; ++item) {
    message.add_ids(std::string(static_cast<size_t>(id_bytes), 'i'));
    message.add_labels(parameters.slot_labels.back());
    message.mutable_codes()->append(static_cast<size_t>(ItemCodeBytes(parameters)), 'c');
    if (message.ByteSizeLong() >= 1 << 16) close();
  }
  close();
  return bytes;
}

TEST(AnswerSize, IsThatOfTheMessagesOrALittleMore) {
  for (const CellCode code : {CellCode::kFloat16, CellCode::kScalar8, CellCode::kPq16}) {
    for (const int32_t label : {9, 300, -1}) {
      const PublicParameters parameters = Parameters(code, 64, label);
      for (const int64_t id_bytes : {1, 24, 200}) {
        for (const int64_t items : {1, 10, 500, 5000}) {
          const int64_t expected = BytesOfMessages(parameters, items, id_bytes);
          const int64_t bytes = AnswerBytes(parameters, items, id_bytes);
          EXPECT_GE(bytes, expected) << label << " " << id_bytes << " " << items;
          EXPECT_LE(bytes, expected + 40 + expected / 500) << label << " " << items;
        }
      }
    }
  }
}

TEST(AnswerSize, TellsHowManyItemsHaveRoom) {
  const PublicParameters parameters = Parameters(CellCode::kScalar8, 128, 99);
  EXPECT_EQ(ItemsWithin(parameters, AnswerBytes(parameters, 1, 24) - 1, 24), 0);
  const int64_t many = 5'000'000'000'000;  // told at once
  EXPECT_EQ(ItemsWithin(parameters, AnswerBytes(parameters, many, 24), 24), many);
  for (const int64_t items : {1, 7, 411, 9000}) {
    const int64_t bytes = AnswerBytes(parameters, items, 24);
    EXPECT_EQ(ItemsWithin(parameters, bytes, 24), items);
    EXPECT_EQ(ItemsWithin(parameters, bytes - 1, 24), items - 1);
    EXPECT_EQ(ItemsWithin(parameters, bytes + 1, 24), items);
  }
}

using ::testing::HasSubstr;

MeasuredQuality Measured(double fidelity, double recall, double error) {
  return {.fidelity = {fidelity, error}, .recall = {recall, error}};
}

// Two partitions of 4 and 10 cells; lists for epsilon 1 and 8 with 10, 40 and 160 items.
CellQuality Quality() {
  const PartitionQuality coarse{
      .own = {Measured(.2, .5, .01), Measured(.4, .7, .01), Measured(.8, .9, .01),  // epsilon 1
              Measured(.3, .6, .01), Measured(.6, .8, .01), Measured(.9, 1, .01)},
      .other = {Measured(0, .1, .02), Measured(.2, .3, .02), Measured(.2, .5, .02),
                Measured(0, .1, .02), Measured(.1, .3, .02), Measured(.1, .5, .02)}};
  PartitionQuality fine = coarse;
  for (MeasuredQuality& one : fine.own) one.fidelity.value += .1;
  return {
      .queries = 1000, .items = {10, 40, 160}, .epsilons = {1, 8}, .partitions = {coarse, fine}};
}

PublicParameters Planned() {
  PublicParameters parameters = Parameters(CellCode::kScalar8, 64, 9);
  parameters.cell_partitions = {{.cells = 4, .cell_of_anchor = {}},
                                {.cells = 10, .cell_of_anchor = {}}};
  return parameters;
}

// The odds of the own cell against one of the others are e^epsilon = 3: even with 4 cells.
CellCost EvenOdds() { return {.partition = 0, .epsilon = std::log(3)}; }

TEST(Predict, WeighsOwnAndOtherCellsByTheirProbability) {
  const Prediction found = Predict(Quality(), EvenOdds(), 4, 160);
  EXPECT_NEAR(found.fidelity.value, .5, 1e-12);  // (.8 + .2) / 2
  EXPECT_NEAR(found.recall.value, .7, 1e-12);
  const double kHalf = 1.96 * .015 * std::sqrt(3) + .005;
  EXPECT_NEAR(found.fidelity.low, .5 - kHalf, 1e-12);
  EXPECT_NEAR(found.fidelity.high, .5 + kHalf, 1e-12);
}

TEST(Predict, IsLinearInTheLogarithmBetweenNumbersOfItems) {
  EXPECT_NEAR(Predict(Quality(), EvenOdds(), 4, 40).fidelity.value, .3, 1e-12);
  EXPECT_NEAR(Predict(Quality(), EvenOdds(), 4, 80).fidelity.value, .4, 1e-12);
  EXPECT_NEAR(Predict(Quality(), EvenOdds(), 4, 20).fidelity.value, .2, 1e-12);
  EXPECT_NEAR(Predict(Quality(), EvenOdds(), 4, 1000).fidelity.value, .5, 1e-12) << "the last";
  EXPECT_NEAR(Predict(Quality(), EvenOdds(), 4, 1).fidelity.value, .1, 1e-12) << "the first";
}

TEST(Predict, TakesTheListsOfTheNearestEpsilon) {
  const auto at = [](double epsilon) {
    return Predict(Quality(), {.partition = 0, .epsilon = epsilon}, 4, 10).fidelity.value;
  };
  EXPECT_NEAR(at(40), .3, 1e-12);
  EXPECT_NEAR(at(2.8), .2 / (1 + 3 * std::exp(-2.8)), 1e-12);  // sqrt(8) is about 2.828
  EXPECT_NEAR(at(2.9), .3 / (1 + 3 * std::exp(-2.9)), 1e-12);
}

TEST(Predict, StaysWithinZeroAndOne) {
  const Prediction sure = Predict(Quality(), {.partition = 0, .epsilon = 700}, 4, 160);
  EXPECT_EQ(sure.recall.value, 1);
  EXPECT_EQ(sure.recall.high, 1);
  const Prediction none = Predict(Quality(), {.partition = 0, .epsilon = 1e-9}, 1000, 10);
  EXPECT_GE(none.fidelity.low, 0);
}

TEST(DefaultItems, AreTheFewestThatFindAboutTheMost) {
  CellQuality quality = Quality();
  const CellCost certain{.partition = 0, .epsilon = 700};
  EXPECT_EQ(DefaultItems(quality, certain, 4), 160);
  quality.partitions[0].own[4].fidelity.value = .86;
  EXPECT_EQ(DefaultItems(quality, certain, 4), 40);
  for (MeasuredQuality& one : quality.partitions[0].own) one.fidelity.value = .97;
  EXPECT_EQ(DefaultItems(quality, certain, 4), 10);
}

constexpr int64_t kGallery = 1000;

PlanWish Wish(double epsilon, int64_t items) {
  return {.epsilon = epsilon, .max_bytes = AnswerBytes(Planned(), items, 24)};
}

absl::StatusOr<QueryPlan> Plan(const PlanWish& wish, int64_t gallery = kGallery) {
  return MakePlan(Planned(), Quality(), gallery, wish);
}

TEST(QueryPlan, TakesTheFewestItemsThatFulfilTheWish) {
  PlanWish wish = Wish(8, kGallery);
  wish.fidelity = .65;
  ASSERT_OK_AND_ASSIGN(const QueryPlan fine, Plan(wish));
  EXPECT_TRUE(fine.fulfils);
  EXPECT_EQ(fine.cost.partition, 1) << ".6 in the other";
  EXPECT_EQ(fine.cells, 10);
  EXPECT_EQ(fine.items, 40);
  EXPECT_EQ(fine.cost.epsilon, 8);
  EXPECT_EQ(fine.bytes_down, AnswerBytes(Planned(), 40, 24));
  wish.recall = .95;
  ASSERT_OK_AND_ASSIGN(const QueryPlan both, Plan(wish));
  EXPECT_TRUE(both.fulfils);
  EXPECT_EQ(both.items, 160);
}

TEST(QueryPlan, WithoutAWishFindsTheMostThatFits) {
  ASSERT_OK_AND_ASSIGN(const QueryPlan all, Plan({.epsilon = 1}));
  EXPECT_EQ(all.items, 160);
  ASSERT_OK_AND_ASSIGN(const QueryPlan some, Plan(Wish(1, 100)));
  EXPECT_EQ(some.items, 100) << "between measured numbers";
  ASSERT_OK_AND_ASSIGN(const QueryPlan shrunk, Plan({.epsilon = 1}, 100));
  EXPECT_EQ(shrunk.items, 99) << "never all items";
  EXPECT_EQ(Plan({.epsilon = 1}, 10).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(QueryPlan, UnreachableGoalReturnsNearestPlan) {
  PlanWish wish = Wish(1, 40);
  wish.fidelity = .9;
  ASSERT_OK_AND_ASSIGN(const QueryPlan fidelity, Plan(wish));
  EXPECT_FALSE(fidelity.fulfils);
  EXPECT_EQ(fidelity.items, 40);
  EXPECT_EQ(fidelity.cost.epsilon, 1) << "a plan never raises it";
  wish.fidelity.reset();
  wish.recall = .99;
  ASSERT_OK_AND_ASSIGN(const QueryPlan recall, Plan(wish));
  EXPECT_FALSE(recall.fulfils);
  EXPECT_EQ(recall.cost.partition, 0) << "whose own cell is likelier";
}

TEST(QueryPlan, CarriesTheGuaranteeOfTheChoice) {
  ASSERT_OK_AND_ASSIGN(const QueryPlan plan, Plan(Wish(1.5, 18)));
  EXPECT_EQ(plan.guarantee.epsilon, 1.5);
  EXPECT_EQ(plan.guarantee.delta, 0);
  EXPECT_TRUE(plan.guarantee.proven);
  EXPECT_THAT(plan.guarantee.source, HasSubstr("PRIVACY.md section 5"));
}

TEST(WhyNot, IsTheSameFormulaReadInThreeDirections) {
  QueryPlan plan;
  plan.own_fidelity = 1;
  plan.cost.epsilon = 1;
  // e / (e + 9), 1 / (1 + e) and ln 9.
  EXPECT_THAT(WhyNot(plan, .1, .5),
              HasSubstr("= 0.232 at most; for 0.5 it takes epsilon 2.2 with this share, or a share "
                        "of 0.269 with this epsilon"));
  EXPECT_THAT(WhyNot(plan, .6, .5), HasSubstr("it takes epsilon 0 ")) << "chance is enough";
  plan.cost.epsilon = 1000;
  EXPECT_THAT(WhyNot(plan, .1, .5), HasSubstr("= 1.000 at most"));
}

TEST(WhyNot, IsTheListWhereTheOwnCellHasLess) {
  PlanWish wish = Wish(8, 40);
  wish.fidelity = .9;
  ASSERT_OK_AND_ASSIGN(const QueryPlan plan, Plan(wish));
  EXPECT_NEAR(plan.own_fidelity, .7, 1e-12);
  EXPECT_THAT(WhyNot(plan, .04, .9), HasSubstr("its 40 items as they are encoded would have "
                                               "fidelity 0.70"));
}

TEST(QueryPlan, SaysWhichWishIsNone) {
  EXPECT_THAT(Plan({}), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(Plan({.epsilon = -1}), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(Plan({.epsilon = 1, .fidelity = 1}),
              FailsWith(kInvalid, "fidelity must be strictly between 0 and 1"));
  EXPECT_THAT(Plan({.epsilon = 1, .recall = 0}), FailsWith(kInvalid, "recall must be strictly"));
  EXPECT_THAT(Plan({.epsilon = 1, .max_bytes = 20}),
              FailsWith(kInvalid, "which 10 items take, but is 20"));
}

}  // namespace
}  // namespace privatemail::client
