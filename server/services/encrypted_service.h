// v1.EncryptedService: exact searches under encryption.
#ifndef PRIVATEMAIL_SERVER_SERVICES_ENCRYPTED_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_ENCRYPTED_SERVICE_H_

#include <cstdint>

#include "privatemail/v1/encrypted.grpc.pb.h"
#include "server/engine/catalog.h"
#include "server/engine/evaluation_key_cache.h"
#include "server/services/dispatcher.h"
#include "server/services/metrics.h"

namespace privatemail::server {

// Adapter from v1.EncryptedService to a catalog; encrypted.proto lists the statuses. Thread-safe.
// Queries are used for their answer only and neither stored nor logged; evaluation keys are kept in
// memory, so that a session sends them once.
class EncryptedService final
    : public RawService<v1::EncryptedService::Service,
                        v1::EncryptedService::WithRawCallbackMethod_SearchEncrypted> {
 public:
  // All must outlive the service.
  EncryptedService(const Catalog* catalog, Dispatcher* dispatcher, Metrics* metrics);

  WriteReactor* SearchEncrypted(RpcContext* context, const Bytes* request) override;

 private:
  absl::Status Search(const v1::SearchEncryptedRequest& request, Call& call,
                      MessageWriter<v1::SearchEncryptedResponse>& writer);
  struct Keys {
    EvaluationKeyCache::Handle keys;  // null: the request has none, and none are cached
    int64_t uncached_bytes = 0;  // of keys that serve this search only, since the cache is full
  };
  // INVALID_ARGUMENT: coefficients that are too large, or keys of another delta.
  absl::StatusOr<Keys> FindKeys(const v1::SearchEncryptedRequest& request);

  const Catalog* const catalog_;
  Dispatcher* const dispatcher_;
  Metrics* const metrics_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_ENCRYPTED_SERVICE_H_
