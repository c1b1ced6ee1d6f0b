#include "server/services/sent_blocks.h"

#include "common/base/digests.h"
#include "common/items/item_checks.h"
#include "privatemail/v1/encrypted.pb.h"

namespace privatemail::server {
namespace {

// Returns the label in the encoding of v1.RowTableBlock.labels.
int64_t SentLabel(int32_t label) {
  if (label == kNoLabel) return 0;
  return label >= 0 ? int64_t{label} + 1 : label;
}

}  // namespace

std::string TableOf(const EncryptedBlock& block) {
  v1::RowTableBlock proto;
  for (size_t row = 0; row < block.size(); ++row) {
    proto.add_ids(block.IdOf(row).data(), block.IdOf(row).size());
  }
  proto.mutable_norms()->Assign(block.norms().begin(), block.norms().end());
  for (const int32_t label : block.labels()) proto.add_labels(SentLabel(label));
  return proto.SerializeAsString();
}

std::string PayloadsOf(const EncryptedBlock& block) {
  v1::RowPayloadBlock proto;
  for (size_t row = 0; row < block.payloads().size(); ++row) {
    proto.add_payloads(block.payloads()[row].data(), block.payloads()[row].size());
  }
  return proto.SerializeAsString();
}

const EncryptedBlock::SentForm& SentFormOf(const EncryptedBlock& block) {
  return block.Sent([&block] {
    const std::string table = TableOf(block), payloads = PayloadsOf(block);
    return EncryptedBlock::SentForm{Sha256::Of(table), Sha256::Of(payloads), table.size(),
                                    payloads.size()};
  });
}

}  // namespace privatemail::server
