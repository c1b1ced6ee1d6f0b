#include "client/cli/command.h"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

absl::Status PreparePrivateFolder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error || (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)) {
    return absl::PermissionDeniedError(absl::StrCat(
        "--state ", path, " cannot be made: ", error ? error.message() : std::strerror(errno)));
  }
  struct stat properties = {};
  if (::stat(path.c_str(), &properties) != 0 || !S_ISDIR(properties.st_mode)) {
    return absl::PermissionDeniedError(absl::StrCat("--state ", path, " is not a folder"));
  }
  if ((properties.st_mode & (S_IRWXG | S_IRWXO)) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrFormat("--state %s must be mode 0700, but is %04o: chmod 700 %s", path,
                      properties.st_mode & 07777U, path));
}

}  // namespace

CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->fallthrough();
  command->footer(
      "Options that every command takes (--server, --trust, --state, --json, ...) are listed by "
      "privatemail --help.");
  return command;
}

absl::Status Finish(Context& context, const absl::StatusOr<Result>& result) {
  PM_RETURN_IF_ERROR(result.status());
  Print(*result, context.json);
  context.exit_code = result->exit_code;
  return absl::OkStatus();
}

absl::Status CopyNumber(absl::string_view field, const std::optional<double>& given,
                        double* parameter) {
  if (!given.has_value()) return absl::OkStatus();
  if (std::isnan(*given)) {
    return absl::InvalidArgumentError(absl::StrCat(field, " must be a number, but is nan"));
  }
  *parameter = *given;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Ledger>> OpenLedger(const Context& context) {
  PM_RETURN_IF_ERROR(PreparePrivateFolder(context.state_folder));
  return Ledger::Open(context.state_folder + "/ledger.sqlite");
}

}  // namespace privatemail::client::cli
