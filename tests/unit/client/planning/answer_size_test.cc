#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/planning/query_plan.h"
#include "common/cells/item_code.h"
#include "privatemail/v1/retrieval.pb.h"

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
        for (const int64_t items : {1, 10, 500, 20'000}) {
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

}  // namespace
}  // namespace privatemail::client
