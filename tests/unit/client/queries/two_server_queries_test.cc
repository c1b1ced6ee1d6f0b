#include "client/queries/two_server_queries.h"

#include <grpcpp/grpcpp.h>
#include <openssl/x509.h>

#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/queries/last_release.h"
#include "common/base/files.h"
#include "common/rpc/pem.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "privatemail/v1/two_server.grpc.pb.h"
#include "server/daemon/certificate.h"
#include "tests/testing/fake_image.h"

namespace privatemail::client::two_server_queries_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

const FakeImage& Fake() {
  static const FakeImage fake;
  return fake;
}

// Answers as one operator's daemon does, with faults on demand.
class FakeServer final : public v1::TwoServerService::Service,
                         public v1::RetrievalService::Service {
 public:
  // identity: null: without TLS.
  FakeServer(std::string operator_name, const server::TlsIdentity* identity)
      : operator_name_(std::move(operator_name)) {
    grpc::ServerBuilder builder;
    grpc::SslServerCredentialsOptions tls;
    if (identity != nullptr)
      tls.pem_key_cert_pairs = {{identity->key_pem, identity->certificate_pem}};
    int port = 0;
    builder.AddListeningPort(
        "127.0.0.1:0",
        identity == nullptr ? grpc::InsecureServerCredentials() : grpc::SslServerCredentials(tls),
        &port);
    builder.RegisterService(static_cast<v1::TwoServerService::Service*>(this));
    builder.RegisterService(static_cast<v1::RetrievalService::Service*>(this));
    server_ = builder.BuildAndStart();
    options.server = absl::StrCat("127.0.0.1:", port);
    options.insecure = identity == nullptr;
    if (identity != nullptr) options.trust_fingerprint = identity->fingerprint;
  }
  ~FakeServer() override { server_->Shutdown(); }

  grpc::Status GetCollection(grpc::ServerContext* context, const v1::GetCollectionRequest*,
                             v1::GetCollectionResponse* response) override {
    NoteKey(*context);
    *response = Fake().things.collection;
    return grpc::Status::OK;
  }
  grpc::Status GetAnchors(grpc::ServerContext* context, const v1::GetAnchorsRequest*,
                          grpc::ServerWriter<v1::GetAnchorsResponse>* writer) override {
    NoteKey(*context);
    for (const v1::GetAnchorsResponse& chunk : Fake().things.chunks) writer->Write(chunk);
    return grpc::Status::OK;
  }
  grpc::Status GetImage(grpc::ServerContext* context, const v1::GetImageRequest*,
                        v1::GetImageResponse* response) override {
    NoteKey(*context);
    *response = Fake().Served(operator_name_);
    return grpc::Status::OK;
  }
  grpc::Status GetImageSection(grpc::ServerContext* context, const v1::GetImageSectionRequest*,
                               grpc::ServerWriter<v1::ImageBytes>* writer) override {
    NoteKey(*context);
    Record("GetImageSection", "");
    return Send(Fake().table_bytes, writer,
                [](v1::ImageBytes* part) { return part->mutable_bytes(); });
  }
  grpc::Status Score(grpc::ServerContext* context, const v1::ScoreRequest* request,
                     grpc::ServerWriter<v1::ScoreResponse>* writer) override {
    NoteKey(*context);
    if (const grpc::Status status = Record("Score", request->SerializeAsString()); !status.ok()) {
      return status;
    }
    return Send(Corrupted(Fake().Answer(*request)), writer,
                [](v1::ScoreResponse* part) { return part->mutable_scores(); });
  }
  grpc::Status FetchLists(grpc::ServerContext* context, const v1::FetchListsRequest* request,
                          grpc::ServerWriter<v1::FetchListsResponse>* writer) override {
    NoteKey(*context);
    const std::string name = request->group() == 0 ? "lists" : "payloads";
    if (const grpc::Status status = Record(name, request->SerializeAsString()); !status.ok()) {
      return status;
    }
    return Send(Corrupted(Fake().Answer(*request)), writer,
                [](v1::FetchListsResponse* part) { return part->mutable_lists(); });
  }

  struct Seen {
    std::string call;
    std::string bytes;
    steady_clock::time_point at;
  };
  // Of searches and tables, since the last call of this.
  std::vector<Seen> TakeSeen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(seen_, {});
  }

  // The different texts of the header `authorization` of all calls; "": of calls without.
  std::set<std::string> keys() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return keys_;
  }

  ConnectionOptions options;
  std::vector<grpc::StatusCode> endings;      // of the next calls
  std::function<void(std::string*)> corrupt;  // of the next answer; null: none

 private:
  void NoteKey(const grpc::ServerContext& context) {
    const auto& metadata = context.client_metadata();
    const auto key = metadata.find("authorization");
    const std::lock_guard<std::mutex> lock(mutex_);
    keys_.insert(key == metadata.end() ? "" : std::string(key->second.data(), key->second.size()));
  }

  grpc::Status Record(const std::string& call, const std::string& bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_.push_back({call, bytes, steady_clock::now()});
    if (endings.empty()) return grpc::Status::OK;
    const grpc::StatusCode ending = endings.front();
    endings.erase(endings.begin());
    return ending == grpc::StatusCode::OK ? grpc::Status::OK : grpc::Status(ending, "leaving");
  }

  std::string Corrupted(std::string answer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (corrupt) std::exchange(corrupt, nullptr)(&answer);
    return answer;
  }

  // In parts of 100 bytes, and the rest of what is too long at once.
  template <typename Message, typename BytesOf>
  static grpc::Status Send(const std::string& bytes, grpc::ServerWriter<Message>* writer,
                           BytesOf bytes_of) {
    for (size_t at = 0; at < bytes.size();) {
      Message part;
      *bytes_of(&part) = bytes.substr(at, bytes.size() > 10'000 ? bytes.size() : 100);
      at += bytes_of(&part)->size();
      writer->Write(part);
    }
    return grpc::Status::OK;
  }

  std::string operator_name_;
  std::mutex mutex_;
  std::vector<Seen> seen_;
  std::set<std::string> keys_;
  std::unique_ptr<grpc::Server> server_;
};

std::vector<std::string> CallsOf(const std::vector<FakeServer::Seen>& seen) {
  std::vector<std::string> calls;
  for (const FakeServer::Seen& one : seen) calls.push_back(one.call);
  return calls;
}

class TwoServerQueriesTest : public ::testing::Test {
 protected:
  TwoServerQueriesTest() {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
  }

  absl::StatusOr<TwoServerQueries> Fetch(FakeServer& a, FakeServer& b, bool trust_again = false) {
    first_ = *Transport::Create(a.options);
    second_ = *Transport::Create(b.options);
    return TwoServerQueries::Fetch({&*first_, &*second_},
                                   {.state_folder = folder_.path(), .limits = {}}, "things",
                                   trust_again);
  }

  // Fetches, makes the client and queries once for each seed.
  absl::StatusOr<std::vector<TwoServerOutcome>> RunOnce(FakeServer& a, FakeServer& b,
                                                        const TwoServerOptions& options,
                                                        const std::vector<unsigned>& seeds = {1}) {
    absl::StatusOr<TwoServerQueries> queries = Fetch(a, b);
    if (!queries.ok()) return queries.status();
    const auto warn = [&](const std::string& text) { warnings_.push_back(text); };
    if (const absl::Status status = queries->CreateClient(options.mode, warn); !status.ok()) {
      return status;
    }
    std::vector<NamedTarget> targets;
    for (const unsigned seed : seeds) {
      targets.push_back({.name = absl::StrCat("row ", seed),
                         .target = {.features = NormalRows(1, PublishedThings::kDim, seed)}});
    }
    return queries->Run(targets, options, warn);
  }

  TemporaryFolder folder_;
  std::optional<Transport> first_;
  std::optional<Transport> second_;
  std::vector<std::string> warnings_;
};

class TwoServerQueriesTlsTest : public TwoServerQueriesTest {
 protected:
  static server::TlsIdentity MakeIdentity(const std::string& folder) {
    return *server::LoadOrCreateIdentity(folder);
  }

  TemporaryFolder north_folder_;
  TemporaryFolder south_folder_;
  server::TlsIdentity north_ = MakeIdentity(north_folder_.path());
  server::TlsIdentity south_ = MakeIdentity(south_folder_.path());
};

const TwoServerOptions kScores{.mode = TwoServerMode::kScores, .k = 3, .with_payloads = true};
const TwoServerOptions kLists{.lists = 2, .k = 3, .with_payloads = true};

TEST_F(TwoServerQueriesTlsTest, EachServerGetsItsHalfAndPayloadsFollowLater) {
  FakeServer a("north", &north_);
  FakeServer b("south", &south_);
  ASSERT_OK_AND_ASSIGN(const auto outcomes, RunOnce(a, b, kScores, {1, 2}));
  EXPECT_TRUE(warnings_.empty());
  const std::vector<FakeServer::Seen> of_a = a.TakeSeen();
  const std::vector<FakeServer::Seen> of_b = b.TakeSeen();
  EXPECT_THAT(CallsOf(of_a),
              ::testing::ElementsAre("GetImageSection", "Score", "payloads", "Score", "payloads"));
  EXPECT_THAT(CallsOf(of_b), ::testing::ElementsAre("Score", "payloads", "Score", "payloads"));
  for (const size_t query : {size_t{0}, size_t{2}}) {
    v1::ScoreRequest half;
    ASSERT_TRUE(half.ParseFromString(of_a[query + 1].bytes));
    EXPECT_EQ(half.seed().size(), 16u);
    ASSERT_TRUE(half.ParseFromString(of_b[query].bytes));
    EXPECT_EQ(half.values().size(), 4u * PublishedThings::kDim);
    EXPECT_GE(of_b[query + 1].at - of_b[query].at, milliseconds(50));
  }
  EXPECT_GE(of_b[2].at - of_b[1].at, milliseconds(50));
  for (const TwoServerOutcome& outcome : outcomes) {
    ASSERT_THAT(outcome.status, IsOk());
    ASSERT_EQ(outcome.result.matches.size(), 3u);
    // Oracle: the largest inner product in double.
    const RowVector unit = outcome.target.target.features.cast<double>().normalized();
    Eigen::Index nearest = 0;
    (Fake().rows.cast<double>() * unit.transpose()).maxCoeff(&nearest);
    EXPECT_EQ(outcome.result.matches[0].id, FakeImage::IdOf(nearest));
    EXPECT_EQ(outcome.result.matches[0].payload, FakeImage::PayloadOf(nearest));
    EXPECT_FALSE(outcome.charged);
    EXPECT_EQ(outcome.bytes_down, 2u * (30 * 3 + 3 * 100));
  }
}

// One authority may have certified both operators, and one name may lead to both.
TEST_F(TwoServerQueriesTlsTest, PinnedTransportReachesNoOtherServer) {
  FakeServer a("north", &north_);
  ConnectionOptions options = a.options;
  options.trust_fingerprint.clear();
  options.ca_file = north_folder_ / "server.crt";
  ASSERT_OK_AND_ASSIGN(const Transport by_authority, Transport::Create(options));
  ASSERT_THAT(by_authority.GetImage("things"), IsOk());
  ASSERT_OK_AND_ASSIGN(const Transport same, by_authority.PinnedTo(north_.fingerprint));
  EXPECT_THAT(same.GetImage("things"), IsOk());
  ASSERT_OK_AND_ASSIGN(const Transport other, by_authority.PinnedTo(south_.fingerprint));
  EXPECT_THAT(other.GetImage("things"), FailsWith(absl::StatusCode::kUnavailable, ""));
}

TEST_F(TwoServerQueriesTlsTest, TableIsFetchedOnceAnImage) {
  FakeServer a("north", &north_);
  FakeServer b("south", &south_);
  ASSERT_THAT(RunOnce(a, b, kScores), IsOk());
  EXPECT_EQ(CallsOf(a.TakeSeen()).front(), "GetImageSection");
  ASSERT_THAT(RunOnce(a, b, kScores), IsOk());
  EXPECT_EQ(CallsOf(a.TakeSeen()).front(), "Score");
  // Damage is noticed.
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    if (!absl::StrContains(file.path().string(), "image_table")) continue;
    std::filesystem::resize_file(file.path(), 100);
  }
  ASSERT_THAT(RunOnce(a, b, kScores), IsOk());
  EXPECT_EQ(CallsOf(a.TakeSeen()).front(), "GetImageSection");
}

// Another certificate of the same key.
server::TlsIdentity Renewed(server::TlsIdentity identity) {
  const Certificate old = std::move(ParseCertificates("test", identity.certificate_pem)->front());
  const PrivateKey key = *ParsePrivateKey("test", identity.key_pem);
  const Certificate renewed(X509_dup(old.get()));
  ASN1_INTEGER_set(X509_get_serialNumber(renewed.get()), 77);
  X509_sign(renewed.get(), key.get(), EVP_sha256());
  identity.certificate_pem = *ToPem(renewed.get());
  identity.fingerprint = *FingerprintOf(*renewed);
  return identity;
}

TEST_F(TwoServerQueriesTlsTest, OneServerReturnsFailedPrecondition) {
  FakeServer a("north", &north_);
  EXPECT_THAT(Fetch(a, a), FailsWith(kFailedPrecondition, "both have the address 127.0.0.1:"));
  FakeServer same("south", &north_);
  EXPECT_THAT(Fetch(a, same),
              FailsWith(kFailedPrecondition, "both have the certificate " + north_.fingerprint));
  const server::TlsIdentity renewed = Renewed(north_);
  ASSERT_NE(renewed.fingerprint, north_.fingerprint);
  FakeServer same_key("south", &renewed);
  EXPECT_THAT(Fetch(a, same_key), FailsWith(kFailedPrecondition, "both have the public key "));
  FakeServer same_operator("north", &south_);
  EXPECT_THAT(Fetch(a, same_operator), FailsWith(kFailedPrecondition, "both are of north"));
  for (FakeServer* server : {&a, &same, &same_key, &same_operator}) {
    EXPECT_TRUE(server->TakeSeen().empty());
  }
}

TEST_F(TwoServerQueriesTlsTest, OneAccessKeyForBothReturnsInvalidArgument) {
  FakeServer a("north", &north_);
  FakeServer b("south", &south_);
  const auto key_file = [&](const std::string& name, const std::string& text) {
    std::string path = folder_ / name;
    EXPECT_THAT(WriteFileAtomically(path, text, 0600), IsOk());
    return path;
  };
  a.options.key_file = key_file("a.key", "pm_one_secret\n");
  b.options.key_file = key_file("b.key", " pm_one_secret");
  for (const std::string& path : {a.options.key_file, b.options.key_file}) {
    b.options.key_file = path;
    EXPECT_THAT(Fetch(a, b), FailsWith(kInvalid, "--key-file and --second-key-file must hold two"));
    EXPECT_TRUE(a.keys().empty()) << "a call was sent";
    EXPECT_TRUE(b.keys().empty()) << "a call was sent";
  }
  b.options.key_file = key_file("c.key", "pm_two_secret");
  ASSERT_THAT(RunOnce(a, b, kScores), IsOk());
  EXPECT_THAT(a.keys(), ::testing::ElementsAre("Bearer pm_one_secret"));
  EXPECT_THAT(b.keys(), ::testing::ElementsAre("Bearer pm_two_secret"));
}

TEST_F(TwoServerQueriesTlsTest, WithoutASecondKeyNoneIsSentToTheSecond) {
  FakeServer a("north", &north_);
  FakeServer b("south", &south_);
  a.options.key_file = folder_ / "a.key";
  ASSERT_THAT(WriteFileAtomically(a.options.key_file, "pm_one_secret", 0600), IsOk());
  ASSERT_THAT(RunOnce(a, b, kScores), IsOk());
  EXPECT_THAT(a.keys(), ::testing::ElementsAre("Bearer pm_one_secret"));
  EXPECT_THAT(b.keys(), ::testing::ElementsAre(""));
}

TEST_F(TwoServerQueriesTlsTest, ErrorsOfTheSecondNameItsFlags) {
  FakeServer a("north", &north_);
  FakeServer b("south", &south_);
  const auto unavailable = absl::StatusCode::kUnavailable;
  std::swap(a.options.trust_fingerprint, b.options.trust_fingerprint);
  EXPECT_THAT(Fetch(a, b), FailsWith(unavailable, "but --trust names " + south_.fingerprint));
  a.options.trust_fingerprint = north_.fingerprint;
  EXPECT_THAT(Fetch(a, b), FailsWith(unavailable, "server B ("));
  EXPECT_THAT(Fetch(a, b), FailsWith(unavailable, "but --second-trust names "));
  b.options.trust_fingerprint.clear();
  EXPECT_THAT(Fetch(a, b), FailsWith(unavailable, "give --second-trust with the fingerprint"));
  EXPECT_THAT(Fetch(a, b), FailsWith(unavailable, "or --second-ca;"));
}

TEST_F(TwoServerQueriesTest, WithoutTlsItWarnsThatOnlyAddressesAreCompared) {
  FakeServer a("north", nullptr);
  FakeServer b("south", nullptr);
  ASSERT_OK_AND_ASSIGN(const auto outcomes, RunOnce(a, b, kLists));
  EXPECT_THAT(outcomes[0].status, IsOk());
  EXPECT_THAT(warnings_, ::testing::ElementsAre(::testing::HasSubstr("cannot be checked")));
  EXPECT_THAT(CallsOf(a.TakeSeen()), ::testing::ElementsAre("lists", "payloads"));
}

TEST_F(TwoServerQueriesTlsTest, WrongAnswerIsRecordedAfterAllFetches) {
  FakeServer a("north", &north_);
  FakeServer b("south", &south_);
  a.corrupt = [](std::string* answer) { answer->at(30) ^= 1; };
  ASSERT_OK_AND_ASSIGN(const auto outcomes, RunOnce(a, b, kLists, {1, 2}));
  ASSERT_EQ(outcomes.size(), 1u) << "a wrong answer ends the batch";
  EXPECT_THAT(outcomes[0].status, FailsWith(kDataLoss, "an answer of server A or B is wrong"));
  for (FakeServer* server : {&a, &b}) {
    EXPECT_THAT(CallsOf(server->TakeSeen()), ::testing::ElementsAre("lists", "payloads"));
  }
  const auto refused = Fetch(a, b);
  EXPECT_THAT(refused, FailsWith(kFailedPrecondition, folder_ / "wrong_answer_"));
  EXPECT_THAT(refused, FailsWith(kFailedPrecondition, "until you say --trust-again"));
  EXPECT_THAT(Fetch(b, a), FailsWith(kFailedPrecondition, "--trust-again"));
  // Another port of the same key is the same server.
  FakeServer moved("north", &north_);
  EXPECT_THAT(Fetch(moved, b), FailsWith(kFailedPrecondition, "--trust-again"));
  const server::TlsIdentity renewed = Renewed(north_);
  FakeServer again("north", &renewed);
  EXPECT_THAT(Fetch(again, b), FailsWith(kFailedPrecondition, "--trust-again"));
  EXPECT_THAT(Fetch(a, b, /*trust_again=*/true), IsOk());
  EXPECT_THAT(Fetch(a, b), IsOk());
}

TEST_F(TwoServerQueriesTest, WrongPayloadsAreRecorded) {
  FakeServer a("north", nullptr);
  FakeServer b("south", nullptr);
  ASSERT_OK_AND_ASSIGN(TwoServerQueries queries, Fetch(a, b));
  int answers = 0;
  std::function<void(std::string*)> second = [&](std::string* answer) {
    if (++answers == 2)
      answer->at(20) ^= 1;
    else
      b.corrupt = second;
  };
  b.corrupt = second;
  ASSERT_OK_AND_ASSIGN(const auto outcomes, RunOnce(a, b, kLists));
  EXPECT_THAT(outcomes[0].status, FailsWith(kDataLoss, "is wrong"));
  EXPECT_THAT(Fetch(a, b), FailsWith(kFailedPrecondition, "--trust-again"));
}

TEST_F(TwoServerQueriesTest, WrongListsAreRecordedAlthoughThePayloadsFail) {
  FakeServer a("north", nullptr);
  FakeServer b("south", nullptr);
  a.corrupt = [](std::string* answer) { answer->at(30) ^= 1; };
  b.endings = {grpc::StatusCode::OK, grpc::StatusCode::INTERNAL};
  ASSERT_OK_AND_ASSIGN(const auto outcomes, RunOnce(a, b, kLists));
  EXPECT_THAT(outcomes[0].status, FailsWith(kDataLoss, "is wrong"));
  EXPECT_THAT(Fetch(a, b), FailsWith(kFailedPrecondition, "--trust-again"));
}

TEST_F(TwoServerQueriesTlsTest, FailedHalfIsRepeatedToTheSameServerWithTheSameBytes) {
  FakeServer a("north", &north_);
  FakeServer b("south", &south_);
  b.endings = {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::UNAVAILABLE};
  ASSERT_OK_AND_ASSIGN(const auto outcomes, RunOnce(a, b, kLists));
  EXPECT_THAT(outcomes[0].status, IsOk());
  const std::vector<FakeServer::Seen> of_a = a.TakeSeen();
  const std::vector<FakeServer::Seen> of_b = b.TakeSeen();
  EXPECT_THAT(CallsOf(of_a), ::testing::ElementsAre("lists", "payloads"));
  EXPECT_THAT(CallsOf(of_b), ::testing::ElementsAre("lists", "lists", "lists", "payloads"));
  EXPECT_EQ(of_b[0].bytes, of_b[1].bytes);
  EXPECT_EQ(of_b[0].bytes, of_b[2].bytes);
  EXPECT_NE(of_a[0].bytes, of_b[0].bytes);
}

TEST_F(TwoServerQueriesTlsTest, FailedCallNamesItsServerAndEndsTheQuery) {
  FakeServer a("north", &north_);
  FakeServer b("south", &south_);
  b.endings = {grpc::StatusCode::INTERNAL};
  ASSERT_OK_AND_ASSIGN(const auto outcomes, RunOnce(a, b, kLists, {1, 2}));
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_THAT(outcomes[0].status, FailsWith(absl::StatusCode::kInternal,
                                            "server B (" + b.options.server + "): leaving"));
  EXPECT_THAT(CallsOf(a.TakeSeen()), ::testing::ElementsAre("lists"));
  EXPECT_THAT(CallsOf(b.TakeSeen()), ::testing::ElementsAre("lists"));
  const std::pair<std::function<void(std::string*)>, const char*> wrong[] = {
      {[](std::string* answer) { answer->resize(answer->size() / 2); },
       "must have 412 bytes as the image's header says, but has 206"},
      {[](std::string* answer) { answer->push_back('x'); }, "but has more"},
      {[](std::string* answer) { answer->append(1 << 20, 'x'); }, "but has more"},
      {[](std::string* answer) { answer->clear(); }, "ended the call without an answer"},
  };
  for (const auto& [corrupt, part] : wrong) {
    a.corrupt = corrupt;
    ASSERT_OK_AND_ASSIGN(const auto truncated, RunOnce(a, b, kLists));
    EXPECT_THAT(truncated[0].status, FailsWith(kDataLoss, "server A ("));
    EXPECT_THAT(truncated[0].status, FailsWith(kDataLoss, part));
    EXPECT_THAT(CallsOf(b.TakeSeen()), ::testing::ElementsAre("lists"));
  }
  EXPECT_THAT(Fetch(a, b), IsOk()) << "the server knows of these, whatever the target is";
}

TEST_F(TwoServerQueriesTlsTest, EpsilonIsChargedOnce) {
  FakeServer a("north", &north_);
  FakeServer b("south", &south_);
  const TwoServerOptions options{.lists = 2, .epsilon = 1};
  EXPECT_THAT(RunOnce(a, b, options), FailsWith(kFailedPrecondition, "no privacy budget is set"));
  {
    ASSERT_OK_AND_ASSIGN(const auto ledger, OpenLedger(folder_.path()));
    ASSERT_THAT(ledger->Grant(kUuid, {3, 0}), IsOk());
  }
  b.endings = {grpc::StatusCode::UNAVAILABLE};
  ASSERT_OK_AND_ASSIGN(const auto outcomes, RunOnce(a, b, options, {1, 2}));
  ASSERT_EQ(outcomes.size(), 2u);
  for (const TwoServerOutcome& outcome : outcomes) {
    EXPECT_THAT(outcome.status, IsOk());
    EXPECT_TRUE(outcome.charged);
  }
  EXPECT_EQ(outcomes[1].ledger.spent().epsilon, 2);
  EXPECT_THAT(RunOnce(a, b, options, {1, 2}), FailsWith(kExhausted, "need epsilon 2"));
}

TEST_F(TwoServerQueriesTlsTest, LastReleaseHoldsWhatEachServerSawAndNoShare) {
  FakeServer a("north", &north_);
  FakeServer b("south", &south_);
  for (const TwoServerOptions& options :
       {kScores, kLists, TwoServerOptions{.mode = TwoServerMode::kScores, .k = 3}}) {
    std::vector<std::string> saved;
    for (const unsigned seed : {1u, 2u}) {
      ASSERT_THAT(RunOnce(a, b, options, {seed}), IsOk());
      ASSERT_OK_AND_ASSIGN(const LastRelease last, LoadLastRelease(folder_.path()));
      EXPECT_EQ(last.scheme, Scheme::kTwoServer);
      saved.push_back(last.view);
      const nlohmann::json servers = nlohmann::json::parse(last.view)["servers"];
      size_t server = 0;
      for (FakeServer* fake : {&a, &b}) {
        std::vector<FakeServer::Seen> seen = fake->TakeSeen();
        std::erase_if(seen, [](const auto& one) { return one.call == "GetImageSection"; });
        const nlohmann::json& calls = servers[server++]["calls"];
        ASSERT_EQ(calls.size(), seen.size());
        for (size_t i = 0; i < seen.size(); ++i) {
          EXPECT_EQ(calls[i]["call"], seen[i].call == "Score" ? "Score" : "FetchLists");
          EXPECT_EQ(calls[i]["bytes"], seen[i].bytes.size());
        }
      }
    }
    EXPECT_EQ(saved[0], saved[1]) << "it depends on the target or a share";
  }
}

TEST(DepartureInterval, GrowsWithTheAnswer) {
  EXPECT_EQ(DepartureInterval(0), milliseconds(50));
  EXPECT_EQ(DepartureInterval((1 << 20) - 1), milliseconds(50));
  EXPECT_EQ(DepartureInterval(1 << 20), milliseconds(100));
  EXPECT_EQ(DepartureInterval(uint64_t{40} << 20), milliseconds(2050));
}

}  // namespace
}  // namespace privatemail::client::two_server_queries_test
