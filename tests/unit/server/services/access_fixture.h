// Fixture: a daemon with mutual TLS and access keys.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_ACCESS_FIXTURE_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_ACCESS_FIXTURE_H_

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "privatemail/v1/keys.grpc.pb.h"
#include "server/services/rpc_table.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/services/all_rpcs.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {

// Holds the collections fruit (built) and fish.
class AccessTest : public ::testing::Test {
 protected:
  using Credentials = std::shared_ptr<grpc::ChannelCredentials>;

  void SetUp() override;

  std::shared_ptr<grpc::Channel> Channel(const Credentials& credentials) const;
  Credentials Member() const;
  std::shared_ptr<grpc::Channel> ChannelWith(const std::string& key) const;

  // Expects that a refused call sends no message before its status.
  static absl::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                           const google::protobuf::MethodDescriptor& method,
                           const google::protobuf::Message& request);

  absl::Status Try(const std::string& name, const std::string& collection,
                   const std::string& key) const;

  void Put(const std::string& collection, const std::vector<Item>& items) const;

  v1::CreateKeyResponse MakeKey(Scopes scopes, const std::vector<std::string>& collections,
                                double requests_per_second = 0) const;

  // A request that would have an effect if it were served.
  std::unique_ptr<google::protobuf::Message> RequestFor(
      const google::protobuf::MethodDescriptor& method, const std::string& collection) const;

  // The collection on which the RPC would have an effect.
  static std::string TargetOf(const google::protobuf::MethodDescriptor& method);

  // All state that a call could change, as text.
  std::string Everything() const;

  // Calls every RPC and expects `expected` and no effect.
  void ExpectAll(const Credentials& credentials,
                 const std::function<absl::StatusCode(const Rpc&)>& expected);

  const TemporaryFolder folder_;
  DaemonOptions options_;  // for SetUp
  std::unique_ptr<DaemonServer> daemon_;
  std::string admin_;
  std::string victim_ = "none";  // key that RevokeKey would revoke
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_ACCESS_FIXTURE_H_
