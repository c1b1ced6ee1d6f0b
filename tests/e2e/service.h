// A running service with a small collection in it, and what its users ask of it.
#ifndef PRIVATEMAIL_TESTS_E2E_SERVICE_H_
#define PRIVATEMAIL_TESTS_E2E_SERVICE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "privatemail/transport.h"
#include "common/base/matrix.h"
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

// Classes in turn (row i is of class i mod kClasses), each around a direction of its own.
Labelled SeparatedClasses(int rows, unsigned seed, int columns = kFeatures);

// The collection "things", around the rows of SeparatedClasses.
v1::CreateCollectionRequest NewThings(double alpha = 12, int steps = 5);

// A release that means nothing, which is all that a server can tell of one. k is to be set.
v1::RetrieveRequest RandomSearch(const v1::GetCollectionResponse& collection);

// Stays out of the way until a test asks: no daemon runs before StartDaemon.
class Service : public ::testing::Test {
 protected:
  // A daemon over `data` in the folder, without TLS, which is not what most tests are about.
  void StartDaemon(const std::string& listen = "127.0.0.1:0");

  // The same server through the SDK.
  Transport Connect() const;

  // Files of the folder: NAME.npy and NAME_labels.npy.
  void Write(const std::string& name, const Labelled& rows) const;
  std::string Vectors(const std::string& name) const { return folder_ / (name + ".npy"); }
  std::string Labels(const std::string& name) const { return folder_ / (name + "_labels.npy"); }

  Outcome Run(const std::vector<std::string>& command) const { return user_.Run(command); }
  // Runs with --json, expects success and returns the answer.
  nlohmann::json Answer(std::vector<std::string> command) const;

  // The parts of the usual story, each expected to succeed. Through the SDK, because a program
  // takes long to start; happy_path_test.cc tells the story through the programs.
  void CreateCollection(double alpha = 12, int steps = 5) const;
  void Fill() const { Fill(Connect()); }
  void Fill(const Transport& transport) const;  // with the rows of the file "gallery"
  void Build() const;
  void Grant(double epsilon, double delta) const;

  // Uploads the rows of a file.
  nlohmann::json Ingest(const std::string& name) const;

  nlohmann::json Info() const { return Answer({"collection", "info", "things"}); }
  nlohmann::json Budget() const { return Answer({"budget", "show", "things"}); }

  // All that a command could change: every collection with its counts, and every grant and charge.
  // Through the SDK, too.
  nlohmann::json Everything() const;

  // Runs with --json and expects exit code 1 (2 for INVALID_ARGUMENT), a status of this code on
  // both outputs, each part in its message, and Everything as it was.
  void ExpectRefused(const std::vector<std::string>& command, const std::string& code,
                     const std::vector<std::string>& parts) const;

  const TemporaryFolder folder_;
  std::unique_ptr<Daemon> daemon_;
  User user_{{}, folder_ / "state"};
};

// With the collection "things" created, filled, built and funded, and rows to ask for in the file
// "queries".
class FilledService : public Service {
 protected:
  void SetUp() override;

  std::vector<std::string> Query(const std::vector<std::string>& more) const;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_SERVICE_H_
