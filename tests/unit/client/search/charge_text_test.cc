#include "client/search/charge_text.h"

#include "tests/testing/published_things.h"

namespace privatemail::client {
namespace {

// 10 cells of 1,000 items: an own cell's list has .9 of the nearest items, others have .1.
PublishedThings MeasuredThings() {
  PublishedThings things(/*embedding_version=*/1, CellCode::kScalar8);
  v1::GetCollectionResponse& published = things.collection;
  published.set_cells_status(v1::CELLS_STATUS_READY);
  published.set_embedded_items(1000);
  published.set_cells_items(1000);
  published.mutable_parameters()->set_publish_quality(true);
  const auto means = [](double fidelity) {
    return std::vector<MeasuredQuality>(4, {.fidelity = {fidelity, 0}, .recall = {1, 0}});
  };
  ToProto(CellQuality{.queries = 1000,
                      .items = {100, 200},
                      .epsilons = {1, 4},
                      .partitions = {{.own = means(.9), .other = means(.1)}}},
          published.mutable_quality());
  return things;
}

TEST(ChargeText, LargeChargesSayWhatTheyAllow) {
  const auto [parameters, published, chunks] = PublishedThings();
  SearchRequest request;
  request.epsilon = 4;
  EXPECT_EQ(ChargeText(request, Scheme::kJoint, parameters, published), "");
  request.epsilon = 5;
  EXPECT_EQ(ChargeText(request, Scheme::kEncrypted, parameters, published), "");
  // 45 rows of 2 floats, 5 times 8 matches of 44 bytes
  EXPECT_EQ(
      ChargeText(request, Scheme::kJoint, parameters, published, .9996),
      "each query spends epsilon 5, which allows the server to become e^5 = 148 times as "
      "sure of a guess; the expected recall without noise is 0.9996; a query takes about 2.12 "
      "kB");
}

TEST(ChargeText, LargeChargesForCellsSayWhatTheyBuy) {
  PublishedThings things = MeasuredThings();
  SearchRequest request;
  request.epsilon = 5;
  const auto text = [&] {
    return ChargeText(request, Scheme::kCells, things.parameters, things.collection);
  };
  // e^5 / (e^5 + 9) = .9428, of which .9 and of the rest .1; 100 items of 39 bytes
  const std::string own =
      "each query spends epsilon 5, which allows the server to become e^5 = 148 times as sure of a "
      "guess; of 10 cells the query's own is asked for with probability 0.94";
  EXPECT_EQ(text(), own +
                        "; about 0.85 of the 8 nearest items are found; a query takes about 3.93 "
                        "kB");
  request.ask = 2;  // is not measured
  EXPECT_EQ(text(), own);
  request.items = 200;
  EXPECT_EQ(text(), own + "; a query takes about 7.83 kB");
  request.ask.reset();
  things.collection.clear_quality();
  EXPECT_EQ(text(), own + "; a query takes about 7.83 kB");
  request.items = 0;  // which a search refuses
  EXPECT_EQ(text(), own);
}

TEST(ChargeText, LargeGrantsSayWhatTheyAllow) {
  EXPECT_EQ(GrantText(20), "");
  EXPECT_EQ(GrantText(21),
            "once epsilon 21 is spent on one target, it allows the server to become e^21 "
            "(more than a million) times as sure of a guess: hardly anything is hidden then");
}

}  // namespace
}  // namespace privatemail::client
