#include "server/services/rpc_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/server/fixtures.h"
#include "tests/unit/server/services/all_rpcs.h"

namespace privatemail::testing {
namespace {

using google::protobuf::MethodDescriptor;

TEST(RpcTable, MatchesServiceDescriptors) {
  std::set<std::string> served;
  for (const MethodDescriptor* method : AllMethods()) {
    EXPECT_TRUE(served.insert(method->name()).second) << method->name() << " is there twice";
  }
  // grpc.health.v1.Health.Check, see monitoring_test.cc; Watch is not served.
  EXPECT_TRUE(served.insert("Check").second);
  std::set<std::string> known;
  for (const Rpc& rpc : Rpcs()) known.insert(rpc.name);
  EXPECT_EQ(known, served);
  for (const MethodDescriptor* method : AllMethods()) {
    if (known.count(method->name()) == 0) continue;
    const Rpc& rpc = FindRpc(method->name());
    EXPECT_NE(rpc.any_of, 0u) << rpc.name << " takes no key";
    if (rpc.collection[0] == '\0') continue;
    const auto* field = method->input_type()->FindFieldByName(rpc.collection);
    ASSERT_NE(field, nullptr) << rpc.name;
    EXPECT_EQ(field->type(), google::protobuf::FieldDescriptor::TYPE_STRING) << rpc.name;
  }
}

}  // namespace
}  // namespace privatemail::testing
