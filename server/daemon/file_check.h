// Whether a daemon could start with what its configuration names.
#ifndef PRIVATEMAIL_SERVER_DAEMON_FILE_CHECK_H_
#define PRIVATEMAIL_SERVER_DAEMON_FILE_CHECK_H_

#include "server/config/options.h"
#include "server/config/problems.h"

namespace privatemail::server {

// Reads certificates, keys and the file of store postgres as a start would, and looks at addresses,
// data directory (or the part of its path that is there), audit log and the limit of open files;
// makes nothing, binds nothing and connects to nothing, so that a daemon may run over the same
// files meanwhile. What Contradictions tells is not told again.
Problems CheckFiles(const DaemonOptions& options);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_FILE_CHECK_H_
