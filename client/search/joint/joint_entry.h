// The entry of the scheme joint in the table of schemes.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_JOINT_JOINT_ENTRY_H_
#define PRIVATEMAIL_CLIENT_SEARCH_JOINT_JOINT_ENTRY_H_

#include "client/search/scheme_entry.h"

namespace privatemail::client {

SchemeEntry JointEntry();

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_JOINT_JOINT_ENTRY_H_
