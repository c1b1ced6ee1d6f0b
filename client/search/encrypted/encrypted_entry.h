// The entry of the scheme encrypted in the table of schemes.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_ENCRYPTED_ENTRY_H_
#define PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_ENCRYPTED_ENTRY_H_

#include "client/search/scheme_entry.h"

namespace privatemail::client {

SchemeEntry EncryptedEntry();

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_ENCRYPTED_ENTRY_H_
