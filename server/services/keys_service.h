// Who may call what, for the operator who decides it.
#ifndef PRIVATEMAIL_SERVER_SERVICES_KEYS_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_KEYS_SERVICE_H_

#include "privatemail/v1/keys.grpc.pb.h"
#include "server/access/key_ring.h"
#include "server/services/gate.h"

namespace privatemail::server {

// Adapter from v1.KeysService to a key ring; statuses as keys.proto lists them. Thread-safe. A new
// key's text passes through to its holder and is neither kept nor logged.
class KeysService final : public BytesService<v1::KeysService::Service,
                                              v1::KeysService::WithRawCallbackMethod_CreateKey,
                                              v1::KeysService::WithRawCallbackMethod_ListKeys,
                                              v1::KeysService::WithRawCallbackMethod_RevokeKey> {
 public:
  // `keys` is null on a daemon without keys. Both must outlive the service.
  KeysService(KeyRing* keys, Gate* gate) : keys_(keys), gate_(gate) {}

  grpc::ServerUnaryReactor* CreateKey(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListKeys(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RevokeKey(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;

 private:
  absl::Status CheckKeysAreOn() const;

  KeyRing* const keys_;
  Gate* const gate_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_KEYS_SERVICE_H_
