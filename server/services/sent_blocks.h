// The blocks of an encrypted collection as searchers get them.
#ifndef PRIVATEMAIL_SERVER_SERVICES_SENT_BLOCKS_H_
#define PRIVATEMAIL_SERVER_SERVICES_SENT_BLOCKS_H_

#include <string>

#include "server/engine/encrypted_rows.h"

namespace privatemail::server {

// A serialised v1.RowTableBlock, and a v1.RowPayloadBlock, made by each call.
std::string TableOf(const EncryptedBlock& block);
std::string PayloadsOf(const EncryptedBlock& block);

// Their sizes and digests, which the block keeps.
const EncryptedBlock::SentForm& SentFormOf(const EncryptedBlock& block);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_SENT_BLOCKS_H_
