// The network of the client: channels and calls. Everything it carries may be seen by the server.
#ifndef PRIVATEMAIL_TRANSPORT_H_
#define PRIVATEMAIL_TRANSPORT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "privatemail/v1/collections.pb.h"
#include "privatemail/v1/keys.pb.h"
#include "privatemail/v1/retrieval.pb.h"

namespace grpc {
class Channel;
}

namespace privatemail::client {

// How to reach a server. At most one of ca_file, trust_fingerprint and insecure; none: the system's
// certificate authorities.
struct ConnectionOptions {
  // HOST:PORT, or a gRPC target: "dns:///HOST:PORT", "ipv4:ADDRESS:PORT,ADDRESS:PORT". Calls go in
  // turn to all addresses that the name has: daemons that share one store.
  std::string server = "127.0.0.1:50051";
  std::string ca_file;  // PEM, trusted authorities
  // SHA-256 of the server certificate's DER, 64 hex digits: trust this certificate and no other.
  std::string trust_fingerprint;
  // PEM files, both or none: what a server that demands certificates of its clients is shown. The
  // key must be its owner's alone.
  std::string certificate_file;
  std::string certificate_key_file;
  bool insecure = false;  // plaintext: everyone on the way reads and changes the traffic
  // One line, the caller's key, sent as `authorization: Bearer KEY` with every call. The file must
  // be its owner's alone; a key never travels in plaintext.
  std::string key_file;
  absl::Duration deadline = absl::Seconds(30);  // of one call that is not a build or an upload
};

// How the SDK sends: anything that carries a request to a server and brings the response back.
using SendFn = std::function<absl::StatusOr<v1::RetrieveResponse>(const v1::RetrieveRequest&)>;

// Calls over one gRPC channel. Thread-safe. What only reads is sent again, up to four times in all,
// when a server was unavailable, be it because it was just leaving. Each call returns the server's
// status unchanged; UNAVAILABLE (the message names the server, and the option that helps if one
// does) when it cannot be reached, DEADLINE_EXCEEDED in time.
class Transport {
 public:
  // Connects lazily. INVALID_ARGUMENT: options contradict each other, a fingerprint or a key is
  // malformed, the server is neither HOST:PORT nor a target, or a file cannot be read.
  // PERMISSION_DENIED: others may read a key.
  static absl::StatusOr<Transport> Create(const ConnectionOptions& options);

  // What a search takes, these two and Retrieve, is sent again when the server says that the key
  // calls too often and may come back before the deadline.
  // with_changes: counted by kind, for operators.
  absl::StatusOr<v1::GetCollectionResponse> GetCollection(const std::string& name,
                                                          bool with_changes = false) const;
  // DATA_LOSS: more than 1 GiB came, which no client has to hold.
  absl::StatusOr<std::vector<v1::GetAnchorsResponse>> GetAnchors(
      const std::string& name, const std::string& fingerprint) const;
  // Sends the same bytes again, up to four times in all, when the server was unavailable: a release
  // once sampled may be sent any number of times at no further cost.
  absl::StatusOr<v1::RetrieveResponse> Retrieve(const v1::RetrieveRequest& request) const;
  // The same for cells: all messages of the answer. `accept` sees each as it comes; its error ends
  // the call and is returned. Sent again only as long as no message has come: an answer that breaks
  // off is an error. Each try is given an `accept` of its own.
  using AcceptCells = std::function<absl::Status(const v1::RetrieveCellsResponse&)>;
  absl::StatusOr<std::vector<v1::RetrieveCellsResponse>> RetrieveCells(
      const v1::RetrieveCellsRequest& request, const std::function<AcceptCells()>& accept) const;

  // RESOURCE_EXHAUSTED naming the field: what is to be sent is larger than a message may be.
  absl::StatusOr<v1::CreateCollectionResponse> CreateCollection(
      const v1::CreateCollectionRequest& request) const;
  absl::StatusOr<v1::ListCollectionsResponse> ListCollections() const;
  absl::StatusOr<v1::DeleteCollectionResponse> DeleteCollection(const std::string& name) const;
  // Single items, as collections.proto says.
  absl::StatusOr<v1::DeleteItemsResponse> DeleteItems(const v1::DeleteItemsRequest& request) const;
  absl::StatusOr<v1::GetItemsResponse> GetItems(const v1::GetItemsRequest& request) const;
  absl::StatusOr<v1::ScrollItemsResponse> ScrollItems(const v1::ScrollItemsRequest& request) const;
  absl::StatusOr<v1::CountItemsResponse> CountItems(const v1::CountItemsRequest& request) const;
  // `next` fills a message and returns true, or returns false at the end. No deadline.
  // RESOURCE_EXHAUSTED as above; messages before it are stored. DATA_LOSS: the server answers for
  // more or fewer items than were sent.
  absl::StatusOr<v1::UpsertItemsResponse> UpsertItems(
      const std::function<bool(v1::UpsertItemsRequest*)>& next) const;
  // `progress` sees every message; returns the last. No deadline.
  absl::StatusOr<v1::BuildEmbeddingResponse> BuildEmbedding(
      const std::string& name,
      const std::function<void(const v1::BuildEmbeddingResponse&)>& progress) const;

  // A whole collection as collections.proto says. `take` gets the bytes in order; its error ends
  // the call and is returned. No deadline.
  absl::Status SnapshotCollection(const std::string& name,
                                  const std::function<absl::Status(absl::string_view)>& take) const;
  // `next` fills a piece of the snapshot, at most kSnapshotPieceBytes, and returns true, or returns
  // false at the end; its error ends the call and is returned, and nothing is stored. No deadline.
  absl::StatusOr<v1::RestoreCollectionResponse> RestoreCollection(
      const std::string& name, const std::function<absl::StatusOr<bool>(std::string*)>& next) const;

  // Keys of the server's callers, for those who administer it. The response of CreateKey holds the
  // new key's text, which the server does not know any more.
  absl::StatusOr<v1::CreateKeyResponse> CreateKey(const v1::CreateKeyRequest& request) const;
  absl::StatusOr<v1::ListKeysResponse> ListKeys() const;
  absl::StatusOr<v1::RevokeKeyResponse> RevokeKey(const std::string& id) const;

  // Whether the server, or the collection if one is named, is ready to answer: grpc.health.v1.
  absl::StatusOr<bool> IsServing(const std::string& collection) const;

 private:
  Transport(ConnectionOptions options, std::shared_ptr<grpc::Channel> channel)
      : options_(std::move(options)), channel_(std::move(channel)) {}

  absl::Status Explain(const absl::Status& status) const;
  // All messages of a stream. Tried again only before its first message. make_accept: makes what
  // sees each message of one try; its error ends the call.
  template <typename Message, typename Call, typename MakeAccept>
  absl::StatusOr<std::vector<Message>> ReadAll(Call call, MakeAccept make_accept) const;

  ConnectionOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TRANSPORT_H_
