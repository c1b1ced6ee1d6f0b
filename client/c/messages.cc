#include "client/c/messages.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/wire_format.h"

namespace privatemail::client {
namespace {

constexpr auto kVarint = WireReader::kVarint;
constexpr auto kBytes = WireReader::kBytes;
constexpr size_t kFingerprintBytes = 32;

absl::Status Malformed(const char* message) {
  return absl::DataLossError(
      absl::StrCat("answer of the server: it must be a privatemail.v1.", message, ", but is not"));
}

std::string PackFixed64(const std::vector<uint64_t>& values) {
  std::string bytes;
  for (const uint64_t value : values) {
    for (int byte = 0; byte < 8; ++byte) bytes.push_back(static_cast<char>(value >> (8 * byte)));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<DescribedCollection> ParseCollection(absl::string_view message,
                                                    absl::string_view name) {
  EncryptedCollection collection;
  std::string extractor;
  uint64_t metric = 0;
  bool offered = false;
  WireReader response(message);
  bool ok = true;
  while (response.Next()) {
    if (response.Is(2, kBytes)) collection.fingerprint = response.bytes();
    if (response.Is(6, kBytes)) collection.name = response.bytes();
    if (response.Is(1, kBytes)) {
      WireReader parameters(response.bytes());
      while (parameters.Next()) {
        if (parameters.Is(1, kBytes)) collection.uuid = parameters.bytes();
        if (parameters.Is(3, kVarint)) {
          collection.dimensions = static_cast<uint32_t>(parameters.value());
        }
        if (parameters.Is(4, kBytes)) extractor = parameters.bytes();
        if (parameters.Is(13, kVarint)) metric = parameters.value();
        if (parameters.Is(14, kVarint)) offered = parameters.value() != 0;
      }
      ok = ok && parameters.ok();
    }
    if (response.Is(17, kBytes)) {
      WireReader status(response.bytes());
      while (status.Next()) {
        if (status.Is(1, kVarint)) collection.delta = static_cast<uint32_t>(status.value());
        if (status.Is(2, kVarint)) collection.rows = status.value();
        if (status.Is(3, kVarint)) collection.table_bytes = status.value();
        if (status.Is(4, kVarint)) collection.payload_bytes = status.value();
      }
      ok = ok && status.ok();
    }
  }
  if (!ok || !response.ok()) return Malformed("GetCollectionResponse");
  if (collection.name != name) {
    return absl::DataLossError(
        absl::StrCat("collection: the server was asked for ", name, ", but answered for another"));
  }
  if (!offered) {
    return absl::FailedPreconditionError(
        absl::StrCat("collection ", name, " has no encrypted rows"));
  }
  if (metric < 1 || metric > 3) {
    return absl::DataLossError(absl::StrCat("public parameters of collection ", name,
                                            ": metric must be 1 to 3, but is ", metric));
  }
  if (collection.fingerprint.size() != kFingerprintBytes) {
    return absl::DataLossError(absl::StrCat("fingerprint must have ", kFingerprintBytes,
                                            " bytes, but has ", collection.fingerprint.size()));
  }
  collection.metric = static_cast<Metric>(metric);
  return DescribedCollection{std::move(collection), std::move(extractor)};
}

absl::StatusOr<AnswerPart> ParseAnswerPart(absl::string_view message) {
  AnswerPart part;
  WireReader response(message);
  bool ok = true;
  while (response.Next()) {
    WireReader field(response.bytes());
    if (response.Is(1, kBytes)) {
      AnswerHeader header;
      while (field.Next()) {
        if (field.Is(1, kVarint)) header.keys_missing = field.value() != 0;
        if (field.Is(2, kVarint)) header.items_version = field.value();
        if (field.Is(3, kVarint)) header.items = field.value();
        if (field.Is(4, kBytes)) header.table_digests = field.bytes();
        if (field.Is(5, kBytes)) header.payload_digests = field.bytes();
      }
      part = std::move(header);
    } else if (response.Is(2, kBytes) || response.Is(3, kBytes)) {
      AnswerBlock block{.of_payloads = response.Is(3, kBytes)};
      while (field.Next()) {
        if (field.Is(1, kVarint)) block.block = static_cast<uint32_t>(field.value());
        if (field.Is(2, kBytes)) block.content = field.bytes();
      }
      part = std::move(block);
    } else if (response.Is(4, kBytes)) {
      AnswerScores scores;
      while (field.Next()) {
        if (field.Is(1, kVarint)) scores.query = static_cast<uint32_t>(field.value());
        if (field.Is(2, kVarint)) scores.first_block = static_cast<uint32_t>(field.value());
        if (field.Is(3, kBytes)) scores.answers = field.bytes();
      }
      part = std::move(scores);
    }
    ok = ok && field.ok();
  }
  if (!ok || !response.ok()) return Malformed("SearchEncryptedResponse");
  return part;
}

std::string RequestHalves::WithKeys(absl::string_view keys) const {
  WireWriter request;
  request.message = before_keys;
  if (!keys.empty()) request.AddBytes(5, keys);
  return request.message + after_keys;
}

RequestHalves SerializeRequest(const EncryptedCollection& collection,
                               const EncryptedSession& session,
                               const std::vector<EncryptedQuery>& queries, const KnownBlocks& known,
                               bool with_payloads) {
  WireWriter before, after;
  before.AddBytes(1, collection.name);
  before.AddBytes(2, collection.fingerprint);
  before.AddNumber(3, static_cast<uint64_t>(session.delta()));
  before.AddBytes(4, session.keys_digest());
  for (const EncryptedQuery& query : queries) {
    WireWriter one;
    one.AddBytes(1, query.seed);
    one.AddBytes(2, query.chunks);
    after.AddBytes(6, one.message);
  }
  if (!known.table.empty()) after.AddBytes(7, PackFixed64(known.table));
  after.AddNumber(8, with_payloads ? 1 : 0);
  if (!known.payloads.empty()) after.AddBytes(9, PackFixed64(known.payloads));
  return {std::move(before.message), std::move(after.message)};
}

}  // namespace privatemail::client
