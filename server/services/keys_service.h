// v1.KeysService: create, list and revoke access keys.
#ifndef PRIVATEMAIL_SERVER_SERVICES_KEYS_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_KEYS_SERVICE_H_

#include "privatemail/v1/keys.grpc.pb.h"
#include "server/access/key_ring.h"
#include "server/services/dispatcher.h"

namespace privatemail::server {

// Adapter from v1.KeysService to a key ring; keys.proto lists the statuses. Thread-safe. The text
// of a new key is sent to its holder and neither stored nor logged.
class KeysService final
    : public RawService<v1::KeysService::Service, v1::KeysService::WithRawCallbackMethod_CreateKey,
                        v1::KeysService::WithRawCallbackMethod_ListKeys,
                        v1::KeysService::WithRawCallbackMethod_RevokeKey> {
 public:
  // `keys` is null on a daemon without keys. Both must outlive the service.
  KeysService(KeyRing* keys, Dispatcher* dispatcher) : keys_(keys), dispatcher_(dispatcher) {}

  UnaryReactor* CreateKey(RpcContext* context, const Bytes* request, Bytes* response) override;
  UnaryReactor* ListKeys(RpcContext* context, const Bytes* request, Bytes* response) override;
  UnaryReactor* RevokeKey(RpcContext* context, const Bytes* request, Bytes* response) override;

 private:
  absl::Status CheckKeysAreOn() const;

  KeyRing* const keys_;
  Dispatcher* const dispatcher_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_KEYS_SERVICE_H_
