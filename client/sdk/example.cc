#include <privatemail/joint_client.h>
#include <privatemail/state_folder.h>
#include <privatemail/transport.h>

#include <iostream>

// usage: example FINGERPRINT KEY_FILE: a private query to collection "fruit" on 127.0.0.1:50051.
// Spends the command line's budget: privatemail budget set fruit --epsilon 1 --delta 1e-4
int main(int argc, char** argv) try {
  if (argc != 3) return std::cerr << "usage: example FINGERPRINT KEY_FILE\n", 2;
  using namespace privatemail::client;
  const Transport transport =
      Transport::Create({.trust_fingerprint = argv[1], .key_file = argv[2]}).value();
  const auto fruit = transport.GetCollection("fruit").value();
  const auto anchors = transport.GetAnchors("fruit", fruit.fingerprint()).value();
  const JointClient client = JointClient::Create(fruit, anchors).value();
  if (const auto aligned = client.CheckAlignment(); !aligned.ok()) {  // before anything is charged
    return std::cerr << aligned << "\n", 1;
  }
  const auto ledger = Ledger::Open(DefaultLedgerPath()).value();
  const Target target{Eigen::RowVectorXf::Random(client.parameters().feature_dim), /*label=*/3};
  SecureBits bits;
  const PreparedQuery query =
      client.Prepare(target, {.cost = {.epsilon = .1, .delta = 1e-5}}, *ledger, bits).value();
  const QueryResult result =
      client.Finish(query.state, transport.Retrieve(query.request).value()).value();
  for (const QueryMatch& match : result.matches) std::cout << match.id << "\n";
} catch (const std::exception& error) {
  return std::cerr << error.what() << "\n", 1;
}
