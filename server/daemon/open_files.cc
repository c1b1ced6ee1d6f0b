#include "server/daemon/open_files.h"

#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

rlim_t Wanted(int64_t max_connections) {
  return static_cast<rlim_t>(max_connections + kOwnOpenFiles);
}

rlimit Limits() {
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  return files;
}

absl::Status TooMany(int64_t max_connections) {
  return absl::FailedPreconditionError(absl::StrCat(
      "max_connections is ", max_connections, ", which takes ", Wanted(max_connections),
      " open files, but this process may have ", Limits().rlim_max,
      ": lower it, or raise the limit (ulimit -n, LimitNOFILE= of systemd)"));
}

}  // namespace

absl::Status CheckOpenFiles(int64_t max_connections) {
  const bool possible = Limits().rlim_max >= Wanted(max_connections);
  return possible ? absl::OkStatus() : TooMany(max_connections);
}

absl::Status AllowOpenFiles(int64_t max_connections) {
  PM_RETURN_IF_ERROR(CheckOpenFiles(max_connections));
  rlimit files = Limits();
  files.rlim_cur = std::max(files.rlim_cur, Wanted(max_connections));
  return ::setrlimit(RLIMIT_NOFILE, &files) == 0 ? absl::OkStatus() : TooMany(max_connections);
}

}  // namespace privatemail::server
