// The client's state folder, which the command line and SDK programs share: privacy ledger, last
// release, row tables of encrypted searches.
#ifndef PRIVATEMAIL_STATE_FOLDER_H_
#define PRIVATEMAIL_STATE_FOLDER_H_

#include <string>

#include "absl/status/status.h"

namespace privatemail::client {

// $PRIVATEMAIL_STATE; if empty $XDG_STATE_HOME/privatemail; if that is empty
// $HOME/.local/state/privatemail (without $HOME: in the working folder).
std::string DefaultStateFolder();

// Creates the folder with mode 0700, and its parents, unless it exists; takes the access of others
// to a folder of this user's away, as umasks, chmod -R or Kubernetes' fsGroup give it, if it is
// empty or holds a ledger or a last release.
// PERMISSION_DENIED: it cannot be created, is no folder, everyone may write to it, or others may
// access it and it is not this user's or holds other files alone.
absl::Status CreateStateFolder(const std::string& folder);

// The ledger's file in a state folder. The command line's is in the default folder: a second ledger
// would double the budget of every collection.
std::string LedgerPath(const std::string& state_folder);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_STATE_FOLDER_H_
