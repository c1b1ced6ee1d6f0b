#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/schemes/encrypted/encrypted_answer.h"
#include "client/schemes/encrypted/encrypted_client.h"
#include "client/schemes/encrypted/encrypted_messages.h"
#include "client/schemes/encrypted/encrypted_search.h"
#include "client/search/encrypted/row_table_cache.h"
#include "client/search/encrypted/row_tables.h"
#include "client/search/scheme_table.h"
#include "common/base/digests.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"
#include "common/lattice/scores.h"
#include "privatemail/v1/encrypted.pb.h"

namespace privatemail::client {
namespace {

// SHA-256 of the digests of all blocks, those of the table first and those of the payloads after
// them: names the version of what was received, the same for all searchers who ask for payloads,
// and for all who do not.
std::string RootDigest(const AnswerHeader& header) {
  return Sha256::Of(header.table_digests + header.payload_digests);
}

// The server's view as JSON, without ciphertexts and without anything that was decrypted.
class EncryptedRecord : public SearchRecord {
 public:
  std::string Add(const google::protobuf::Message& message) override;
  std::optional<std::string> AddAnswer(const SearchAnswer& answer) override;
  // Targets share messages, so each result gets the bytes and times of all.
  void Complete(std::vector<SearchResult>* results) const override;

 private:
  std::string View() const;

  v1::SearchEncryptedRequest first_;  // without queries and keys
  uint64_t messages_ = 0, queries_ = 0, bytes_ = 0;
  std::vector<std::string> tables_;  // digests that name the row tables, each once
};

std::string EncryptedRecord::Add(const google::protobuf::Message& message) {
  const auto& encrypted = static_cast<const v1::SearchEncryptedRequest&>(message);
  if (messages_++ == 0) {
    first_ = encrypted;
    first_.clear_queries();
  }
  queries_ += static_cast<uint64_t>(encrypted.queries_size());
  bytes_ += encrypted.ByteSizeLong();
  return View();
}

std::optional<std::string> EncryptedRecord::AddAnswer(const SearchAnswer& answer) {
  const std::string digest =
      RootDigest(std::any_cast<const EncryptedExchange&>(answer.value).answer.header());
  if (std::find(tables_.begin(), tables_.end(), digest) != tables_.end()) return std::nullopt;
  tables_.push_back(digest);
  return View();
}

std::string EncryptedRecord::View() const {
  nlohmann::json tables = nlohmann::json::array();
  for (const std::string& digest : tables_) tables.push_back(ToHex(digest));
  return nlohmann::json({{"delta", first_.delta()},
                         {"queries", queries_},
                         {"messages", messages_},
                         {"bytes", bytes_},
                         {"keys_digest", ToHex(first_.keys_digest())},
                         {"keys_bytes", lattice::KeysBytes(static_cast<int>(first_.delta()))},
                         {"known_blocks", first_.known_blocks_size()},
                         {"with_payloads", first_.with_payloads()},
                         {"known_payload_blocks", first_.known_payload_blocks_size()},
                         {"tables", tables}})
      .dump();
}

void EncryptedRecord::Complete(std::vector<SearchResult>* results) const {
  SearchBytes bytes;
  SearchTimes times;
  for (const SearchResult& one : *results) {
    bytes.up += one.bytes.up;
    bytes.down += one.bytes.down;
    bytes.keys += one.bytes.keys;
    bytes.table += one.bytes.table;
    bytes.payloads += one.bytes.payloads;
    times.prepare_ms += one.times.prepare_ms;
    times.answer_ms += one.times.answer_ms;
    times.finish_ms += one.times.finish_ms;
  }
  for (SearchResult& one : *results) {
    one.bytes = bytes;
    one.times = times;
    if (one.encrypted.has_value()) one.encrypted->tables = tables_;
  }
}

// The whole answer, or that evaluation keys are missing. The same for every target, since it
// depends on sizes and digests alone.
absl::StatusOr<EncryptedAnswer> SendOnce(const Transport& transport,
                                         const v1::SearchEncryptedRequest& message) {
  std::optional<EncryptedAnswer> answer;
  v1::SearchEncryptedResponse part;
  PM_RETURN_IF_ERROR(transport.Stream(
      "/privatemail.v1.EncryptedService/SearchEncrypted", "queries", message, &part,
      [&] {
        answer.emplace(static_cast<size_t>(message.queries_size()), message.with_payloads(),
                       transport.max_memory());
      },
      // The answer counts what it keeps of a message.
      [&] {
        const uint64_t bytes = part.ByteSizeLong();
        return answer->Add(ToAnswerPart(std::move(part)), bytes);
      }));
  PM_RETURN_IF_ERROR(answer->CheckComplete());
  return *std::move(answer);
}

// Holds the secret keys, which live as long as this object, and the row tables, which are cached in
// the state folder.
class EncryptedConnection : public SchemeConnection {
 public:
  explicit EncryptedConnection(const SearchContext& context) : context_(context) {}

  // UNAVAILABLE: no random bits.
  absl::StatusOr<std::unique_ptr<SchemeSearch>> Open(const v1::GetCollectionResponse& published,
                                                     const SearchRequest& request) override {
    PM_ASSIGN_OR_RETURN(EncryptedClient client, EncryptedClient::Create(published));
    PM_ASSIGN_OR_RETURN(std::shared_ptr<const EncryptedSession> session,
                        SessionFor(client.delta()));
    const auto add_known_blocks = [tables = TablesOf(published.name(), client.collection().uuid)](
                                      v1::SearchEncryptedRequest* message) {
      const KnownBlocks known = tables->Known(message->with_payloads());
      message->mutable_known_blocks()->Assign(known.table.begin(), known.table.end());
      message->mutable_known_payload_blocks()->Assign(known.payloads.begin(), known.payloads.end());
    };
    return EncryptedSearch::Create(std::move(client), std::move(session), request, context_.limits,
                                   add_known_blocks);
  }

  std::unique_ptr<SearchRecord> NewRecord() const override {
    return std::make_unique<EncryptedRecord>();
  }

  // Sends the evaluation keys with the queries if the server lacks them, and takes the answer's row
  // table. The queries are the same each time: nothing is encrypted again.
  // UNAVAILABLE: the server keeps asking for the keys. Otherwise as Transport and RowTables::Take.
  absl::StatusOr<SearchAnswer> Send(const PublicParameters& parameters,
                                    google::protobuf::Message* message, SearchResult* result,
                                    const WarnFunction& warn) override {
    auto* const request = static_cast<v1::SearchEncryptedRequest*>(message);
    PM_ASSIGN_OR_RETURN(EncryptedAnswer answer, SendWithKeys(request, &result->bytes));
    PM_ASSIGN_OR_RETURN(
        RowTable table,
        TablesOf(request->collection(), parameters.collection_uuid)->Take(&answer, warn));
    const auto memory = static_cast<int64_t>(answer.memory());
    return SearchAnswer{.value = EncryptedExchange{std::move(answer), std::move(table)},
                        .memory = memory};
  }

 private:
  struct Session {
    std::shared_ptr<const EncryptedSession> keys;
    bool uploaded = false;  // the server has the evaluation keys
  };

  // The session for chunks of `delta` dimensions, made at first use.
  absl::StatusOr<std::shared_ptr<const EncryptedSession>> SessionFor(int delta) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Session& session = sessions_[delta];
    if (session.keys == nullptr) {
      SecureBits bits;
      PM_ASSIGN_OR_RETURN(session.keys, EncryptedSession::Create(delta, bits));
    }
    return session.keys;
  }

  // One for each name that the caller asked for, however often the server changes the UUID.
  std::shared_ptr<RowTables> TablesOf(const std::string& collection, const std::string& uuid) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& [of, tables] = tables_[collection];
    if (tables == nullptr || of != uuid) {
      of = uuid;
      tables = std::make_shared<RowTables>(
          std::make_shared<RowTableCache>(context_.state_folder, context_.transport.server(), uuid),
          context_.limits.max_memory);
    }
    return tables;
  }

  absl::StatusOr<EncryptedAnswer> SendWithKeys(v1::SearchEncryptedRequest* message,
                                               SearchBytes* bytes);

  const SearchContext context_;
  std::mutex mutex_;                 // guards the following
  std::map<int, Session> sessions_;  // by delta
  // By the collection's name; the UUID that they belong to.
  std::map<std::string, std::pair<std::string, std::shared_ptr<RowTables>>> tables_;
};

absl::StatusOr<EncryptedAnswer> EncryptedConnection::SendWithKeys(
    v1::SearchEncryptedRequest* message, SearchBytes* bytes) {
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
    absl::StatusOr<EncryptedAnswer> answer = SendOnce(context_.transport, *message);
    context_.departures.NoteArrival();
    if (!answer.ok()) return answer;
    bytes->table += answer->table_bytes();
    bytes->payloads += answer->payload_bytes();
    bytes->down += answer->score_bytes();
    if (answer->header().keys_missing) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    sessions_[delta].uploaded = true;
    return answer;
  }
  return absl::UnavailableError(
      absl::StrCat("the server must keep the evaluation keys of this session, but asked for them ",
                   kMaxSends, " times: it is restarting, or its cache of keys is too small"));
}

std::unique_ptr<SchemeConnection> ConnectEncrypted(const SearchContext& context) {
  return std::make_unique<EncryptedConnection>(context);
}

absl::StatusOr<nlohmann::json> ExplainSavedEncrypted(const LastSearch& last,
                                                     const PublicParameters&) {
  nlohmann::json view = nlohmann::json::parse(last.message, nullptr, /*allow_exceptions=*/false);
  if (!view.is_object()) return absl::DataLossError("the record of the last search is malformed");
  view["not_saved"] =
      "the ciphertexts, the session's secret key, and everything that was decrypted";
  return view;
}

}  // namespace

SchemeEntry EncryptedEntry() {
  return {.can_resend = false,
          .check_offered = CheckHasEncrypted,
          .connect = ConnectEncrypted,
          .add_json = AddEncryptedJson,
          .explain = ExplainSavedEncrypted};
}

}  // namespace privatemail::client
