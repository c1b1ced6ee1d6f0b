// Checks of the files and addresses that a configuration names.
#ifndef PRIVATEMAIL_SERVER_DAEMON_FILE_CHECK_H_
#define PRIVATEMAIL_SERVER_DAEMON_FILE_CHECK_H_

#include <string>
#include <vector>

#include "server/config/options.h"

namespace privatemail::server {

// Problems that would make a start fail, besides those of CheckOptions: certificates, keys, the
// file of store postgres, addresses, data directory, audit log, limit of open files. Creates, binds
// and connects nothing, so that it is safe beside a daemon that runs over the same files.
Problems CheckFiles(const DaemonOptions& options);

// One warning for each existing file of the daemon whose mode lets others read a secret or write.
// Only warnings, because such a mode may be intended (a backup group). `config_file` and `tls_key`
// may be empty.
std::vector<std::string> CheckFilePermissions(const DaemonOptions& options,
                                              const std::string& config_file,
                                              const std::string& tls_key);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_FILE_CHECK_H_
