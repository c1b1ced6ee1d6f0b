// Every RPC, by its descriptor.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_ALL_RPCS_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_ALL_RPCS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/channel.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"

namespace privatemail::testing {

// Of every file in proto/privatemail/v1, so that a new service cannot be forgotten.
std::vector<const google::protobuf::MethodDescriptor*> AllMethods();

// What came back of a call: its messages are counted and thrown away.
struct Answer {
  absl::Status status;
  int messages = 0;
};

// One call of any kind with one message.
Answer CallOnce(const std::shared_ptr<grpc::Channel>& channel,
                const google::protobuf::MethodDescriptor& method,
                const google::protobuf::Message& request);

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_ALL_RPCS_H_
