#include "client/search/charge_text.h"

#include <gtest/gtest.h>

namespace privatemail::client {
namespace {

TEST(ChargeText, LargeChargesSayWhatTheyAllow) {
  SearchRequest request;
  PublicParameters parameters;
  parameters.cell_partitions.emplace_back().cells = 16;
  request.epsilon = 4;
  EXPECT_EQ(ChargeText(request, Scheme::kCells, parameters), "");
  request.epsilon = 5;
  EXPECT_EQ(ChargeText(request, Scheme::kEncrypted, parameters), "");
  const std::string joint = ChargeText(request, Scheme::kJoint, parameters);
  EXPECT_EQ(joint,
            "each query spends epsilon 5, which allows the server to become e^5 = 148 "
            "times as sure of a guess");
  // e^5 / (e^5 + 15)
  EXPECT_EQ(ChargeText(request, Scheme::kCells, parameters),
            joint + "; of 16 cells the query's own is asked for with probability 0.9082");
}

TEST(ChargeText, LargeGrantsSayWhatTheyAllow) {
  EXPECT_EQ(GrantText(20), "");
  EXPECT_EQ(GrantText(21),
            "once epsilon 21 is spent on one target, it allows the server to become e^21 "
            "(more than a million) times as sure of a guess: hardly anything is hidden then");
}

}  // namespace
}  // namespace privatemail::client
