// Refusal of calls at their header.
#ifndef PRIVATEMAIL_SERVER_SERVICES_HEADER_CHECK_H_
#define PRIVATEMAIL_SERVER_SERVICES_HEADER_CHECK_H_

#include <grpcpp/security/auth_metadata_processor.h>

#include "common/rpc/status.h"
#include "server/services/dispatcher.h"

namespace privatemail::server {

// Refuses calls without a valid key before gRPC receives their messages. For daemons behind trusted
// proxies only, because the address of a direct caller is not known here for the audit log.
class HeaderCheck final : public grpc::AuthMetadataProcessor {
 public:
  // dispatcher: must outlive it.
  explicit HeaderCheck(Dispatcher* dispatcher) : dispatcher_(dispatcher) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* /*context*/,
                       OutputMetadata* /*consumed*/, OutputMetadata* /*response*/) override {
    return ToGrpc(dispatcher_->CheckHeader(metadata));
  }

 private:
  Dispatcher* const dispatcher_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_HEADER_CHECK_H_
