// Waits for gRPC's threads before the program ends: one that is just ending has not yet freed what
// OpenSSL keeps for it, which LeakSanitizer would report.
#include <grpc/grpc.h>
#include <gtest/gtest.h>

namespace privatemail::testing {
namespace {

class GrpcEnvironment : public ::testing::Environment {
 public:
  void SetUp() override { grpc_init(); }
  void TearDown() override { grpc_shutdown_blocking(); }
};

[[maybe_unused]] const ::testing::Environment* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new GrpcEnvironment);

}  // namespace
}  // namespace privatemail::testing
