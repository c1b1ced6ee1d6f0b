// Files that more people may read or write than is good.
#ifndef PRIVATEMAIL_SERVER_DAEMON_FILE_MODES_H_
#define PRIVATEMAIL_SERVER_DAEMON_FILE_MODES_H_

#include <string>
#include <vector>

#include "server/config/options.h"

namespace privatemail::server {

// One sentence for each file of a daemon's that is open to others; what does not exist is not. None
// of it is refused: who runs the daemon may have reasons, a backup's group for one. `config_file`
// and `tls_key` may be empty.
std::vector<std::string> WarningsAboutModes(const DaemonOptions& options,
                                            const std::string& config_file,
                                            const std::string& tls_key);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_FILE_MODES_H_
