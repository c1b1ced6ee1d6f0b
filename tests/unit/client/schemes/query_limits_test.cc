#include "client/schemes/query_limits.h"

#include "client/schemes/cells/cells_search.h"
#include "client/schemes/joint/joint_search.h"
#include "tests/testing/published_things.h"

namespace privatemail::client::client_limits_test {
namespace {

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
constexpr auto kDeadline = absl::StatusCode::kDeadlineExceeded;

PublicParameters Sizes(int64_t anchors, int64_t feature_dim, int embedding_dim) {
  PublicParameters parameters = PublishedThings().parameters;
  parameters.anchor_count = anchors;
  parameters.feature_dim = feature_dim;
  parameters.settings.embedding_dim = embedding_dim;
  return parameters;
}

TEST(CheckQueryMemory, NamesTheSizesAndTheSetting) {
  const PublicParameters parameters = Sizes(20'000, 512, 1024);
  EXPECT_THAT(CheckQueryMemory(parameters, JointQueryMemory(parameters), {}),
              FailsWith(kExhausted,
                        "for a query with the collection's anchor_count 20000, feature_dim 512, "
                        "embedding_dim 1024, steps 5 and 5 classes, but is 1073741824"));
}

// 64 MiB, all that `collection create` can send.
TEST(CheckQueryMemory, EveryUploadedCollectionFitsTheDefault) {
  for (const int64_t feature_dim : {128, 548, 2048, 4096}) {
    const PublicParameters parameters = Sizes((16 << 20) / feature_dim, feature_dim, 8);
    EXPECT_THAT(CheckQueryMemory(parameters, JointQueryMemory(parameters), {}), IsOk())
        << feature_dim;
  }
}

TEST(CheckQueryMemory, ReceivedAnchorsAloneExceedIt) {
  const PublicParameters parameters = Sizes(1 << 20, 256, 2);  // 1 GiB of floats
  for (const double bytes : {JointQueryMemory(parameters), CellQueryMemory(parameters)}) {
    EXPECT_GT(bytes, 4. * (int64_t{1} << 30));
  }
}

TEST(ClientLimits, EveryClientHoldsSizesAgainstItsMemory) {
  const PublishedThings slots;
  const PublishedThings cells(1, CellCode::kFloat16);
  const ClientLimits little{.max_memory = 1000};
  const auto refused = FailsWith(kExhausted, "max_memory");
  const FetchAnchors never = [] {
    ADD_FAILURE() << "anchors beyond the memory are fetched";
    return std::vector<v1::GetAnchorsResponse>();
  };
  EXPECT_THAT(JointCollection::Create(slots.collection, never, {}, little), refused);
  EXPECT_THAT(CellsCollection::Create(cells.collection, never, little), refused);
}

TEST(ClientLimits, JointClientStopsComputingAtItsDeadline) {
  const PublishedThings slots;
  const ClientLimits no_time{.max_computing = absl::ZeroDuration()};
  EXPECT_THAT(JointCollection::Create(slots.collection, Sends(slots.chunks), {}, no_time),
              FailsWith(kDeadline, "max_computing must be longer for"));
}

TEST(CheckRanking, NamesTheSizes) {
  EXPECT_THAT(CheckRanking(Sizes(8000, 1024, 2), 1024, {}), IsOk());
  EXPECT_FALSE(CheckRanking(Sizes(8000, 1024, 2), 8000, {}).ok()) << "own anchors";
  EXPECT_THAT(CheckRanking(Sizes(10'000, 10'000, 2), 10'000, {}),
              FailsWith(kExhausted, "anchor_count 10000, feature_dim 10000"));
  ClientLimits roomy;
  roomy.max_memory = int64_t{1} << 40;
  EXPECT_THAT(
      CheckRanking(Sizes(10'000, 10'000, 2), 10'000, roomy),
      FailsWith(kDeadline, "anchor_count 10000 and feature_dim 10000, unless the target's label"));
}

}  // namespace
}  // namespace privatemail::client::client_limits_test
