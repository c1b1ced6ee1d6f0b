#include "client/schemes/joint/joint_search.h"

#include "common/base/status_macros.h"
#include "common/embedding/smlq.h"
#include "tests/testing/published_things.h"

namespace privatemail::client::joint_search_test {
namespace {

constexpr int kClasses = PublishedThings::kClasses;
constexpr int kAnchors = PublishedThings::kAnchors;
constexpr int kDim = PublishedThings::kDim;

using Published = PublishedThings;
using Collection = std::shared_ptr<const JointCollection>;

absl::StatusOr<Collection> CollectionOf(const Published& published) {
  return JointCollection::Create(published.collection, Sends(published.chunks), {}, {});
}

Collection MakeCollection() { return *CollectionOf(Published()); }

SearchRequest RequestOf(std::optional<int32_t> label, unsigned seed) {
  return {.collection = "things",
          .targets = {{.features = NormalRows(1, kDim, seed), .label = label}},
          .k = 3,
          .with_payloads = false,
          .accept_misalignment = true,
          .epsilon = 1,
          .delta = 1e-5};
}

absl::StatusOr<PreparedSearch> Prepare(const Collection& collection, const SearchRequest& request,
                                       Ledger& ledger, BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const auto search, JointSearch::Create(collection, request));
  return search->Prepare(0, 1, ChargeTo(ledger, kUuid), bits);
}

const v1::RetrieveRequest& MessageOf(const PreparedSearch& prepared) {
  return static_cast<const v1::RetrieveRequest&>(*prepared.message);
}

absl::StatusOr<JointRelease> Release(const Collection& collection, const SearchRequest& request,
                                     Ledger& ledger, BitSource& bits) {
  const SearchTarget& target = request.targets.front();
  return collection->scheme.Release({target.features, *target.label},
                                    {.epsilon = *request.epsilon, .delta = request.delta},
                                    ChargeTo(ledger, kUuid), bits);
}

// PackRelease gets the release and public values only.
TEST(JointSearch, MessageDependsOnReleaseAndPublicValuesOnly) {
  const FundedLedger funded;
  const Collection collection = MakeCollection();
  for (const auto where : {PostProcessing::kClient, PostProcessing::kServer}) {
    for (const int32_t label : {0, 3}) {
      SearchRequest request = RequestOf(label, 50 + label);
      request.post_process = where;
      SeededBits bits(4);
      SeededBits same_bits(4);
      ASSERT_OK_AND_ASSIGN(const JointRelease release,
                           Release(collection, request, *funded.ledger, same_bits));
      ASSERT_OK_AND_ASSIGN(const PreparedSearch prepared,
                           Prepare(collection, request, *funded.ledger, bits));
      SearchRequest without_target = request;
      without_target.targets.clear();
      ASSERT_OK_AND_ASSIGN(const v1::RetrieveRequest packed,
                           PackRelease(*collection, release.rows, without_target));
      EXPECT_EQ(MessageOf(prepared).SerializeAsString(), packed.SerializeAsString());
    }
  }
}

// How many places the guessed classes get depends on the target.
TEST(JointSearch, GuessedClassesShowInTheReleaseOnly) {
  const FundedLedger funded;
  const Collection collection = MakeCollection();
  std::vector<std::string> rest;
  for (const std::optional<int32_t> label : {std::optional<int32_t>(1), {}}) {
    SearchRequest request = RequestOf(label, 7);
    if (!label.has_value()) request.classes = 3;
    SecureBits bits;
    ASSERT_OK_AND_ASSIGN(const PreparedSearch prepared,
                         Prepare(collection, request, *funded.ledger, bits));
    v1::RetrieveRequest message = MessageOf(prepared);
    message.clear_release();
    rest.push_back(message.SerializeAsString());
  }
  EXPECT_EQ(rest[0], rest[1]);
}

TEST(JointSearch, ServerPostProcessingGivesTheClientsCoordinates) {
  const FundedLedger funded;
  const Collection collection = MakeCollection();
  SearchRequest request = RequestOf(2, 9);
  SecureBits bits;
  ASSERT_OK_AND_ASSIGN(const JointRelease release,
                       Release(collection, request, *funded.ledger, bits));
  request.post_process = PostProcessing::kServer;
  ASSERT_OK_AND_ASSIGN(const v1::RetrieveRequest noisy,
                       PackRelease(*collection, release.rows, request));
  EXPECT_EQ(noisy.post_processing_steps(), 5u);

  // The server has the request and the public labels.
  const PublicParameters& parameters = collection->scheme.parameters();
  ASSERT_OK_AND_ASSIGN(const FloatMatrix received, FromProto("release", noisy.release()));
  std::vector<int32_t> labels = parameters.slot_labels;
  for (int i = 0; i < kAnchors; ++i) labels.push_back(i % kClasses);
  const EmbeddingSettings& settings = parameters.settings;
  ASSERT_OK_AND_ASSIGN(const Matrix server, PostProcess(received.cast<double>(),
                                                        LabelGraph(labels, settings.label_graph,
                                                                   settings.KernelDenominator()),
                                                        settings));
  ASSERT_OK_AND_ASSIGN(const Matrix own, PostProcess(release.rows.cast<double>(),
                                                     collection->scheme.label_graph(), settings));
  EXPECT_LE((server - own).norm(), 1e-9 * own.norm());

  request.post_process = PostProcessing::kClient;
  ASSERT_OK_AND_ASSIGN(const v1::RetrieveRequest finished,
                       PackRelease(*collection, release.rows, request));
  ASSERT_OK_AND_ASSIGN(const FloatMatrix sent, FromProto("release", finished.release()));
  EXPECT_EQ(finished.post_processing_steps(), 0u);
  EXPECT_LE((sent.cast<double>() - server).norm(), 1e-6 * server.norm())
      << "one rounding to float apart";
}

TEST(JointSearch, FilterIsSentBesideTheRelease) {
  const FundedLedger funded;
  const Collection collection = MakeCollection();
  SearchRequest request = RequestOf(1, 7);
  SeededBits bits(4);
  SeededBits same_bits(4);
  ASSERT_OK_AND_ASSIGN(const PreparedSearch without,
                       Prepare(collection, request, *funded.ledger, same_bits));
  request.filter = R"({"path": "year", "gte": 2020})";
  ASSERT_OK_AND_ASSIGN(const PreparedSearch with,
                       Prepare(collection, request, *funded.ledger, bits));
  v1::RetrieveRequest message = MessageOf(with);
  EXPECT_EQ(message.filter(), R"({"gte":2020,"path":"year"})");
  message.clear_filter();
  EXPECT_EQ(message.SerializeAsString(), MessageOf(without).SerializeAsString());
}

TEST(JointSearch, WrongFieldsAreRefusedBeforeTheCharge) {
  Published published;
  published.collection.set_max_k(10);
  ASSERT_OK_AND_ASSIGN(const Collection collection, CollectionOf(published));
  const auto refused = [&](const char* message, auto corrupt) {
    SearchRequest request = RequestOf(1, 7);
    request.k = 10;
    EXPECT_THAT(JointSearch::Create(collection, request), IsOk());
    corrupt(request);
    EXPECT_THAT(JointSearch::Create(collection, request), FailsWith(kInvalid, message));
  };
  refused("k must be between 1 and 10", [](auto& r) { r.k = 0; });
  refused("k must be between 1 and 10", [](auto& r) { r.k = 11; });
  refused("label must be one of the collection's 5 labels",
          [](auto& r) { r.targets[0].label = 77; });
  refused("classes", [](auto& r) { r.classes = kClasses + 1; });
  refused("target 0", [](auto& r) { r.targets[0].features = NormalRows(1, kDim + 1, 1); });
  refused("does not hide the label", [](auto& r) {
    r.targets[0].label = std::nullopt;
    r.mechanism = MechanismKind::kGaussOutput;
    r.radius = 1;
  });
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

std::vector<std::string> Ids(const SearchResult& result) {
  std::vector<std::string> ids;
  for (const Match& match : result.matches) ids.push_back(match.id);
  return ids;
}

absl::StatusOr<std::vector<std::string>> Read(const std::vector<ClassPlaces>& places, int64_t k,
                                              const v1::RetrieveResponse& answer) {
  SearchResult result;
  PM_RETURN_IF_ERROR(ReadJointAnswer(Published().parameters, places, {.k = k}, answer, &result));
  EXPECT_EQ(result.joint->scale, 2);
  return Ids(result);
}

TEST(ReadJointAnswer, FillsPlacesOfSeveralClasses) {
  const std::vector<ClassPlaces> places = {{.slot = 3, .places = 2}, {.slot = 0, .places = 2}};
  v1::RetrieveResponse answer = Answer(kClasses, 4);
  ASSERT_OK_AND_ASSIGN(const auto full, Read(places, 4, answer));
  EXPECT_EQ(full, (std::vector<std::string>{"slot 3 match 0", "slot 3 match 1", "slot 0 match 0",
                                            "slot 0 match 1"}));
  // An item that both slots found is shown once.
  answer.mutable_slots(0)->mutable_matches(0)->set_id("slot 3 match 1");
  ASSERT_OK_AND_ASSIGN(const auto distinct, Read(places, 4, answer));
  EXPECT_EQ(distinct, (std::vector<std::string>{"slot 3 match 0", "slot 3 match 1",
                                                "slot 0 match 1", "slot 0 match 2"}));
  // Matches that a class lacks are taken from the others, before or after it.
  answer.mutable_slots(0)->mutable_matches()->DeleteSubrange(1, 3);
  ASSERT_OK_AND_ASSIGN(const auto short_last, Read(places, 4, answer));
  EXPECT_EQ(short_last, (std::vector<std::string>{"slot 3 match 0", "slot 3 match 1",
                                                  "slot 3 match 2", "slot 3 match 3"}));
  answer = Answer(kClasses, 4);
  answer.mutable_slots(3)->mutable_matches()->DeleteSubrange(1, 3);
  ASSERT_OK_AND_ASSIGN(const auto short_first, Read(places, 4, answer));
  EXPECT_EQ(short_first, (std::vector<std::string>{"slot 3 match 0", "slot 0 match 0",
                                                   "slot 0 match 1", "slot 0 match 2"}));
}

TEST(ReadJointAnswer, RefusesInvalidAnswer) {
  const std::vector<ClassPlaces> places = {{.slot = 3, .places = 2, .posterior = 1}};
  EXPECT_THAT(Read(places, 2, Answer(kClasses, 2)), IsOk());
  EXPECT_THAT(Read(places, 2, Answer(kClasses - 1, 2)), FailsWith(kDataLoss, "5 slots"));
  EXPECT_THAT(Read(places, 2, Answer(kClasses, 3)), FailsWith(kDataLoss, "at most 2"));
}

// Whichever slot has it: a server could see from what follows which slot the target is in.
TEST(ReadJointAnswer, LongPayloadIsRefusedInEverySlot) {
  const ExpectedAnswer expected = {
      .k = 2, .with_payloads = true, .targets = 10, .max_memory = 64 * 10 * 2000};
  const auto read = [&](int slot, size_t characters) {
    v1::RetrieveResponse answer = Answer(kClasses, 2);
    answer.mutable_slots(slot)->mutable_matches(0)->set_payload(
        "\"" + std::string(characters, 'x') + "\"");
    SearchResult result;
    return ReadJointAnswer(Published().parameters, {{.slot = 3, .places = 2}}, expected, answer,
                           &result);
  };
  for (const int slot : {0, 3}) {
    EXPECT_THAT(read(slot, 1000), IsOk());
    EXPECT_THAT(read(slot, 2000), FailsWith(kExhausted, "the 20020 bytes that the payloads"));
  }
}

TEST(JointCollection, TamperedUnbuiltOrTooSmallIsRefused) {
  Published tampered, small, unbuilt;
  tampered.collection.mutable_parameters()->mutable_settings()->set_alpha(3);
  EXPECT_THAT(CollectionOf(tampered), FailsWith(kFailedPrecondition, "fingerprint mismatch"));
  small.collection.mutable_parameters()->set_anchor_count(2);
  EXPECT_THAT(CollectionOf(small), FailsWith(kDataLoss, "anchors must be at least"));
  unbuilt.collection.set_embedding_version(0);
  EXPECT_THAT(CollectionOf(unbuilt), FailsWith(kFailedPrecondition, "things is not built yet"));
}

TEST(JointCollection, CollectionWithoutClassesReturnsFailedPrecondition) {
  const PublishedThings unlabelled(1, CellCode::kFloat16, 1, /*has_classes=*/false);
  EXPECT_THAT(
      CollectionOf(unlabelled),
      FailsWith(kFailedPrecondition, "its anchors have no labels: it offers the scheme cells"));
  v1::GetCollectionResponse without;
  const PublicParameters parameters =
      *MakeParametersWithoutAnchors(kUuid, "vectors", Metric::kCosine);
  ToProto(parameters, without.mutable_parameters());
  without.set_fingerprint(Fingerprint(parameters));
  without.set_name("things");
  for (const uint64_t version : {0, 1}) {  // of a hostile server, too
    without.set_embedding_version(version);
    EXPECT_THAT(JointCollection::Create(without, Sends({}), {}, {}),
                FailsWith(kFailedPrecondition,
                          "collection things has no anchors: it offers the scheme encrypted"));
  }
}

}  // namespace
}  // namespace privatemail::client::joint_search_test
