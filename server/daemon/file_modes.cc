#include "server/daemon/file_modes.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"

namespace privatemail::server {
namespace {

constexpr mode_t kAnythingByOthers = S_IRWXG | S_IRWXO;
constexpr mode_t kWritingByOthers = S_IWGRP | S_IWOTH;

bool Grants(const std::string& path, mode_t mode) {
  struct stat properties = {};
  return ::stat(path.c_str(), &properties) == 0 && S_ISCHR(properties.st_mode) == 0 &&
         (properties.st_mode & mode) != 0;
}

}  // namespace

std::vector<std::string> WarningsAboutModes(const DaemonOptions& options,
                                            const std::string& config_file,
                                            const std::string& tls_key) {
  std::vector<std::string> warnings;
  const auto open = [&](const std::string& what, const std::string& path,
                        const std::string& consequence, const std::string& mode) {
    if (!Grants(path, kAnythingByOthers)) return;
    warnings.push_back(absl::StrCat(what, " ", path, " is open to others", consequence, ": chmod ",
                                    mode, " ", path));
  };
  const auto writable = [&](const std::string& what, const std::string& path,
                            const std::string& consequence) {
    if (!Grants(path, kWritingByOthers)) return;
    warnings.push_back(absl::StrCat(what, " ", path, " can be written by others, who may ",
                                    consequence, ": chmod go-w ", path));
  };
  open("data directory", options.data_directory, "", "700");
  open("--postgres-file", options.postgres_file, ", who may read a password in it", "600");
  open("private key", tls_key, ", who can stand in for this server", "600");
  writable("--config", config_file, "turn this server's defences off");
  writable("--client-ca", options.client_ca, "let in whom they want");
  writable("audit log", AuditLogPath(options), "change what was done");
  return warnings;
}

}  // namespace privatemail::server
