#include <privatemail/search.h>

#include <iostream>

// usage: example SERVER FINGERPRINT KEY COLLECTION SCHEME: a private search for a random vector
int main(int argc, char** argv) {
  using namespace privatemail::client;
  if (argc != 6 || !kSchemeNames.contains(argv[5]))
    return std::cerr << "usage: example SERVER FINGERPRINT KEY COLLECTION SCHEME\n", 2;
  const auto client = SearchClient::Connect(
      {.connection = {.server = argv[1], .trust_fingerprint = argv[2], .key_file = argv[3]}});
  if (!client.ok()) return std::cerr << client.status() << "\n", 1;
  const auto fruit = (*client)->Describe(argv[4]);
  if (!fruit.ok()) return std::cerr << fruit.status() << "\n", 1;
  SearchRequest request{.collection = argv[4], .scheme = kSchemeNames.at(argv[5])};
  request.targets.push_back({.features = Eigen::RowVectorXf::Random(fruit->feature_dim)});
  if (request.scheme != Scheme::kEncrypted) request.epsilon = .1;
  if (request.scheme == Scheme::kJoint) request.delta = 1e-5;
  const auto found = (*client)->Search(request);
  if (!found.ok()) return std::cerr << found.status() << "\n", 1;
  for (const Match& match : found->results[0].matches) std::cout << match.id << "\n";
}
