#include "server/daemon/file_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "server/access/key_file.h"
#include "server/daemon/certificate.h"
#include "server/daemon/http.h"
#include "server/daemon/open_files.h"
#include "server/store/postgres/connection.h"

namespace privatemail::server {
namespace {

bool Exists(const std::string& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0;
}

absl::Status CheckAccess(const std::string& what, const std::string& path, int mode) {
  if (::access(path.c_str(), mode) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " ", path, " must be writable, but is not: ", std::strerror(errno)));
}

absl::Status CheckDirectory(const std::string& what, const std::string& path, int mode) {
  if (!std::filesystem::is_directory(path)) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " ", path, " must be a directory, but is none"));
  }
  return CheckAccess(what, path, mode);
}

// What is missing of it the start makes, in the part that is there.
absl::Status CheckDataDirectory(const std::string& path) {
  if (path.empty()) return absl::OkStatus();  // that it is not given is told already
  if (Exists(path)) return CheckDirectory("--data-dir", path, R_OK | W_OK | X_OK);
  std::filesystem::path there = std::filesystem::absolute(path).lexically_normal();
  while (!Exists(there.string()) && there.has_relative_path()) there = there.parent_path();
  return CheckDirectory(absl::StrCat("--data-dir ", path, " cannot be made:"), there.string(),
                        W_OK | X_OK);
}

absl::Status CheckIdentity(const DaemonOptions& options) {
  // That one is missing is told already.
  if (options.tls_certificate.empty() != options.tls_key.empty()) return absl::OkStatus();
  if (!options.tls_certificate.empty()) {
    return LoadIdentity(options.tls_certificate, options.tls_key).status();
  }
  const std::string made = absl::StrCat(options.data_directory, "/tls/server.crt");
  if (!Exists(made)) return absl::OkStatus();  // the start makes it
  return LoadIdentity(made, absl::StrCat(options.data_directory, "/tls/server.key")).status();
}

absl::Status CheckKeys(const std::string& data_directory) {
  if (data_directory.empty()) return absl::OkStatus();
  const KeyFile keys(absl::StrCat(data_directory, "/keys"));
  return keys.Exists() ? keys.Load().status() : absl::OkStatus();
}

absl::Status CheckPostgresFile(const std::string& path) {
  PM_ASSIGN_OR_RETURN(const std::string conninfo, ReadFile("--postgres-file", path));
  const absl::Status parsed = postgres::Target::Parse(conninfo).status();
  if (parsed.ok()) return parsed;
  return absl::Status(parsed.code(),
                      absl::StrCat("--postgres-file ", path, ": ", parsed.message()));
}

absl::Status CheckAuditLog(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    return absl::FailedPreconditionError(
        absl::StrCat("--audit-log ", path, " must be a file, but is a directory"));
  }
  if (Exists(path)) return CheckAccess("--audit-log", path, W_OK);
  return CheckAccess("the directory of --audit-log",
                     std::filesystem::absolute(path).parent_path().string(), W_OK | X_OK);
}

}  // namespace

Problems CheckFiles(const DaemonOptions& options) {
  Problems problems;
  problems.Add(CheckDataDirectory(options.data_directory));
  problems.Add(CheckOpenFiles(options.limits.max_connections));
  if (!options.insecure) {
    problems.Add(CheckIdentity(options));
    if (!options.client_ca.empty()) {
      problems.Add(LoadAuthorities("--client-ca", options.client_ca).status());
    }
    problems.Add(CheckKeys(options.data_directory));
  }
  if (!options.postgres_file.empty()) problems.Add(CheckPostgresFile(options.postgres_file));
  if (!options.http.empty()) problems.Add(ParseHttpAddress(options.http).status());
  if (!options.audit_log.empty() && options.audit_log != "off") {
    problems.Add(CheckAuditLog(options.audit_log));
  }
  return problems;
}

}  // namespace privatemail::server
