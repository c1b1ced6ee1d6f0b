// Fixtures with a daemon, a small collection, and a user of the command line.
#ifndef PRIVATEMAIL_TESTS_E2E_SERVICE_H_
#define PRIVATEMAIL_TESTS_E2E_SERVICE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/admin_client.h"
#include "tests/e2e/programs.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::e2e {

inline constexpr int kClasses = 5;
inline constexpr int kFeatures = 64;
inline constexpr int kAnchorsPerClass = 8;
inline constexpr int kItemsPerClass = 40;
inline constexpr int kItems = kClasses * kItemsPerClass;

struct Labelled {
  FloatMatrix vectors;
  std::vector<int32_t> labels;
};

// `rows` x `columns`; row i has class i mod kClasses, which is a cloud around its own axis.
Labelled SeparatedClasses(int rows, unsigned seed, int columns = kFeatures);

// The defaults for these classes.
EmbeddingSettings ThingsSettings();

// A request for the collection "things", whose anchors are rows of SeparatedClasses.
v1::CreateCollectionRequest NewThings(const EmbeddingSettings& settings = ThingsSettings());

// A request with a random release, which a server cannot tell from a real one. k is not set.
v1::RetrieveRequest RandomSearch(const v1::GetCollectionResponse& collection);

// No daemon runs before StartDaemon.
class Service : public ::testing::Test {
 protected:
  // Starts a daemon without TLS on `data` in the folder.
  void StartDaemon();

  ConnectionOptions Options() const;
  // A connection of the SDK to the daemon.
  AdminClient Connect() const;

  // Writes NAME.npy and NAME_labels.npy into the folder.
  void Write(const std::string& name, const Labelled& rows) const;
  std::string Vectors(const std::string& name) const { return folder_ / (name + ".npy"); }
  std::string Labels(const std::string& name) const { return folder_ / (name + "_labels.npy"); }

  Outcome Run(const Command& command) const { return user_.Run(command); }
  // Runs with --json, expects success and returns the answer.
  nlohmann::json Answer(const Command& command) const;

  // Setup steps, each expected to succeed. Through the SDK, which is faster than starting a
  // program; happy_path_test.cc takes the same steps through the programs.
  void CreateCollection(const EmbeddingSettings& settings = ThingsSettings()) const;
  void Fill() const { Fill(Connect()); }
  void Fill(const AdminClient& transport) const;  // with the rows of the file "gallery"
  void Build() const;
  void Grant(double epsilon, double delta) const;

  // A random search of "things".
  absl::Status Search() const;

  // Uploads the rows of a file through `privatemail ingest`.
  nlohmann::json Ingest(const std::string& name) const;

  nlohmann::json Info() const { return Answer({"collection", "info", "things"}); }
  nlohmann::json Budget() const { return Answer({"budget", "show", "things"}); }

  // All state that a command can change: collections with their counts, grants and charges.
  nlohmann::json Everything() const;

  // Runs with --json and expects exit code 1 (2 for INVALID_ARGUMENT), a status of this code on
  // both outputs, each part in its message, and Everything() unchanged.
  void ExpectRefused(const Command& command, const std::string& code,
                     const std::vector<std::string>& parts = {}) const;

  const TemporaryFolder folder_;
  std::unique_ptr<Daemon> daemon_;
  User user_{{}, folder_ / "state"};
};

// With the collection "things" created, filled, built and funded, and ten targets in "queries".
class FilledService : public Service {
 protected:
  void SetUp() override;

  Command Query(const Command& more) const;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_SERVICE_H_
