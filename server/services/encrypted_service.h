// v1.EncryptedService: exact searches under encryption.
#ifndef PRIVATEMAIL_SERVER_SERVICES_ENCRYPTED_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_ENCRYPTED_SERVICE_H_

#include "privatemail/v1/encrypted.grpc.pb.h"
#include "server/engine/catalog.h"
#include "server/engine/evaluation_key_cache.h"
#include "server/services/dispatcher.h"

namespace privatemail::server {

// Adapter from v1.EncryptedService to a catalog; encrypted.proto lists the statuses. Thread-safe.
// Queries are used for their answer only and neither stored nor logged; evaluation keys are kept in
// memory, so that a session sends them once.
class EncryptedService final
    : public RawService<v1::EncryptedService::Service,
                        v1::EncryptedService::WithRawCallbackMethod_SearchEncrypted> {
 public:
  // Both must outlive the service.
  EncryptedService(const Catalog* catalog, Dispatcher* dispatcher);

  WriteReactor* SearchEncrypted(RpcContext* context, const Bytes* request) override;

 private:
  absl::Status Search(const v1::SearchEncryptedRequest& request, Call& call,
                      MessageWriter<v1::SearchEncryptedResponse>& writer);
  // Null: the request has no keys, and none are cached under its digest. INVALID_ARGUMENT;
  // RESOURCE_EXHAUSTED: max_resident_memory.
  absl::StatusOr<EvaluationKeyCache::Handle> FindKeys(const v1::SearchEncryptedRequest& request);

  const Catalog* const catalog_;
  Dispatcher* const dispatcher_;
  EvaluationKeyCache keys_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_ENCRYPTED_SERVICE_H_
