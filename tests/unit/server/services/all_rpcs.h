// Calls of any RPC by its descriptor.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_ALL_RPCS_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_ALL_RPCS_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace privatemail::testing {

// All methods of all files in proto/privatemail/v1, new services included.
std::vector<const google::protobuf::MethodDescriptor*> AllMethods();

// "/package.Service/Method".
std::string PathOf(const google::protobuf::MethodDescriptor& method);

// Status and number of messages of a finished call.
struct Answer {
  absl::Status status;
  int messages = 0;
};

// Calls a method of any kind with serialized messages.
Answer CallOnce(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                const std::vector<std::string>& messages);

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_ALL_RPCS_H_
