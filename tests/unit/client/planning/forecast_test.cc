#include "client/planning/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "tests/testing/retrieval_oracle.h"
#include "tests/unit/client/planning/planned_collections.h"

namespace privatemail::client {
namespace {

// As many as a stand-in of 40 anchors has, so that nothing is scaled.
constexpr int64_t kAsMany = 36;

Forecast Foreseen(const PlannedCollection& of, int64_t items, const CellAsk& ask,
                  int64_t answered) {
  return Forecaster::Create(of.parameters, of.anchors, items)->Foresee(ask, {answered})->front();
}

TEST(Forecast, OfSeparateCellsIsTheProbabilityOfTheOwnOne) {
  const PlannedCollection clouds = TwoClouds();
  for (const double epsilon : {2., 3., 5.}) {
    const double own = std::exp(epsilon) / (std::exp(epsilon) + 1);
    const auto foreseen = [&](int64_t answered) {
      return Foreseen(clouds, kAsMany, {.partition = 0, .epsilon = epsilon, .k = 4}, answered);
    };
    // Half of the items: of a cell's list all are of its cloud, but for stand-ins that have held
    // out more of one cloud than of the other.
    EXPECT_NEAR(foreseen(kAsMany / 2).fidelity.value, own, .06);
    // Fewer than either cloud has in any stand-in: no list has an item of the other's class.
    EXPECT_NEAR(foreseen(kAsMany / 3).recall.value, own, 1e-9);
  }
}

// Anchors around two spots as far apart as `apart`, each cut in two cells the same way.
PlannedCollection Cloud(float apart, const std::function<int32_t(int32_t row)>& label) {
  std::mt19937 bits(3);
  std::normal_distribution<float> noise(0, .3F);
  Anchors anchors{FloatMatrix::NullaryExpr(900, 6, [&] { return noise(bits); }), {}};
  CellPartition cells{.cells = 2, .cell_of_anchor = {}};
  for (int32_t i = 0; i < 900; ++i) {
    anchors.features(i, 0) += 1;
    anchors.features(i, 2) += i % 2 == 0 ? 0 : apart;
    anchors.labels.push_back(label(i));
    cells.cell_of_anchor.push_back(anchors.features(i, 1) > 0 ? 1 : 0);
  }
  return {std::move(anchors), {cells}};
}

void ExpectRecall(const PlannedCollection& of, int64_t k, double recall) {
  const Forecast forecast = Foreseen(of, 5000, {.partition = 0, .epsilon = 2, .k = k}, 500);
  EXPECT_NEAR(forecast.recall.value, recall, .06);
  EXPECT_LE(forecast.recall.low, recall);
  EXPECT_GE(forecast.recall.high, recall);
}

TEST(Forecast, OfClassesThatAreNoPlacesIsThatOfIndependentDraws) {
  const PlannedCollection mixed = Cloud(0, [](int32_t row) { return row % 3; });
  for (const int64_t k : {1, 2, 8}) ExpectRecall(mixed, k, 1 - std::pow(2. / 3, k));
}

// Around one spot all are of one class, around the other each is of its own: more matches find
// nothing more.
TEST(Forecast, OfPlacesThatDifferIsTheShareOfThoseWithMatches) {
  const PlannedCollection spots = Cloud(3, [](int32_t row) { return row % 2 == 0 ? 0 : 1 + row; });
  for (const int64_t k : {1, 8}) ExpectRecall(spots, k, .5);
}

TEST(Forecast, OfAllItemsIsAllOfThem) {
  for (const int64_t items : {20, 36, 500}) {
    const Forecast forecast =
        Foreseen(TwoClouds(), items, {.partition = 0, .epsilon = .1, .k = 4}, items);
    EXPECT_NEAR(forecast.fidelity.value, 1, 1e-12);
    EXPECT_NEAR(forecast.recall.value, 1, 1e-12);
  }
}

TEST(Forecast, OfFewerItemsThanMatchesIsAtMostTheirShare) {
  const Forecast forecast =
      Foreseen(TwoClouds(), kAsMany, {.partition = 0, .epsilon = 20, .k = 8}, 2);
  EXPECT_LE(forecast.fidelity.value, .25 + 1e-9);
  EXPECT_GT(forecast.fidelity.value, .05);
}

TEST(Forecast, HasIntervalsOfSharesAroundItsValues) {
  const PlannedCollection clouds = TwoClouds();
  for (const double epsilon : {.1, 1., 20.}) {
    for (const int64_t answered : {1, 9, 18, 36}) {
      const Forecast forecast =
          Foreseen(clouds, kAsMany, {.partition = 0, .epsilon = epsilon, .k = 4}, answered);
      for (const Estimate& one : {forecast.fidelity, forecast.recall}) {
        EXPECT_LT(one.low, one.high) << "of 40 anchors";
        EXPECT_LE(0, one.low);
        EXPECT_LE(one.low, one.value);
        EXPECT_LE(one.value, one.high);
        EXPECT_LE(one.high, 1);
      }
    }
  }
}

// How estimates have done.
struct Kept {
  int cases = 0;
  int inside = 0;
  double width = 0;

  void Add(const Estimate& estimate, double found) {
    ++cases;
    if (estimate.low <= found && found <= estimate.high) ++inside;
    width += estimate.high - estimate.low;
    EXPECT_NEAR(estimate.value, found, .12);
  }
};

// Asks in many ways for 1, 3 and 10 % of a gallery whose items lie as the anchors do.
void AskAndKeep(CellCode code, int items, Kept* kept) {
  const PlannedCollection collection = CollectionOf(Mixture(700, 1), code);
  const LabelledFeatures gallery = Mixture(items, 2);
  const LabelledFeatures targets = Mixture(400, 3);
  const RetrievalOracle truth(collection.parameters, collection.anchors, gallery, targets);
  const std::vector<int64_t> answered = {items / 100, 3 * items / 100, items / 10};
  ASSERT_OK_AND_ASSIGN(const Forecaster forecaster,
                       Forecaster::Create(collection.parameters, collection.anchors, items));
  for (const int64_t partition : {0, 1}) {
    for (const double epsilon : {1., 2., 4., 8.}) {
      ASSERT_OK_AND_ASSIGN(
          const std::vector<Forecast> forecasts,
          forecaster.Foresee({.partition = partition, .epsilon = epsilon, .k = 8}, answered));
      for (size_t i = 0; i < answered.size(); ++i) {
        const MeanRetrieval found =
            truth.Mean(static_cast<size_t>(partition), epsilon, answered[i], 8);
        kept->Add(forecasts[i].fidelity, found.fidelity);
        kept->Add(forecasts[i].recall, found.recall);
      }
    }
  }
}

// How often it holds on real features tests/benchmarks/plan_coverage.cc measures. It holds less
// often where all dimensions are equally wide, which no rule was fitted to: in 66 to 81 of 100
// cases.
TEST(Forecast, HoldsInNineOfTenCasesOfItsKind) {
  Kept kept;
  for (const CellCode lossless_to_lossy :
       {CellCode::kFloat16, CellCode::kScalar8, CellCode::kPq16, CellCode::kPq8}) {
    AskAndKeep(lossless_to_lossy, 2000, &kept);
  }
  AskAndKeep(CellCode::kFloat16, 1100, &kept);  // few items to an anchor
  EXPECT_GE(kept.inside, .9 * kept.cases);
  EXPECT_LE(kept.width, .1 * kept.cases) << "intervals as wide as all hold always";
}

TEST(Forecast, SaysWhereItsIntervalsAreUnmeasured) {
  const PlannedCollection collection = CollectionOf(Mixture(200, 1), CellCode::kFloat16);
  const auto why = [&](int64_t items, int64_t answered) {
    return Forecaster::Create(collection.parameters, collection.anchors, items)
        ->WhyUnmeasured(answered)
        .value_or("measured");
  };
  EXPECT_EQ(why(1000, 10), "measured");
  EXPECT_EQ(why(1000, 150), "measured");
  EXPECT_EQ(why(300, 30), "measured");
  EXPECT_EQ(why(2000, 200), "measured");
  EXPECT_THAT(why(290, 29), ::testing::HasSubstr("here there are 1.45, of which 10 % answer"));
  EXPECT_THAT(why(20'000, 2000), ::testing::HasSubstr("here there are 100, of which 10 % answer"));
  EXPECT_THAT(why(1000, 7), ::testing::HasSubstr("here there are 5, of which 0.7 % answer"));
  EXPECT_THAT(why(1000, 151), ::testing::HasSubstr("here there are 5, of which 15.1 % answer"));
}

TEST(Forecast, SaysWhatItCannotForesee) {
  PlannedCollection clouds = TwoClouds();
  ASSERT_OK_AND_ASSIGN(const Forecaster forecaster,
                       Forecaster::Create(clouds.parameters, clouds.anchors, 100));
  EXPECT_EQ(forecaster.items(), 100);
  EXPECT_THAT(forecaster.cells(), ::testing::ElementsAre(2));
  const auto foresee = [&](int64_t partition, double epsilon, int64_t k, int64_t answered) {
    return forecaster.Foresee({.partition = partition, .epsilon = epsilon, .k = k}, {answered});
  };
  EXPECT_THAT(foresee(0, 1, 8, 10), IsOk());
  EXPECT_THAT(foresee(1, 1, 8, 10), FailsWith(kInvalid, "partition must be between 0 and 0"));
  EXPECT_THAT(foresee(0, 0, 8, 10), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(foresee(0, std::numeric_limits<double>::quiet_NaN(), 8, 10),
              FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(foresee(0, 1, 0, 10), FailsWith(kInvalid, "k must be between 1 and 100"));
  EXPECT_THAT(foresee(0, 1, 8, 0), FailsWith(kInvalid, "items must be between 1 and 100"));
  EXPECT_THAT(foresee(0, 1, 8, 101), FailsWith(kInvalid, "items must be between 1 and 100"));

  EXPECT_THAT(Forecaster::Create(clouds.parameters, clouds.anchors, 0),
              FailsWith(kInvalid, "items of the gallery must be at least 1, but is 0"));
  Anchors others = clouds.anchors;
  others.features(3, 2) += 1;
  EXPECT_THAT(Forecaster::Create(clouds.parameters, others, 100),
              FailsWith(absl::StatusCode::kDataLoss, "digest"));
  Anchors few{clouds.anchors.features.topRows(19), {}};
  few.labels.assign(clouds.anchors.labels.begin(), clouds.anchors.labels.begin() + 19);
  CellPartition halves{.cells = 2, .cell_of_anchor = {few.labels.begin(), few.labels.end()}};
  const PlannedCollection small(few, {halves});
  EXPECT_THAT(Forecaster::Create(small.parameters, small.anchors, 100),
              FailsWith(kFailedPrecondition, "fewer than 20 anchors: the collection has 19"));
  PublicParameters without_codes = clouds.parameters;
  without_codes.cell_code = CellCode::kNone;
  EXPECT_THAT(Forecaster::Create(without_codes, clouds.anchors, 100),
              FailsWith(kFailedPrecondition, "not predicted where cell_code is none"));
  clouds.parameters.cell_partitions.clear();
  EXPECT_THAT(Forecaster::Create(clouds.parameters, clouds.anchors, 100),
              FailsWith(kFailedPrecondition, "the collection has no cells"));
}

}  // namespace
}  // namespace privatemail::client
