// The client's network: channel, deadlines, retries and the calls that searches need.
#ifndef PRIVATEMAIL_TRANSPORT_H_
#define PRIVATEMAIL_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "privatemail/client_limits.h"
#include "privatemail/v1/retrieval.pb.h"

namespace grpc {
class Channel;
}

namespace privatemail::client {

// Options of a connection. At most one of ca_file, trust_fingerprint and insecure; by default the
// system's certificate authorities are trusted.
struct ConnectionOptions {
  // HOST:PORT, or a gRPC target: "dns:///HOST:PORT", "ipv4:ADDRESS:PORT,ADDRESS:PORT". Calls are
  // distributed round-robin over all addresses: daemons that share one store.
  std::string server = "127.0.0.1:50051";
  std::string ca_file;  // PEM, trusted authorities
  // SHA-256 of the only trusted server certificate's DER, 64 hex digits.
  std::string trust_fingerprint;
  // PEM files of the client's certificate, both or none. The key file must have mode 0600.
  std::string certificate_file;
  std::string certificate_key_file;
  bool insecure = false;  // plaintext: the network can read and change the traffic
  // One line, sent as `authorization: Bearer KEY` with every call. The file must have mode 0600;
  // requires TLS.
  std::string key_file;
  absl::Duration deadline = absl::Seconds(30);  // per call; none for builds, uploads and snapshots
  // Bytes that the messages of one answer may take when parsed, held against an upper estimate
  // before they are parsed. At least 1,000,000.
  int64_t max_memory = kMaxMemory;
  // Whether the call is cancelled, polled many times a second while it waits: then it ends with
  // CANCELLED. Empty: never.
  std::function<bool()> cancelled = nullptr;
};

// The server as its user knows it, by which the ledger knows its operator: the trusted
// certificate's fingerprint, or else the address as given. Nothing that a server says changes it.
std::string ServerIdentity(const ConnectionOptions& options);

// Parts of a collection that GetCollection returns only if asked for.
struct CollectionDetails {
  bool changes = false;                        // counts of changes by kind, for operators
  bool quality = false;                        // of queries for cells; if it is published
  std::vector<std::string> filter_paths = {};  // in the clear: which of them no item has
};

// The gRPC calls of a search over one channel; AdminClient has the others. Held by the client;
// everything that it carries is visible to the server. Thread-safe.
//
// Retries, within the deadline:
//   UNAVAILABLE, CANCELLED              up to 4 attempts with the same bytes
//   the key exceeds its rate            after the server's retry-after time
// Statuses are the server's, except:
//   UNAVAILABLE        the server cannot be reached; the message names it and a remedy
//   CANCELLED          options.cancelled
//   DEADLINE_EXCEEDED  no answer within options.deadline
//   RESOURCE_EXHAUSTED also: the answer would take more than options.max_memory
//   DATA_LOSS          the answer cannot be parsed, or has no message
class Transport {
 public:
  // Connects lazily.
  // INVALID_ARGUMENT: contradictory options, a malformed fingerprint, key or server, an unreadable
  //   file.
  // PERMISSION_DENIED: a key file that others may access.
  static absl::StatusOr<Transport> Create(const ConnectionOptions& options);

  const std::string& server() const { return options_.server; }  // as given
  std::string identity() const { return ServerIdentity(options_); }
  int64_t max_memory() const { return options_.max_memory; }
  bool is_cancelled() const { return options_.cancelled && options_.cancelled(); }

  // DATA_LOSS: the response is of another collection.
  absl::StatusOr<v1::GetCollectionResponse> GetCollection(const std::string& name,
                                                          CollectionDetails details = {}) const;
  absl::StatusOr<std::vector<v1::GetAnchorsResponse>> GetAnchors(
      const std::string& name, const std::string& fingerprint) const;
  // A prepared request may be sent any number of times at no further privacy cost.
  absl::StatusOr<v1::RetrieveResponse> Retrieve(const v1::RetrieveRequest& request) const;
  // All messages of the answer. An answer that breaks off after its first message is an error.
  // make_accept: makes the callback of one attempt, which sees each message on arrival; its error
  //   ends the call and is returned.
  using AcceptCells = std::function<absl::Status(const v1::RetrieveCellsResponse&)>;
  absl::StatusOr<std::vector<v1::RetrieveCellsResponse>> RetrieveCells(
      const v1::RetrieveCellsRequest& request,
      const std::function<AcceptCells()>& make_accept) const;

  // Any RPC of one request: fills `part` with each message of the answer, and calls `accept`, whose
  // error ends the call and is returned. method: "/privatemail.v1.RetrievalService/Retrieve".
  // begin: is called before each attempt. The caller counts the memory of what it keeps.
  // RESOURCE_EXHAUSTED naming the field, whose size counts most: the request is larger than the
  // maximum message.
  absl::Status Stream(const std::string& method, const char* field,
                      const google::protobuf::Message& request, google::protobuf::Message* part,
                      const std::function<void()>& begin,
                      const std::function<absl::Status()>& accept) const;

 protected:
  Transport(ConnectionOptions options, std::shared_ptr<grpc::Channel> channel)
      : options_(std::move(options)), channel_(std::move(channel)) {}

  ConnectionOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TRANSPORT_H_
