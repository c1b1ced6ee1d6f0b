// Administration of a server: collections, items, snapshots, access keys and health.
#ifndef PRIVATEMAIL_ADMIN_CLIENT_H_
#define PRIVATEMAIL_ADMIN_CLIENT_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "privatemail/transport.h"
#include "privatemail/v1/collections.pb.h"
#include "privatemail/v1/keys.pb.h"

namespace privatemail::client {

// A transport with the calls of administrators. Read-only calls are retried on UNAVAILABLE and
// CANCELLED as searches are; changes are never retried. Statuses as of Transport. Thread-safe.
class AdminClient : public Transport {
 public:
  // Arguments and statuses as Transport::Create.
  static absl::StatusOr<AdminClient> Create(const ConnectionOptions& options);
  // Uses the connection of the transport.
  explicit AdminClient(Transport transport) : Transport(std::move(transport)) {}

  // RESOURCE_EXHAUSTED naming the field: the request is larger than the maximum message.
  absl::StatusOr<v1::CreateCollectionResponse> CreateCollection(
      const v1::CreateCollectionRequest& request) const;
  absl::StatusOr<v1::ListCollectionsResponse> ListCollections() const;
  absl::StatusOr<v1::DeleteCollectionResponse> DeleteCollection(const std::string& name) const;
  absl::StatusOr<v1::DeleteItemsResponse> DeleteItems(const v1::DeleteItemsRequest& request) const;
  absl::StatusOr<v1::GetItemsResponse> GetItems(const v1::GetItemsRequest& request) const;
  absl::StatusOr<v1::ScrollItemsResponse> ScrollItems(const v1::ScrollItemsRequest& request) const;
  absl::StatusOr<v1::CountItemsResponse> CountItems(const v1::CountItemsRequest& request) const;
  // `next` fills a message and returns true, or returns false at the end. No deadline.
  // RESOURCE_EXHAUSTED: a message is too large; the ones before it are stored.
  // DATA_LOSS: the server's counts do not add up to the items sent.
  absl::StatusOr<v1::UpsertItemsResponse> UpsertItems(
      const std::function<bool(v1::UpsertItemsRequest*)>& next) const;
  // `progress` sees every message; returns the last. No deadline. FAILED_PRECONDITION: no items,
  // or, unless accept_misalignment, items whose labels do not seem to mean the anchors' classes.
  absl::StatusOr<v1::BuildEmbeddingResponse> BuildEmbedding(
      const std::string& name,
      const std::function<void(const v1::BuildEmbeddingResponse&)>& progress,
      bool accept_misalignment = false) const;

  // `take` gets the snapshot's bytes in order; its error ends the call and is returned. No
  // deadline.
  absl::Status SnapshotCollection(const std::string& name,
                                  const std::function<absl::Status(absl::string_view)>& take) const;
  // `next` fills a piece of at most kSnapshotPieceBytes and returns true, or returns false at the
  // end; its error ends the call and is returned, and nothing is stored. No deadline.
  absl::StatusOr<v1::RestoreCollectionResponse> RestoreCollection(
      const std::string& name, const std::function<absl::StatusOr<bool>(std::string*)>& next) const;

  // Only CreateKey's response contains the new key's text.
  absl::StatusOr<v1::CreateKeyResponse> CreateKey(const v1::CreateKeyRequest& request) const;
  absl::StatusOr<v1::ListKeysResponse> ListKeys() const;
  absl::StatusOr<v1::RevokeKeyResponse> RevokeKey(const std::string& id) const;

  // grpc.health.v1 of the server, or of the collection if one is named.
  absl::StatusOr<bool> IsServing(const std::string& collection) const;
  // Whether the server refuses writes for want of disk space. False for servers that cannot tell.
  absl::StatusOr<bool> IsReadOnly() const;

 private:
  // Whether grpc.health.v1 answers SERVING for the service.
  absl::StatusOr<bool> CheckHealth(const std::string& service) const;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_ADMIN_CLIENT_H_
