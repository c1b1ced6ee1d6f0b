#include "server/services/encrypted_request.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/field_error.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/lattice/wire.h"

namespace privatemail::server {
namespace {

constexpr int64_t kDigestBytes = 32;

absl::Status CheckBytes(absl::string_view field, absl::string_view value, int64_t expected) {
  if (std::ssize(value) == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must have ", expected, " bytes, but has ", value.size()));
}

absl::Status CheckCount(absl::string_view field, int count, int limit) {
  if (count <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must hold at most ", limit, ", but hold ", count));
}

absl::Status CheckKeys(const v1::SearchEncryptedRequest& request, int delta) {
  PM_RETURN_IF_ERROR(CheckBytes("keys_digest", request.keys_digest(), kDigestBytes));
  if (request.keys().empty()) return absl::OkStatus();
  PM_RETURN_IF_ERROR(
      CheckBytes("keys", request.keys(), static_cast<int64_t>(lattice::KeysBytes(delta))));
  if (Sha256::Of(request.keys()) == request.keys_digest()) return absl::OkStatus();
  return InvalidField("keys_digest", "must be the SHA-256 of keys, but is not");
}

absl::Status CheckQueries(const v1::SearchEncryptedRequest& request, int64_t dimensions,
                          int delta) {
  if (request.queries().empty()) {
    return InvalidField("queries", "must hold at least one, but hold none");
  }
  PM_RETURN_IF_ERROR(CheckCount("queries", request.queries_size(), kMaxQueriesPerRequest));
  const auto chunk_bytes = static_cast<int64_t>(lattice::QueryChunkBytes(dimensions, delta));
  for (int i = 0; i < request.queries_size(); ++i) {
    const v1::EncryptedQuery& query = request.queries(i);
    const std::string field = absl::StrCat("queries[", i, "]");
    PM_RETURN_IF_ERROR(CheckBytes(absl::StrCat(field, ".seed"), query.seed(),
                                  static_cast<int64_t>(lattice::kSeedBytes)));
    PM_RETURN_IF_ERROR(CheckBytes(absl::StrCat(field, ".chunks"), query.chunks(), chunk_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckEncryptedRequest(const v1::SearchEncryptedRequest& request,
                                   const PublicParameters& parameters) {
  if (!lattice::IsDelta(request.delta())) {
    return InvalidField(
        "delta", absl::StrCat("must be one of ", absl::StrJoin(lattice::kDeltas, ", "), ", but is ",
                              request.delta()));
  }
  const auto delta = static_cast<int>(request.delta());
  PM_RETURN_IF_ERROR(CheckKeys(request, delta));
  PM_RETURN_IF_ERROR(CheckQueries(request, parameters.feature_dim, delta));
  PM_RETURN_IF_ERROR(CheckCount("known_blocks", request.known_blocks_size(), kMaxKnownBlocks));
  PM_RETURN_IF_ERROR(
      CheckCount("known_payload_blocks", request.known_payload_blocks_size(), kMaxKnownBlocks));
  if (request.with_payloads() || request.known_payload_blocks().empty()) return absl::OkStatus();
  return InvalidField("known_payload_blocks", "must not be given unless with_payloads is set");
}

}  // namespace privatemail::server
