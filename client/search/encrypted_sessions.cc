#include "client/search/encrypted_sessions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::client {

absl::StatusOr<std::shared_ptr<const EncryptedSession>> EncryptedSessions::Get(int delta) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Session& session = sessions_[delta];
  if (session.keys == nullptr) {
    SecureBits bits;
    PM_ASSIGN_OR_RETURN(session.keys, EncryptedSession::Create(delta, bits));
  }
  return session.keys;
}

std::shared_ptr<RowTables> EncryptedSessions::TablesOf(const std::string& collection_uuid) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<RowTables>& tables = tables_[collection_uuid];
  if (tables == nullptr) {
    tables = std::make_shared<RowTables>(
        RowTableCache(state_folder_, transport_.server(), collection_uuid), max_memory_);
  }
  return tables;
}

void EncryptedSessions::AddKnownBlocks(const std::string& collection_uuid,
                                       v1::SearchEncryptedRequest* message) {
  TablesOf(collection_uuid)->AddKnownBlocks(message);
}

absl::StatusOr<EncryptedAnswer> EncryptedSessions::Send(v1::SearchEncryptedRequest* message,
                                                        Departures& departures,
                                                        SearchBytes* bytes) {
  constexpr int kMaxSends = 3;  // while the server asks for the keys
  const auto delta = static_cast<int>(message->delta());
  for (int sends = 0; sends < kMaxSends; ++sends) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const Session& session = sessions_[delta];
      if (sends > 0 || !session.uploaded) message->set_keys(session.keys->keys());
    }
    bytes->keys += message->keys().size();
    bytes->up += message->ByteSizeLong() - message->keys().size();
    absl::StatusOr<EncryptedAnswer> answer = transport_.SearchEncrypted(*message);
    departures.NoteArrival();
    if (!answer.ok()) return answer;
    bytes->table += answer->table_bytes();
    bytes->payloads += answer->payload_bytes();
    bytes->down += answer->score_bytes();
    if (answer->header().keys_missing()) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    sessions_[delta].uploaded = true;
    return answer;
  }
  return absl::UnavailableError(
      absl::StrCat("the server must keep the evaluation keys of this session, but asked for them ",
                   kMaxSends, " times: it is restarting, or its cache of keys is too small"));
}

absl::StatusOr<EncryptedExchange> EncryptedSessions::Exchange(const std::string& collection_uuid,
                                                              v1::SearchEncryptedRequest* message,
                                                              Departures& departures,
                                                              SearchBytes* bytes,
                                                              const WarnFunction& warn) {
  PM_ASSIGN_OR_RETURN(EncryptedAnswer answer, Send(message, departures, bytes));
  PM_ASSIGN_OR_RETURN(RowTable table, TablesOf(collection_uuid)->Take(answer, warn));
  return EncryptedExchange{std::move(answer), std::move(table)};
}

}  // namespace privatemail::client
