// A program outside the source tree, built against the installed SDK with default compiler
// settings. It plays both sides: Eigen matrices allocated here are freed in the library, and vice
// versa.
#include <common/wire/codec.h>
#include <common/wire/parameters_proto.h>
#include <privatemail/joint_client.h>
#include <privatemail/transport.h>

#include <cstdlib>
#include <iostream>

using namespace privatemail;
using namespace privatemail::client;

namespace {

constexpr int kClasses = 3;
constexpr int kAnchors = 12;
constexpr int kFeatures = 5;

template <typename T>
T Need(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << "\n";
  std::exit(1);
}

Anchors MakeAnchors() {
  Anchors anchors{FloatMatrix::Random(kAnchors, kFeatures), {}};
  for (int i = 0; i < kAnchors; ++i) anchors.labels.push_back(i % kClasses);
  return anchors;
}

JointClient MakeClient(const Anchors& anchors) {
  const PublicParameters parameters =
      Need(MakePublicParameters("a uuid", EmbeddingSettings{}, anchors, {}, "vectors"));
  v1::GetCollectionResponse collection;
  ToProto(parameters, collection.mutable_parameters());
  collection.set_fingerprint(Fingerprint(parameters));
  collection.set_name("things");
  collection.set_embedding_version(1);
  std::vector<v1::GetAnchorsResponse> chunks(1);
  ToProto(anchors.features, chunks[0].mutable_features());
  chunks[0].mutable_labels()->Assign(anchors.labels.begin(), anchors.labels.end());
  return Need(JointClient::Create(collection, chunks, anchors));
}

v1::RetrieveResponse MakeAnswer() {
  v1::RetrieveResponse response;
  for (int slot = 0; slot < kClasses; ++slot) response.add_slots()->add_matches()->set_id("item");
  response.mutable_alignment()->set_scale(1);
  for (const double value : {1., 0., 0., 1.}) response.mutable_alignment()->add_rotation(value);
  for (const double value : {0., 0.}) response.mutable_alignment()->add_translation(value);
  return response;
}

void QueryWithoutServer(const std::string& ledger_path) {
  const JointClient client = MakeClient(MakeAnchors());
  const auto ledger = Need(Ledger::Open(ledger_path));
  if (!ledger->Grant("a uuid", {10, .1}).ok()) std::exit(1);
  SecureBits bits;
  for (int label = 0; label < kClasses; ++label) {
    const Target target{Eigen::RowVectorXf::Random(kFeatures), label};
    const PreparedQuery prepared =
        Need(client.Prepare(target, {.cost = {.epsilon = 1, .delta = 1e-5}}, *ledger, bits));
    QueryResult result = Need(client.Finish(prepared.state, MakeAnswer()));
    // Allocated in the library, grown and freed here.
    result.alignment.rotation = Matrix::Identity(40, 40);
    JointRelease release =
        Need(client.scheme().Release(target, {.epsilon = 1, .delta = 1e-5}, *ledger, bits));
    release.rows.conservativeResize(100, 7);
    std::cout << result.matches.size() << " match, " << release.rows.size() << " values\n";
  }
}

bool AbsentServerIsUnavailable() {
  ConnectionOptions options;
  options.server = "127.0.0.1:1";
  options.insecure = true;
  const Transport transport = Need(Transport::Create(options));
  return absl::IsUnavailable(transport.GetCollection("nothing").status());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  QueryWithoutServer(argv[1]);
  return AbsentServerIsUnavailable() ? 0 : 1;
}
