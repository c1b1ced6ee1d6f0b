#include "client/planning/query_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/items/item_code.h"
#include "privatemail/v1/retrieval.pb.h"
#include "tests/unit/client/planning/planned_collections.h"

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
  if (parameters.SendsCoordinates()) message.set_embedding_version(1'000'000'000'000);
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
  for (const CellCode code :
       {CellCode::kFloat16, CellCode::kScalar8, CellCode::kPq16, CellCode::kNone}) {
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

constexpr int64_t kItems = 36;

// The clouds and a second partition that mixes them: nothing is worth asking for by it.
PlannedCollection Collection() {
  PlannedCollection clouds = TwoClouds();
  CellPartition mixed{.cells = 2, .cell_of_anchor = {}};
  for (int32_t i = 0; i < 40; ++i) mixed.cell_of_anchor.push_back(i / 2 % 2);
  return {clouds.anchors, {mixed, clouds.parameters.cell_partitions[0]}};
}

PlanWish Wish(double epsilon, int64_t items) {
  const PlannedCollection of = Collection();
  return {.epsilon = epsilon,
          .max_bytes = AnswerBytes(of.parameters, items, 24),
          .fidelity = {},
          .recall = {},
          .k = 4};
}

absl::StatusOr<QueryPlan> Plan(const PlanWish& wish) {
  const PlannedCollection of = Collection();
  return MakePlan(of.parameters, *Forecaster::Create(of.parameters, of.anchors, kItems), wish);
}

TEST(Ceiling, IsTheSameFormulaReadInThreeDirections) {
  // e / (e + 9), 1 / (1 + e) and ln 9.
  const Ceiling ceiling = CeilingFor(1, .1, .5);
  EXPECT_NEAR(ceiling.fidelity, .23196931668, 1e-10);
  EXPECT_NEAR(ceiling.share_needed, .26894142137, 1e-10);
  EXPECT_NEAR(ceiling.epsilon_needed, 2.19722457734, 1e-10);
  EXPECT_THAT(ceiling.InWords(1, .5),
              HasSubstr("f e^epsilon / (1 + f (e^epsilon - 1)) = 0.1 x 2.718 / (1 + 0.1 x 1.718) = "
                        "0.232 at most; for 0.5 it takes epsilon 2.2 with this share, or a share "
                        "of 0.269 with this epsilon"));
  EXPECT_THAT(CeilingFor(1000, .1, .5).InWords(1000, .5),
              HasSubstr("= 0.1 x e^1000 / (1 + 0.1 x (e^1000 - 1)) = 1.000 at most; for 0.5 it "
                        "takes epsilon 2.2 with this share, or a share of 0 with this epsilon"));
  EXPECT_THAT(CeilingFor(709, .1, .5).InWords(709, .5), HasSubstr("= 0.1 x 8.218e+307 / "));
  EXPECT_EQ(CeilingFor(1, .6, .5).epsilon_needed, 0) << "chance is enough";
  EXPECT_EQ(CeilingFor(1, 1, .5).fidelity, 1);
}

TEST(QueryPlan, TakesTheFewestItemsThatFulfilTheWish) {
  PlanWish wish = Wish(4, kItems);
  wish.fidelity = .5;
  ASSERT_OK_AND_ASSIGN(const QueryPlan half, Plan(wish));
  EXPECT_TRUE(half.fulfils);
  EXPECT_EQ(half.cost.partition, 1);
  EXPECT_EQ(half.cells, 2);
  EXPECT_EQ(half.cost.epsilon, 4);
  EXPECT_GE(half.forecast.fidelity.value, .5);
  EXPECT_FALSE(half.ceiling.has_value());
  wish.fidelity = .9;
  ASSERT_OK_AND_ASSIGN(const QueryPlan most, Plan(wish));
  EXPECT_TRUE(most.fulfils);
  EXPECT_GT(most.items, half.items);
  EXPECT_LE(most.items, 27) << "of a cloud that has half of the items, and a step more";
  EXPECT_EQ(most.bytes_down, AnswerBytes(Collection().parameters, most.items, 24));
}

TEST(QueryPlan, WithoutAWishFindsTheMostThatHasRoom) {
  ASSERT_OK_AND_ASSIGN(const QueryPlan all, Plan(Wish(1, kItems)));
  EXPECT_EQ(all.items, kItems);
  EXPECT_NEAR(all.forecast.fidelity.value, 1, 1e-12);
  ASSERT_OK_AND_ASSIGN(const QueryPlan some, Plan(Wish(1, 10)));
  EXPECT_LE(some.items, 10);
  EXPECT_TRUE(some.fulfils);
}

TEST(QueryPlan, CarriesTheGuaranteeOfTheChoice) {
  ASSERT_OK_AND_ASSIGN(const QueryPlan plan, Plan(Wish(1.5, 18)));
  EXPECT_EQ(plan.guarantee.epsilon, 1.5);
  EXPECT_EQ(plan.guarantee.delta, 0);
  EXPECT_TRUE(plan.guarantee.proven);
  EXPECT_THAT(plan.guarantee.source, HasSubstr("PRIVACY.md section 5"));
}

TEST(QueryPlan, NamesTheCeilingOfAFidelityThatIsOutOfReach) {
  PlanWish wish = Wish(1, 9);
  wish.fidelity = .8;
  ASSERT_OK_AND_ASSIGN(const QueryPlan plan, Plan(wish));
  EXPECT_FALSE(plan.fulfils);
  ASSERT_TRUE(plan.ceiling.has_value());
  EXPECT_EQ(plan.ceiling->share, .25);
  EXPECT_NEAR(plan.ceiling->fidelity, M_E / (M_E + 3), 1e-12);
  EXPECT_GT(plan.forecast.fidelity.value, .25) << "the best there is";
}

TEST(QueryPlan, WeighsARecallByItselfAndBesideAFidelity) {
  PlanWish wish = Wish(4, kItems);
  wish.recall = .8;
  ASSERT_OK_AND_ASSIGN(const QueryPlan recall, Plan(wish));
  EXPECT_TRUE(recall.fulfils);
  EXPECT_GE(recall.forecast.recall.value, .8);
  wish.fidelity = .95;
  ASSERT_OK_AND_ASSIGN(const QueryPlan both, Plan(wish));
  EXPECT_TRUE(both.fulfils);
  EXPECT_GE(both.forecast.recall.value, .8);
  EXPECT_GE(both.forecast.fidelity.value, .95);
  EXPECT_GT(both.items, recall.items);
  PlanWish out_of_reach = Wish(.1, 1);  // an item is of one class only
  out_of_reach.recall = .95;
  ASSERT_OK_AND_ASSIGN(const QueryPlan best, Plan(out_of_reach));
  EXPECT_FALSE(best.fulfils);
  EXPECT_FALSE(best.ceiling.has_value()) << "it is of fidelity";
}

TEST(QueryPlan, HoldsARecallThatIsOutOfReachAgainstASearchThatHidesNothing) {
  PlanWish wish = Wish(.1, 1);  // an item is of one class only, and the clouds' classes are apart
  wish.recall = .95;
  ASSERT_OK_AND_ASSIGN(const QueryPlan plan, Plan(wish));
  EXPECT_FALSE(plan.fulfils);
  ASSERT_TRUE(plan.open_recall.has_value());
  EXPECT_NEAR(plan.open_recall->value, 1, 1e-12);
  EXPECT_THAT(
      plan.OpenRecallInWords(.95),
      HasSubstr("no ceiling: a search that hides nothing is predicted to find the class among "
                "its 4 matches with probability 1.00 ("));
  wish.recall = .1;
  ASSERT_OK_AND_ASSIGN(const QueryPlan within, Plan(wish));
  EXPECT_FALSE(within.open_recall.has_value());
}

// Eight bytes an item do not tell which of 32 dimensions are nearest, whichever come back.
TEST(QueryPlan, HoldsAFidelityThatCodesDoNotReachAgainstASearchThatHidesNothing) {
  const PlannedCollection lossy = CollectionOf(Mixture(700, 1), CellCode::kPq8);
  ASSERT_OK_AND_ASSIGN(const Forecaster forecaster,
                       Forecaster::Create(lossy.parameters, lossy.anchors, 2000));
  PlanWish wish = Wish(4, 2000);
  wish.fidelity = .9;
  ASSERT_OK_AND_ASSIGN(const QueryPlan plan, MakePlan(lossy.parameters, forecaster, wish));
  EXPECT_FALSE(plan.fulfils);
  EXPECT_FALSE(plan.ceiling.has_value()) << "no epsilon would do";
  ASSERT_TRUE(plan.open_fidelity.has_value());
  EXPECT_LT(plan.open_fidelity->value, .9);
  EXPECT_GE(plan.open_fidelity->value, plan.forecast.fidelity.value - 1e-12);
  EXPECT_THAT(plan.OpenFidelityInWords(),
              HasSubstr("even a search that hides nothing is predicted to have 0."));

  wish.fidelity = plan.open_fidelity->value - .01;
  wish.epsilon = .5;
  wish.max_bytes /= 4;
  ASSERT_OK_AND_ASSIGN(const QueryPlan within, MakePlan(lossy.parameters, forecaster, wish));
  EXPECT_FALSE(within.open_fidelity.has_value());
  EXPECT_TRUE(within.ceiling.has_value());
}

TEST(QueryPlan, OutOfReachIsAsNearAsCanBeToWhatIsWished) {
  int differ = 0;
  for (const double epsilon : {1., 2., 4.}) {
    for (const int64_t items : {4, 6, 9}) {
      ASSERT_OK_AND_ASSIGN(const QueryPlan most_fidelity, Plan(Wish(epsilon, items)));
      PlanWish wish = Wish(epsilon, items);
      wish.recall = .9999;
      ASSERT_OK_AND_ASSIGN(const QueryPlan most_recall, Plan(wish));
      const Forecast& fidelity = most_fidelity.forecast;
      const Forecast& recall = most_recall.forecast;
      EXPECT_GE(recall.recall.value, fidelity.recall.value);
      EXPECT_LE(recall.fidelity.value, fidelity.fidelity.value);
      if (!most_recall.fulfils && recall.recall.value > fidelity.recall.value) ++differ;
    }
  }
  EXPECT_GE(differ, 1);
}

TEST(QueryPlan, SaysWhichWishIsNone) {
  const auto refused = [](auto change) {
    PlanWish wish = Wish(1, kItems);
    change(&wish);
    return Plan(wish);
  };
  EXPECT_THAT(refused([](PlanWish* wish) { wish->epsilon = PlanWish().epsilon; }),
              FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(refused([](PlanWish* wish) { wish->epsilon = -1; }), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(refused([](PlanWish* wish) { wish->fidelity = 1; }),
              FailsWith(kInvalid, "fidelity must lie strictly between 0 and 1"));
  EXPECT_THAT(refused([](PlanWish* wish) { wish->recall = 0; }),
              FailsWith(kInvalid, "recall must lie strictly between 0 and 1"));
  EXPECT_THAT(refused([](PlanWish* wish) { wish->k = 37; }),
              FailsWith(kInvalid, "k must be between 1 and 36, but is 37"));
  EXPECT_THAT(refused([](PlanWish* wish) { wish->id_bytes = 0; }), FailsWith(kInvalid, "id_bytes"));
  EXPECT_THAT(refused([](PlanWish* wish) { wish->max_bytes = 20; }),
              FailsWith(kInvalid, "which one item takes, but is 20"));
}

}  // namespace
}  // namespace privatemail::client
