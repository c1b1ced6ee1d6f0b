// Searches by the scheme encrypted (encrypted_client.h): several targets share a message.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_SEARCH_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/schemes/encrypted/encrypted_answer.h"
#include "client/schemes/encrypted/encrypted_client.h"
#include "client/schemes/encrypted/row_table.h"
#include "client/schemes/scheme_search.h"
#include "common/items/payload_filter.h"
#include "privatemail/client_limits.h"
#include "privatemail/v1/encrypted.pb.h"

namespace privatemail::client {

// The answer to a message, and the row table of the same version.
struct EncryptedExchange {
  EncryptedAnswer answer;
  RowTable table;
};

// Names the row table's blocks that the searcher holds to the server.
using AddKnownBlocks = std::function<void(v1::SearchEncryptedRequest*)>;

class EncryptedSearch : public SchemeSearch {
 public:
  // session: of client.delta(). request must outlive the search. add_known_blocks: called for each
  // message.
  // INVALID_ARGUMENT naming the field: out of range.
  // RESOURCE_EXHAUSTED: the answers take more than limits.max_memory.
  static absl::StatusOr<std::unique_ptr<SchemeSearch>> Create(
      EncryptedClient client, std::shared_ptr<const EncryptedSession> session,
      const SearchRequest& request, const ClientLimits& limits, AddKnownBlocks add_known_blocks);

  // Charges nothing.
  absl::StatusOr<PreparedSearch> Prepare(size_t first, size_t count, const ChargeFunction& charge,
                                         BitSource& bits) override;
  SearchWork WorkOf(const SearchAnswer& answer) const override;
  // RESOURCE_EXHAUSTED: the payloads of as many matches of any rows take more than
  // limits.max_memory, which is decided before it is known which rows match.
  absl::Status Finish(PreparedSearch prepared, const SearchAnswer& answer,
                      absl::Span<SearchResult> results) const override;

 private:
  EncryptedSearch(EncryptedClient client, std::shared_ptr<const EncryptedSession> session,
                  const SearchRequest& request, const ClientLimits& limits,
                  AddKnownBlocks add_known_blocks)
      : client_(std::move(client)),
        session_(std::move(session)),
        request_(request),
        limits_(limits),
        add_known_blocks_(std::move(add_known_blocks)) {}

  // The messages of the search, each of which has an answer.
  int64_t CountMessages() const {
    const int64_t share = expectation_.targets_per_message;
    return (std::ssize(request_.targets) + share - 1) / share;
  }

  EncryptedClient client_;
  std::shared_ptr<const EncryptedSession> session_;
  const SearchRequest& request_;
  const ClientLimits limits_;
  const AddKnownBlocks add_known_blocks_;
  std::optional<PayloadFilter> filter_;
  EncryptedRanking ranking_;  // without the targets' labels
};

// The members of a result that only this scheme has. Private.
void AddEncryptedJson(const SearchResponse& response, const SearchResult& result,
                      nlohmann::json* json);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_SEARCH_H_
