#include "client/schemes/encrypted/encrypted_messages.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client {

absl::StatusOr<EncryptedCollection> ReadEncryptedCollection(
    const v1::GetCollectionResponse& collection) {
  absl::StatusOr<PublicParameters> parameters = FromProto(collection.parameters());
  if (!parameters.ok()) {
    return absl::DataLossError(absl::StrCat("public parameters of collection ", collection.name(),
                                            ": ", parameters.status().message()));
  }
  PM_RETURN_IF_ERROR(CheckFingerprint(Fingerprint(*parameters), collection.fingerprint()));
  PM_RETURN_IF_ERROR(CheckHasEncrypted(collection.name(), *parameters));
  const v1::EncryptedStatus& status = collection.encrypted();
  return EncryptedCollection{.name = collection.name(),
                             .uuid = parameters->collection_uuid,
                             .fingerprint = collection.fingerprint(),
                             .dimensions = parameters->feature_dim,
                             .metric = parameters->metric,
                             .delta = status.delta(),
                             .rows = status.rows(),
                             .table_bytes = status.table_bytes(),
                             .payload_bytes = status.payload_bytes()};
}

absl::StatusOr<EncryptedClient> EncryptedClient::Create(
    const v1::GetCollectionResponse& collection) {
  PM_ASSIGN_OR_RETURN(EncryptedCollection read, ReadEncryptedCollection(collection));
  return Create(std::move(read));
}

AnswerPart ToAnswerPart(v1::SearchEncryptedResponse message) {
  switch (message.part_case()) {
    case v1::SearchEncryptedResponse::kHeader: {
      v1::EncryptedSearchHeader& header = *message.mutable_header();
      return AnswerHeader{.keys_missing = header.keys_missing(),
                          .items_version = header.items_version(),
                          .items = header.items(),
                          .table_digests = std::move(*header.mutable_table_digests()),
                          .payload_digests = std::move(*header.mutable_payload_digests())};
    }
    case v1::SearchEncryptedResponse::kTableBlock:
    case v1::SearchEncryptedResponse::kPayloadBlock: {
      const bool of_payloads = message.has_payload_block();
      v1::RowBlock& block =
          of_payloads ? *message.mutable_payload_block() : *message.mutable_table_block();
      return AnswerBlock{.of_payloads = of_payloads,
                         .block = block.block(),
                         .content = std::move(*block.mutable_content())};
    }
    case v1::SearchEncryptedResponse::kScores:
      return AnswerScores{.query = message.scores().query(),
                          .first_block = message.scores().first_block(),
                          .answers = std::move(*message.mutable_scores()->mutable_answers())};
    case v1::SearchEncryptedResponse::PART_NOT_SET:
      break;
  }
  return {};
}

v1::EncryptedQuery ToMessage(EncryptedQuery query) {
  v1::EncryptedQuery proto;
  proto.set_seed(std::move(query.seed));
  proto.set_chunks(std::move(query.chunks));
  return proto;
}

}  // namespace privatemail::client
