#include "client/cli/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {

CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->fallthrough();
  command->footer(
      "Options that every command takes (--server, --trust, --state, --json, ...) are listed by "
      "privatemail --help.");
  return command;
}

std::string Line(const nlohmann::json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

void Answer(const Context& context, const nlohmann::json& json, const std::function<void()>& text) {
  if (context.json) {
    std::cout << Line(json) << std::endl;
  } else {
    text();
    std::cout.flush();
  }
}

nlohmann::json ToJson(const Guarantee& guarantee) {
  nlohmann::json json = {{"epsilon", guarantee.epsilon},
                         {"delta", guarantee.delta},
                         {"neighbours", guarantee.neighbours},
                         {"proven", guarantee.proven},
                         {"source", guarantee.source}};
  if (guarantee.radius.has_value()) json["radius"] = *guarantee.radius;
  if (!guarantee.metric.empty()) json["metric"] = guarantee.metric;
  if (guarantee.gaussian_mu.has_value()) json["gaussian_mu"] = *guarantee.gaussian_mu;
  return json;
}

nlohmann::json ToJson(const Budget& budget) {
  return {{"epsilon", budget.epsilon}, {"delta", budget.delta}};
}

absl::Status TakeNumber(absl::string_view field, const std::optional<double>& given,
                        double* parameter) {
  if (!given.has_value()) return absl::OkStatus();
  if (std::isnan(*given)) {
    return absl::InvalidArgumentError(absl::StrCat(field, " must be a number, but is nan"));
  }
  *parameter = *given;
  return absl::OkStatus();
}

void Warn(const std::string& text) { std::cerr << "warning: " << Printable(text) << "\n"; }

void TellError(const Context& context, const absl::Status& status) {
  const std::string code = absl::StatusCodeToString(status.code());
  const std::string message(status.message());
  if (context.json) {
    std::cout << Line({{"error", {{"code", code}, {"message", message}}}}) << "\n";
  }
  std::cerr << "error: " << Printable(message) << " (" << code << ")\n";
}

std::string Counted(uint64_t count, const std::string& singular) {
  return absl::StrCat(count, " ", singular, count == 1 ? "" : "s");
}

std::string LeftOf(const LedgerEntry& entry) {
  const Budget granted = entry.granted.value_or(Budget{});
  const auto rounded = [](double left, double whole) { return left <= 1e-12 * whole ? 0 : left; };
  return absl::StrCat("epsilon ", rounded(entry.left().epsilon, granted.epsilon), " delta ",
                      rounded(entry.left().delta, granted.delta));
}

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

absl::StatusOr<std::unique_ptr<Ledger>> OpenLedger(const Context& context) {
  PM_RETURN_IF_ERROR(PreparePrivateFolder(context.state_folder));
  return Ledger::Open(context.state_folder + "/ledger.sqlite");
}

namespace {
double Seconds() { return static_cast<double>(absl::GetCurrentTimeNanos()) * 1e-9; }
}  // namespace

ProgressBar::ProgressBar(std::string what) : what_(std::move(what)), started_(Seconds()) {}

ProgressBar::~ProgressBar() {
  if (shown_) std::fputc('\n', stderr);
}

void ProgressBar::Show(int64_t done, int64_t total) {
  const double now = Seconds();
  const bool due = now - last_ > .1 || done == total;
  if (now - started_ < 2 || !due || total < 1 || ::isatty(STDERR_FILENO) == 0) return;
  last_ = now;
  shown_ = true;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const std::string filled(static_cast<size_t>(30 * share), '#');
  const double left = share > 0 ? (now - started_) * (1 - share) / share : 0;
  std::fprintf(stderr, "\r%s [%-30s] %3.0f %%  %lld of %lld, %.0f/s, %.0f s left ", what_.c_str(),
               filled.c_str(), 100 * share, static_cast<long long>(done),
               static_cast<long long>(total), static_cast<double>(done) / (now - started_), left);
}

}  // namespace privatemail::client::cli
