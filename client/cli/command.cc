#include "client/cli/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace privatemail::cli {

CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->fallthrough();
  return command;
}

void Answer(const Context& context, const nlohmann::json& json, const std::function<void()>& text) {
  if (context.json) {
    std::cout << json.dump() << std::endl;
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

absl::StatusOr<std::unique_ptr<Ledger>> OpenLedger(const Context& context) {
  std::error_code error;
  std::filesystem::create_directories(context.state_folder, error);
  if (error || ::chmod(context.state_folder.c_str(), 0700) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "--state ", context.state_folder,
        " cannot be made a private folder: ", error ? error.message() : "its mode cannot be set"));
  }
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
  std::fprintf(stderr, "\r%s [%-30s] %3.0f %%  %lld of %lld, %.0f s left ", what_.c_str(),
               filled.c_str(), 100 * share, static_cast<long long>(done),
               static_cast<long long>(total), left);
}

}  // namespace privatemail::cli
