#include "privatemail/joint_client.h"

#include "client/schemes/joint/joint_request.h"
#include "common/embedding/smlq.h"
#include "common/wire/codec.h"
#include "tests/testing/published_things.h"
#include "tests/testing/release_inputs.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::joint_client_test {
namespace {

constexpr int kClasses = PublishedThings::kClasses;
constexpr int kAnchors = PublishedThings::kAnchors;
constexpr int kDim = PublishedThings::kDim;

using Published = PublishedThings;

JointClient MakeClient() {
  const Published published;
  return *JointClient::Create(published.collection, published.chunks);
}

Target TargetOf(int32_t label, unsigned seed) { return {NormalRows(1, kDim, seed), label}; }

const ServedCollection kServed{.name = "things", .embedding_version = 1};
const QueryOptions kOptions{.cost = {.epsilon = 1, .delta = 1e-5}, .k = 3};

// Prepare's request is PackRequest's, which gets the release and public values only.
TEST(JointClient, RequestDependsOnReleaseAndPublicValuesOnly) {
  const FundedLedger funded;
  const JointClient client = MakeClient();
  for (const auto where : {PostProcessing::kClient, PostProcessing::kServer}) {
    QueryOptions options = kOptions;
    options.post_processing = where;
    for (const int32_t label : {0, 3}) {
      SeededBits bits(4);
      SeededBits same_bits(4);
      const Target target = TargetOf(label, 50 + label);
      ASSERT_OK_AND_ASSIGN(
          const JointRelease release,
          client.scheme().Release(target, options.cost, *funded.ledger, same_bits));
      ASSERT_OK_AND_ASSIGN(const PreparedQuery prepared,
                           client.Prepare(target, options, *funded.ledger, bits));
      ASSERT_OK_AND_ASSIGN(const v1::RetrieveRequest packed,
                           PackRequest(kServed, client.scheme(), release.rows, options));
      EXPECT_EQ(prepared.request.SerializeAsString(), packed.SerializeAsString());
    }
  }
}

TEST(JointClient, ServerPostProcessingGivesTheClientsCoordinates) {
  const FundedLedger funded;
  const JointClient client = MakeClient();
  SecureBits bits;
  ASSERT_OK_AND_ASSIGN(
      const JointRelease release,
      client.scheme().Release(TargetOf(2, 9), kOptions.cost, *funded.ledger, bits));
  QueryOptions at_server = kOptions;
  at_server.post_processing = PostProcessing::kServer;
  ASSERT_OK_AND_ASSIGN(const v1::RetrieveRequest request,
                       PackRequest(kServed, client.scheme(), release.rows, at_server));
  EXPECT_EQ(request.post_processing_steps(), 5u);

  // The server has the request and the public labels.
  ASSERT_OK_AND_ASSIGN(const FloatMatrix received, FromProto("release", request.release()));
  std::vector<int32_t> labels = client.parameters().slot_labels;
  for (int i = 0; i < kAnchors; ++i) labels.push_back(i % kClasses);
  const EmbeddingSettings& settings = client.parameters().settings;
  ASSERT_OK_AND_ASSIGN(const Matrix server, PostProcess(received.cast<double>(),
                                                        LabelGraph(labels, settings.label_graph,
                                                                   settings.KernelDenominator()),
                                                        settings));
  ASSERT_OK_AND_ASSIGN(const Matrix own, PostProcess(release.rows.cast<double>(),
                                                     client.scheme().label_graph(), settings));
  EXPECT_LE((server - own).norm(), 1e-9 * own.norm());

  ASSERT_OK_AND_ASSIGN(const v1::RetrieveRequest finished,
                       PackRequest(kServed, client.scheme(), release.rows, kOptions));
  ASSERT_OK_AND_ASSIGN(const FloatMatrix sent, FromProto("release", finished.release()));
  EXPECT_EQ(finished.post_processing_steps(), 0u);
  EXPECT_LE((sent.cast<double>() - server).norm(), 1e-6 * server.norm())
      << "one rounding to float apart";
}

TEST(JointClient, FilterIsSentUnchangedBesideTheRelease) {
  const FundedLedger funded;
  const JointClient client = MakeClient();
  QueryOptions options = kOptions;
  options.filter.emplace().mutable_range()->set_path("year");
  options.filter->mutable_range()->set_gte(2020);
  SeededBits bits(4);
  SeededBits same_bits(4);
  ASSERT_OK_AND_ASSIGN(PreparedQuery with,
                       client.Prepare(TargetOf(1, 7), options, *funded.ledger, bits));
  ASSERT_OK_AND_ASSIGN(const PreparedQuery without,
                       client.Prepare(TargetOf(1, 7), kOptions, *funded.ledger, same_bits));
  EXPECT_EQ(with.request.filter().SerializeAsString(), options.filter->SerializeAsString());
  with.request.clear_filter();
  EXPECT_EQ(with.request.SerializeAsString(), without.request.SerializeAsString());
}

TEST(JointClient, MalformedFilterIsNotCharged) {
  const FundedLedger funded;
  const JointClient client = MakeClient();
  QueryOptions options = kOptions;
  options.filter.emplace().mutable_range()->set_path("year");
  SeededBits bits(4);
  EXPECT_THAT(client.Prepare(TargetOf(1, 7), options, *funded.ledger, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "filter.range must have a bound"));
  const auto entry = funded.ledger->Show(client.parameters().collection_uuid);
  ASSERT_THAT(entry, IsOk());
  EXPECT_EQ(entry->spent().epsilon, 0);
}

QueryState StateOf(int64_t slot, int64_t k) {
  QueryState state;
  state.places = {{.slot = slot, .places = k, .posterior = 1}};
  state.expected.k = k;
  return state;
}

v1::RetrieveResponse Answer(int slots, int matches) {
  v1::RetrieveResponse response;
  for (int slot = 0; slot < slots; ++slot) {
    v1::SlotMatches* own = response.add_slots();
    for (int i = 0; i < matches; ++i)
      own->add_matches()->set_id(absl::StrCat("slot ", slot, " match ", i));
  }
  response.mutable_alignment()->set_scale(2);
  for (const double value : {1.0, 0.0, 0.0, 1.0}) response.mutable_alignment()->add_rotation(value);
  for (const double value : {0.0, 0.0}) response.mutable_alignment()->add_translation(value);
  return response;
}

std::vector<std::string> Ids(const QueryResult& result) {
  std::vector<std::string> ids;
  for (const QueryMatch& match : result.matches) ids.push_back(match.id);
  return ids;
}

TEST(JointClient, FinishFillsPlacesOfSeveralClasses) {
  const JointClient client = MakeClient();
  QueryState state;
  state.expected.k = 4;
  state.places = {{.slot = 3, .places = 2}, {.slot = 0, .places = 2}};
  v1::RetrieveResponse answer = Answer(kClasses, 4);
  ASSERT_OK_AND_ASSIGN(const QueryResult full, client.Finish(state, answer));
  EXPECT_EQ(Ids(full), (std::vector<std::string>{"slot 3 match 0", "slot 3 match 1",
                                                 "slot 0 match 0", "slot 0 match 1"}));
  // An item that both slots found is shown once.
  answer.mutable_slots(0)->mutable_matches(0)->set_id("slot 3 match 1");
  ASSERT_OK_AND_ASSIGN(const QueryResult distinct, client.Finish(state, answer));
  EXPECT_EQ(Ids(distinct), (std::vector<std::string>{"slot 3 match 0", "slot 3 match 1",
                                                     "slot 0 match 1", "slot 0 match 2"}));
  // Matches that a class lacks are taken from the others, before or after it.
  answer.mutable_slots(0)->mutable_matches()->DeleteSubrange(1, 3);
  ASSERT_OK_AND_ASSIGN(const QueryResult short_last, client.Finish(state, answer));
  EXPECT_EQ(Ids(short_last), (std::vector<std::string>{"slot 3 match 0", "slot 3 match 1",
                                                       "slot 3 match 2", "slot 3 match 3"}));
  answer = Answer(kClasses, 4);
  answer.mutable_slots(3)->mutable_matches()->DeleteSubrange(1, 3);
  ASSERT_OK_AND_ASSIGN(const QueryResult short_first, client.Finish(state, answer));
  EXPECT_EQ(Ids(short_first), (std::vector<std::string>{"slot 3 match 0", "slot 0 match 0",
                                                        "slot 0 match 1", "slot 0 match 2"}));
}

TEST(JointClient, FinishReturnsTargetSlot) {
  const JointClient client = MakeClient();
  ASSERT_OK_AND_ASSIGN(const QueryResult result, client.Finish(StateOf(3, 2), Answer(kClasses, 2)));
  ASSERT_EQ(result.matches.size(), 2u);
  EXPECT_EQ(result.matches[1].id, "slot 3 match 1");
  EXPECT_EQ(result.alignment.scale, 2);
}

TEST(JointClient, FinishRefusesInvalidAnswer) {
  const JointClient client = MakeClient();
  EXPECT_THAT(client.Finish(StateOf(3, 2), Answer(kClasses - 1, 2)),
              FailsWith(absl::StatusCode::kDataLoss, "5 slots"));
  EXPECT_THAT(client.Finish(StateOf(3, 2), Answer(kClasses, 3)),
              FailsWith(absl::StatusCode::kDataLoss, "at most 2"));
}

TEST(JointClient, OtherExtractorOrTamperedParametersReturnFailedPrecondition) {
  EXPECT_THAT(MakeClient().CheckExtractor("builtin:hog-colour/1"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "vectors"));
  Published published;
  published.collection.mutable_parameters()->mutable_settings()->set_alpha(3);
  EXPECT_THAT(JointClient::Create(published.collection, published.chunks),
              FailsWith(absl::StatusCode::kFailedPrecondition, "fingerprint mismatch"));
}

TEST(JointClient, TooFewAnchorsReturnDataLoss) {
  Published published;
  published.collection.mutable_parameters()->set_anchor_count(2);
  EXPECT_THAT(JointClient::Create(published.collection, published.chunks),
              FailsWith(absl::StatusCode::kDataLoss,
                        "anchors must be at least embedding_dim + 1 = 3, but are 2"));
}

TEST(JointClient, UnbuiltCollectionReturnsFailedPrecondition) {
  Published published;
  published.collection.set_embedding_version(0);
  EXPECT_THAT(JointClient::Create(published.collection, published.chunks),
              FailsWith(absl::StatusCode::kFailedPrecondition, "things is not built yet"));
}

TEST(JointClient, CollectionWithoutClassesReturnsFailedPrecondition) {
  const PublishedThings unlabelled(1, CellCode::kFloat16, 1, /*has_classes=*/false);
  EXPECT_THAT(JointClient::Create(unlabelled.collection, unlabelled.chunks),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        "its anchors have no labels: it offers the scheme cells"));
  v1::GetCollectionResponse without;
  const PublicParameters parameters =
      *MakeParametersWithoutAnchors(kUuid, "vectors", Metric::kCosine);
  ToProto(parameters, without.mutable_parameters());
  without.set_fingerprint(Fingerprint(parameters));
  without.set_name("things");
  for (const uint64_t version : {0, 1}) {  // of a hostile server, too
    without.set_embedding_version(version);
    EXPECT_THAT(JointClient::Create(without, {}),
                FailsWith(absl::StatusCode::kFailedPrecondition,
                          "collection things has no anchors: it offers the scheme encrypted"));
  }
}

TEST(JointClient, KOutOfRangeIsNotCharged) {
  const FundedLedger funded;
  SecureBits bits;
  QueryOptions options = kOptions;
  for (const int64_t k : {int64_t{0}, kMaxNeighbors + 1}) {
    options.k = k;
    EXPECT_THAT(MakeClient().Prepare(TargetOf(1, 7), options, *funded.ledger, bits),
                FailsWith(absl::StatusCode::kInvalidArgument, "k must be between 1"));
  }
  // The server's max_k.
  Published published;
  published.collection.set_max_k(10);
  ASSERT_OK_AND_ASSIGN(const JointClient client,
                       JointClient::Create(published.collection, published.chunks));
  options.k = 11;
  EXPECT_THAT(client.Prepare(TargetOf(1, 7), options, *funded.ledger, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "k must be between 1 and 10"));
  EXPECT_EQ(funded.ledger->Show(kUuid)->releases, 0);
  options.k = 10;
  EXPECT_THAT(client.Prepare(TargetOf(1, 7), options, *funded.ledger, bits), IsOk());
}

}  // namespace
}  // namespace privatemail::client::joint_client_test
