// Conversions between this scheme's structs and its protobuf messages.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_MESSAGES_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_MESSAGES_H_

#include "client/schemes/encrypted/encrypted_answer.h"
#include "client/schemes/encrypted/encrypted_client.h"
#include "privatemail/v1/encrypted.pb.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// ReadEncryptedCollection is declared in encrypted_client.h.
AnswerPart ToAnswerPart(v1::SearchEncryptedResponse message);
v1::EncryptedQuery ToMessage(EncryptedQuery query);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_MESSAGES_H_
