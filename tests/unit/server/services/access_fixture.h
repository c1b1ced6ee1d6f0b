// A daemon in this process with certificates and keys, and callers who hold some of them.
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
#include "tests/unit/server/services/all_rpcs.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {

// With mutual TLS and the collections birds and fish.
class AccessTest : public ::testing::Test {
 protected:
  using Credentials = std::shared_ptr<grpc::ChannelCredentials>;

  void SetUp() override;

  std::shared_ptr<grpc::Channel> Channel(const Credentials& credentials) const;
  Credentials Member() const;
  std::shared_ptr<grpc::Channel> ChannelWith(const std::string& key) const;

  // Expects of a call that is refused that nothing came before its status.
  static absl::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                           const google::protobuf::MethodDescriptor& method,
                           const google::protobuf::Message& request);

  absl::Status Try(const std::string& name, const std::string& collection,
                   const std::string& key) const;

  void Put(const std::string& collection, const std::vector<Item>& items) const;

  v1::CreateKeyResponse MakeKey(Scopes scopes, const std::vector<std::string>& collections,
                                double requests_per_second = 0) const;

  // A request that would do something if it were served.
  std::unique_ptr<google::protobuf::Message> RequestFor(
      const google::protobuf::MethodDescriptor& method, const std::string& collection) const;

  // New where it could be created, birds where something is there to be harmed.
  static std::string TargetOf(const google::protobuf::MethodDescriptor& method);

  // All that a call could change.
  std::string Everything() const;

  // Every RPC over these credentials; `expected` may differ by RPC.
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
