#include "tests/unit/server/services/all_rpcs.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/status.h"

namespace privatemail::testing {

using google::protobuf::MethodDescriptor;

std::vector<const MethodDescriptor*> AllMethods() {
  std::vector<const MethodDescriptor*> methods;
  for (const auto& entry : std::filesystem::directory_iterator(PRIVATEMAIL_PROTOS)) {
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(
        "privatemail/v1/" + entry.path().filename().string());
    if (file == nullptr) {
      ADD_FAILURE() << entry << " is not part of this program";
      continue;
    }
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.push_back(file->service(s)->method(m));
      }
    }
  }
  return methods;
}

std::string PathOf(const MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

Answer CallOnce(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                const std::vector<std::string>& messages) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  const auto next = [&] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  const auto call = stub.PrepareCall(&context, path, &queue);
  call->StartCall(nullptr);
  next();
  for (const std::string& message : messages) {
    const grpc::Slice slice(message);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    if (!next()) break;  // the status says why
  }
  call->WritesDone(nullptr);
  next();
  Answer answer;
  grpc::ByteBuffer response;
  for (call->Read(&response, nullptr); next(); call->Read(&response, nullptr)) ++answer.messages;
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  answer.status = FromGrpc(status);
  return answer;
}

}  // namespace privatemail::testing
