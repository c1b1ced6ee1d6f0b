// The services whose handlers keep no state of their own.
#ifndef PRIVATEMAIL_SERVER_SERVICES_SERVICES_H_
#define PRIVATEMAIL_SERVER_SERVICES_SERVICES_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/encrypted.pb.h"
#include "server/access/key_ring.h"
#include "server/engine/catalog.h"
#include "server/engine/maintenance.h"
#include "server/services/dispatcher.h"
#include "server/services/shards.h"

namespace privatemail::server {

// Each registers the handlers of a service, which adapt it to the catalog or the key ring; the
// .proto file lists the statuses. Both must outlive all calls. Handlers are thread-safe.

// v1.RetrievalService: public parameters, anchors, and retrieval. Releases are used for their
// answer only and neither stored nor logged. Sources: retrieval_service.cc, retrieve_cells.cc.
void ServeRetrieval(const Catalog* catalog, Dispatcher* dispatcher);
void ServeRetrieveCells(const Catalog* catalog, Dispatcher* dispatcher);

// v1.EncryptedService: exact searches under encryption. Queries are used for their answer only and
// neither stored nor logged; evaluation keys are kept in memory, so that a session sends them once.
// Source: encrypted_service.cc.
void ServeEncrypted(const Catalog* catalog, Dispatcher* dispatcher);
// The most queries of one request. Clients send at most 16 MiB of queries in a message, which are
// 1,598 of the smallest ones.
inline constexpr int kMaxQueriesPerRequest = 4096;

// Checks lengths, counts and digests against the collection's parameters, but not the coefficients,
// which lattice::Evaluator checks as it parses them. The collection must have a dimension.
// INVALID_ARGUMENT: a field is malformed, or a count exceeds its limit; the field is named.
absl::Status CheckEncryptedRequest(const v1::SearchEncryptedRequest& request,
                                   const PublicParameters& parameters);
// The collection that a valid request asks for. NOT_FOUND: there is none. FAILED_PRECONDITION:
// another fingerprint, no items, or no encrypted rows. INVALID_ARGUMENT: as above.
absl::StatusOr<CollectionView> FindForEncryptedSearch(const Catalog& catalog,
                                                      const v1::SearchEncryptedRequest& request);

// The RPCs that a front answers from what the shards answer, in place of the handlers of the other
// services. Administration of items is the same on a front, which shares the shards' store. The
// shards must outlive all calls. Source: front.cc.
void ServeFront(const Catalog* catalog, Shards* shards, Dispatcher* dispatcher);

// They are for automatic builds of a front: what its shards have embedded, nullopt while they
// cannot say; and a build of all, which accepts misaligned labels if the last one of this front
// did.
std::optional<std::map<std::string, EmbeddedItems>> EmbeddedByShards(
    Shards* shards, const std::function<bool()>& cancelled);
absl::Status BuildShards(const Catalog* catalog, Shards* shards, const std::string& name,
                         const std::function<bool()>& cancelled);

// v1.KeysService: create, list and revoke access keys. The text of a new key is sent to its holder
// and neither stored nor logged. `keys` is null on a daemon without keys. Source: keys_service.cc.
void ServeKeys(KeyRing* keys, Dispatcher* dispatcher);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_SERVICES_H_
