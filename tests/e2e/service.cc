#include "tests/e2e/service.h"

#include <filesystem>
#include <random>
#include <utility>

#include "common/embedding/default_settings.h"
#include "common/features/vector_file.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/ledger.h"
#include "tests/testing/matchers.h"
#include "tests/testing/npy.h"

namespace privatemail::e2e {

using ::testing::HasSubstr;

Labelled SeparatedClasses(int rows, unsigned seed, int columns) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> noise(0, .02f);
  Labelled made{FloatMatrix::NullaryExpr(rows, columns, [&] { return noise(bits); }), {}};
  for (int i = 0; i < rows; ++i) {
    made.vectors(i, i % kClasses) += 1;
    made.labels.push_back(i % kClasses);
  }
  return made;
}

EmbeddingSettings ThingsSettings() {
  return DefaultSettings(SeparatedClasses(kClasses * kAnchorsPerClass, 1).labels);
}

v1::CreateCollectionRequest NewThings(const EmbeddingSettings& settings) {
  const Labelled anchors = SeparatedClasses(kClasses * kAnchorsPerClass, 1);
  v1::CreateCollectionRequest request;
  request.set_name("things");
  request.set_metric(v1::METRIC_COSINE);
  request.set_extractor("vectors");
  ToProto(settings, request.mutable_settings());
  ToProto(anchors.vectors, request.mutable_anchors());
  request.mutable_anchor_labels()->Assign(anchors.labels.begin(), anchors.labels.end());
  return request;
}

v1::RetrieveRequest RandomSearch(const v1::GetCollectionResponse& collection) {
  const v1::PublicParameters& parameters = collection.parameters();
  const FloatMatrix release =
      FloatMatrix::Random(parameters.slot_labels_size() + parameters.anchor_count(),
                          parameters.settings().embedding_dim());
  v1::RetrieveRequest request;
  request.set_collection(collection.name());
  request.set_fingerprint(collection.fingerprint());
  ToProto(release, request.mutable_release());
  return request;
}

absl::Status Service::Search() const {
  const auto things = Connect().GetCollection("things");
  if (!things.ok()) return things.status();
  v1::RetrieveRequest request = RandomSearch(*things);
  request.set_k(5);
  return Connect().Retrieve(request).status();
}

void Service::StartDaemon() {
  daemon_ = std::make_unique<Daemon>(folder_ / "data", std::vector<std::string>{"--insecure"});
  ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
  user_.flags = {"--server", daemon_->address(), "--insecure"};
}

ConnectionOptions Service::Options() const {
  ConnectionOptions options;
  options.server = daemon_->address();
  options.insecure = true;
  return options;
}

AdminClient Service::Connect() const { return *AdminClient::Create(Options()); }

void Service::Write(const std::string& name, const Labelled& rows) const {
  ASSERT_THAT(testing::WriteNpy(Vectors(name), rows.vectors), IsOk());
  ASSERT_THAT(testing::WriteNpy(Labels(name), rows.labels), IsOk());
}

nlohmann::json Service::Answer(const Command& command) const {
  const Outcome outcome = Run(Join(command, {"--json"}));
  EXPECT_EQ(outcome.exit_code, 0) << ::testing::PrintToString(command) << outcome.err;
  const nlohmann::json answer = outcome.json();
  EXPECT_FALSE(answer.is_null()) << ::testing::PrintToString(command) << outcome.out;
  return answer;
}

void Service::CreateCollection(const EmbeddingSettings& settings) const {
  Write("anchors", SeparatedClasses(kClasses * kAnchorsPerClass, 1));
  ASSERT_THAT(Connect().CreateCollection(NewThings(settings)), IsOk());
}

void Service::Fill(const AdminClient& transport) const {
  const Labelled rows = SeparatedClasses(kItems, 2);
  Write("gallery", rows);
  bool sent = false;
  const auto response = transport.UpsertItems([&](v1::UpsertItemsRequest* message) {
    if (std::exchange(sent, true)) return false;
    message->set_collection("things");
    for (int i = 0; i < kItems; ++i) {
      v1::Item* item = message->add_items();
      item->set_id(std::to_string(i));  // as `ingest` names them
      item->set_label(rows.labels[i]);
      item->mutable_features()->Assign(rows.vectors.row(i).begin(), rows.vectors.row(i).end());
    }
    return true;
  });
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->inserted(), static_cast<uint64_t>(kItems));
}

void Service::Build() const {
  ASSERT_THAT(Connect().BuildEmbedding("things", [](const v1::BuildEmbeddingResponse&) {}), IsOk());
}

void Service::Grant(double epsilon, double delta) const {
  const auto collection = Connect().GetCollection("things");
  ASSERT_THAT(collection, IsOk());
  std::filesystem::create_directories(user_.state);
  std::filesystem::permissions(user_.state, std::filesystem::perms::owner_all);
  const auto ledger = Ledger::Open(user_.state + "/ledger.sqlite");
  ASSERT_THAT(ledger, IsOk());
  ASSERT_THAT((*ledger)->Grant(collection->parameters().collection_uuid(), {epsilon, delta},
                               Accounting::kBasic, ServerIdentity(Options())),
              IsOk());
}

nlohmann::json Service::Ingest(const std::string& name) const {
  return Answer({"ingest", "things", "--vectors", Vectors(name), "--labels", Labels(name)});
}

nlohmann::json Service::Everything() const {
  nlohmann::json all = {{"collections", nlohmann::json::array()},
                        {"changes", nlohmann::json::array()}};
  const auto list = Connect().ListCollections();
  EXPECT_THAT(list, IsOk());
  const std::string path = user_.state + "/ledger.sqlite";
  const std::unique_ptr<Ledger> ledger =
      std::filesystem::exists(path) ? *Ledger::Open(path) : nullptr;
  for (const v1::GetCollectionResponse& collection : list->collections()) {
    all["collections"].push_back(collection.DebugString());
    if (ledger == nullptr) continue;
    const auto changes = ledger->History(collection.parameters().collection_uuid());
    EXPECT_THAT(changes, IsOk());
    for (const LedgerChange& change : *changes) {
      all["changes"].push_back({change.collection, change.made_at, change.epsilon, change.delta});
    }
  }
  return all;
}

void Service::ExpectRefused(const Command& command, const std::string& code,
                            const std::vector<std::string>& parts) const {
  SCOPED_TRACE(::testing::PrintToString(command));
  const nlohmann::json before = Everything();
  const Outcome outcome = Run(Join(command, {"--json"}));
  EXPECT_EQ(outcome.exit_code, code == "INVALID_ARGUMENT" ? 2 : 1);
  const nlohmann::json error = outcome.json()["error"];
  ASSERT_TRUE(error.is_object()) << "printed " << outcome.out << outcome.err;
  EXPECT_EQ(error["code"], code) << error;
  const std::string message = error["message"];
  for (const std::string& part : parts) EXPECT_THAT(message, HasSubstr(part));
  EXPECT_THAT(outcome.err, HasSubstr("error: " + message + " (" + code + ")\n"));
  EXPECT_EQ(Everything(), before);
}

void FilledService::SetUp() {
  StartDaemon();
  CreateCollection();
  Fill();
  Build();
  Grant(100, .1);
  Write("queries", SeparatedClasses(10, 3));
}

Command FilledService::Query(const Command& more) const {
  return Join({"query", "things", "--vectors", Vectors("queries")}, more);
}

}  // namespace privatemail::e2e
