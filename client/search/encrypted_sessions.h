// Secret keys and row tables of one client, and the exchange of an encrypted message.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_SESSIONS_H_
#define PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_SESSIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "client/schemes/encrypted/encrypted_answer.h"
#include "client/schemes/encrypted/encrypted_client.h"
#include "client/schemes/encrypted/encrypted_search.h"
#include "client/search/departures.h"
#include "client/search/row_tables.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// Held by the client. Keys live as long as this object, tables are cached in the state folder.
// Thread-safe.
class EncryptedSessions {
 public:
  // transport must outlive the sessions. max_memory: bytes of one table.
  EncryptedSessions(const Transport& transport, std::string state_folder, int64_t max_memory)
      : transport_(transport), state_folder_(std::move(state_folder)), max_memory_(max_memory) {}

  // The session for chunks of `delta` dimensions, made at first use. UNAVAILABLE: no random bits.
  absl::StatusOr<std::shared_ptr<const EncryptedSession>> Get(int delta);

  // Names the table blocks that this client holds to the server.
  void AddKnownBlocks(const std::string& collection_uuid, v1::SearchEncryptedRequest* message);

  // Sends a message, with the evaluation keys if the server lacks them, and takes the answer's row
  // table. The queries are the same each time: nothing is encrypted again.
  // bytes: of what was sent and received is added. warn: sees that a file cannot be written.
  // UNAVAILABLE: the server keeps asking for the keys. Otherwise as Transport::SearchEncrypted and
  // RowTables::Take.
  absl::StatusOr<EncryptedExchange> Exchange(const std::string& collection_uuid,
                                             v1::SearchEncryptedRequest* message,
                                             Departures& departures, SearchBytes* bytes,
                                             const WarnFunction& warn);

 private:
  struct Session {
    std::shared_ptr<const EncryptedSession> keys;
    bool uploaded = false;  // the server has the evaluation keys
  };

  absl::StatusOr<EncryptedAnswer> Send(v1::SearchEncryptedRequest* message, Departures& departures,
                                       SearchBytes* bytes);
  std::shared_ptr<RowTables> TablesOf(const std::string& collection_uuid);

  const Transport& transport_;
  const std::string state_folder_;
  const int64_t max_memory_;
  std::mutex mutex_;                                          // guards the following
  std::map<int, Session> sessions_;                           // by delta
  std::map<std::string, std::shared_ptr<RowTables>> tables_;  // by collection UUID
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_SESSIONS_H_
