#include "privatemail/state_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace privatemail::client {

namespace {

// Whether it holds nothing, or a file that only a state folder has. A folder of other things keeps
// the mode that its owner gave it.
bool IsEmptyOrOurs(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_empty(folder, error)) return true;
  for (const char* name : {"ledger.sqlite", "last_release.pb", "last_encrypted.pb"}) {
    if (fs::exists(fs::path(folder) / name, error)) return true;
  }
  return false;
}

}  // namespace

std::string DefaultStateFolder() {
  const char* folder = std::getenv("PRIVATEMAIL_STATE");
  if (folder != nullptr && *folder != '\0') return folder;
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') return absl::StrCat(state, "/privatemail");
  const char* home = std::getenv("HOME");
  return absl::StrCat(home == nullptr ? "." : home, "/.local/state/privatemail");
}

absl::Status CreateStateFolder(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(folder).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error || (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)) {
    return absl::PermissionDeniedError(
        absl::StrCat("state folder ", folder,
                     " cannot be made: ", error ? error.message() : std::strerror(errno)));
  }
  struct stat properties = {};
  if (::stat(folder.c_str(), &properties) != 0 || !S_ISDIR(properties.st_mode)) {
    return absl::PermissionDeniedError(absl::StrCat("state folder ", folder, " is not a folder"));
  }
  if ((properties.st_mode & (S_IRWXG | S_IRWXO)) == 0) return absl::OkStatus();
  // Anyone may have replaced the files of a folder that all can write.
  const bool is_safe = properties.st_uid == ::geteuid() && (properties.st_mode & S_IWOTH) == 0;
  const bool is_ours = IsEmptyOrOurs(folder);
  if (is_safe && is_ours && ::chmod(folder.c_str(), 0700) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrFormat(
      "state folder %s must be mode 0700 and its user's, but is %04o and of user %d: %s", folder,
      properties.st_mode & 07777U, properties.st_uid,
      !is_safe  ? "check its files, then chmod 700 or chown it"
      : is_ours ? "its mode cannot be changed"
                : "it holds other files, so name another folder, or chmod 700 this one"));
}

std::string LedgerPath(const std::string& state_folder) {
  return absl::StrCat(state_folder, "/ledger.sqlite");
}

}  // namespace privatemail::client
