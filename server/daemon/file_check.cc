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
#include "common/rpc/host_port.h"
#include "server/access/key_ring.h"
#include "server/daemon/certificate.h"
#include "server/store/postgres/connection.h"

namespace privatemail::server {
namespace {

constexpr mode_t kAnyByOthers = S_IRWXG | S_IRWXO;
constexpr mode_t kWriteByOthers = S_IWGRP | S_IWOTH;

bool Grants(const std::string& path, mode_t mode) {
  struct stat properties = {};
  return ::stat(path.c_str(), &properties) == 0 && S_ISCHR(properties.st_mode) == 0 &&
         (properties.st_mode & mode) != 0;
}

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

// A start creates missing directories, so the existing part of the path must be writable.
absl::Status CheckDataDirectory(const std::string& path) {
  if (path.empty()) return absl::OkStatus();  // CheckOptions reports it
  if (Exists(path)) return CheckDirectory("--data-dir", path, R_OK | W_OK | X_OK);
  std::filesystem::path there = std::filesystem::absolute(path).lexically_normal();
  while (!Exists(there.string()) && there.has_relative_path()) there = there.parent_path();
  return CheckDirectory(absl::StrCat("--data-dir ", path, " cannot be created:"), there.string(),
                        W_OK | X_OK);
}

absl::Status CheckIdentity(const DaemonOptions& options) {
  // CheckOptions reports a missing one.
  if (options.tls_certificate.empty() != options.tls_key.empty()) return absl::OkStatus();
  if (!options.tls_certificate.empty()) {
    return LoadIdentity(options.tls_certificate, options.tls_key).status();
  }
  const std::string self_signed = absl::StrCat(options.data_directory, "/tls/server.crt");
  if (!Exists(self_signed)) return absl::OkStatus();  // created by the start
  return LoadIdentity(self_signed, absl::StrCat(options.data_directory, "/tls/server.key"))
      .status();
}

absl::Status CheckKeys(const std::string& data_directory) {
  if (data_directory.empty()) return absl::OkStatus();
  const KeyFile keys(absl::StrCat(data_directory, "/keys"));
  return keys.Exists() ? keys.Load().status() : absl::OkStatus();
}

absl::Status CheckPostgresFile(const std::string& path) {
  PM_ASSIGN_OR_RETURN(const std::string conninfo, ReadFile("--postgres-file", path));
  const absl::Status parsed = postgres::ConnectionInfo::Parse(conninfo).status();
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
  if (!options.insecure) {
    problems.Add(CheckIdentity(options));
    if (!options.client_ca.empty()) {
      problems.Add(LoadAuthorities("--client-ca", options.client_ca).status());
    }
    problems.Add(CheckKeys(options.data_directory));
  }
  if (!options.postgres_file.empty()) problems.Add(CheckPostgresFile(options.postgres_file));
  if (!options.http.empty()) problems.Add(ParseIpPort("--http", options.http).status());
  if (!options.audit_log.empty() && options.audit_log != "off") {
    problems.Add(CheckAuditLog(options.audit_log));
  }
  return problems;
}

std::vector<std::string> CheckFilePermissions(const DaemonOptions& options,
                                              const std::string& config_file,
                                              const std::string& tls_key) {
  std::vector<std::string> warnings;
  const auto open = [&](const std::string& what, const std::string& path,
                        const std::string& consequence, const std::string& mode) {
    if (!Grants(path, kAnyByOthers)) return;
    warnings.push_back(absl::StrCat(what, " ", path, " is open to others", consequence, ": chmod ",
                                    mode, " ", path));
  };
  const auto writable = [&](const std::string& what, const std::string& path,
                            const std::string& consequence) {
    if (!Grants(path, kWriteByOthers)) return;
    warnings.push_back(absl::StrCat(what, " ", path, " can be written by others, who may ",
                                    consequence, ": chmod go-w ", path));
  };
  open("data directory", options.data_directory, "", "700");
  open("--postgres-file", options.postgres_file, ", who may read a password in it", "600");
  open("private key", tls_key, ", who can impersonate this server", "600");
  writable("--config", config_file, "disable TLS and keys");
  writable("--client-ca", options.client_ca, "admit any client");
  writable("audit log", AuditLogPath(options), "change the record");
  return warnings;
}

}  // namespace privatemail::server
