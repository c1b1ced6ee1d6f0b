#include "privatemail/anchored_client.h"

#include "common/wire/codec.h"
#include "tests/testing/published_things.h"
#include "tests/testing/release_inputs.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::anchored_client_test {
namespace {

constexpr int kDim = PublishedThings::kDim;

using Published = PublishedThings;

AnchoredClient MakeClient() {
  const Published published(/*embedding_version=*/3);
  return *AnchoredClient::Create(published.collection, published.chunks);
}

Target TargetOf(int32_t label, unsigned seed) { return {NormalRows(1, kDim, seed), label}; }

const QueryOptions kOptions{.cost = {.epsilon = 1, .delta = 1e-5}, .k = 3};

TEST(AnchoredClient, RequestIsReleaseAndPublicValuesOnly) {
  const FundedLedger funded;
  const AnchoredClient client = MakeClient();
  for (const int32_t label : {0, 3}) {
    SeededBits bits(4);
    SeededBits same_bits(4);
    const Target target = TargetOf(label, 50 + label);
    ASSERT_OK_AND_ASSIGN(const AnchoredRelease release,
                         client.scheme().Release(target, kOptions.cost, *funded.ledger, same_bits));
    ASSERT_OK_AND_ASSIGN(const PreparedQuery prepared,
                         client.Prepare(target, kOptions, *funded.ledger, bits));
    v1::RetrieveRequest expected;
    expected.set_collection("things");
    expected.set_embedding_version(3);
    expected.set_fingerprint(Fingerprint(client.parameters()));
    expected.set_k(3);
    ToProto(release.rows, expected.mutable_release());
    EXPECT_EQ(prepared.request.SerializeAsString(), expected.SerializeAsString());
    ASSERT_EQ(prepared.state.places.size(), 1u);
    EXPECT_EQ(prepared.state.places[0].slot, label);
    EXPECT_EQ(prepared.state.places[0].places, 3);
    EXPECT_EQ(prepared.state.guarantee, release.guarantee);
    EXPECT_EQ(prepared.state.noise_stddev, release.noise_stddev);
    ASSERT_OK_AND_ASSIGN(const Matrix coordinates, client.Coordinates(prepared.request));
    EXPECT_EQ(coordinates, release.rows.cast<double>());
  }
}

TEST(AnchoredClient, InvalidOptionsAreNotCharged) {
  const FundedLedger funded;
  const AnchoredClient client = MakeClient();
  SecureBits bits;
  const auto prepare = [&](const QueryOptions& options) {
    return client.Prepare(TargetOf(1, 7), options, *funded.ledger, bits);
  };
  QueryOptions options = kOptions;
  options.k = 0;
  EXPECT_THAT(prepare(options), FailsWith(kInvalid, "k must be between 1 and"));
  options = kOptions;
  options.post_processing = PostProcessing::kServer;
  EXPECT_THAT(prepare(options), FailsWith(kInvalid, "post-processing by the server is of no use"));
  options = kOptions;
  options.filter.emplace();
  EXPECT_THAT(prepare(options), FailsWith(kInvalid, "filter"));
  options = kOptions;
  options.cost.private_iterations = 2;
  EXPECT_THAT(prepare(options), FailsWith(kInvalid, "private_iterations"));
  EXPECT_EQ(funded.ledger->Show(kUuid)->releases, 0);
}

TEST(AnchoredClient, ForeignAnchorsReturnDataLoss) {
  Published published;
  published.chunks[0].set_labels(0, 4);
  EXPECT_THAT(AnchoredClient::Create(published.collection, published.chunks),
              FailsWith(absl::StatusCode::kDataLoss, "digest"));
}

}  // namespace
}  // namespace privatemail::client::anchored_client_test
