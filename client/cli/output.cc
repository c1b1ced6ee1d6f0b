#include "client/cli/output.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/printable.h"

namespace privatemail::client::cli {
namespace {

// Newlines are the command's own; a server's were escaped by the command.
std::string PrintableLines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) line = Printable(line);
  return absl::StrJoin(lines, "\n");
}

// The members of `brief` that say something.
nlohmann::json BriefOf(const Result& result) {
  nlohmann::json brief = nlohmann::json::object();
  for (const std::string& key : result.brief) {
    const auto member = result.json.find(key);
    if (member != result.json.end() && !member->empty() && *member != "") brief[key] = *member;
  }
  return brief;
}

constexpr double kSecondsBetweenLines = 30;

double Seconds() { return static_cast<double>(absl::GetCurrentTimeNanos()) * 1e-9; }

}  // namespace

void Print(const Result& result, bool as_json, bool verbose) {
  if (as_json) {
    std::cout << Line(result.json) << std::endl;
    return;
  }
  if (verbose || (result.text.empty() && result.brief.empty())) {
    std::cout << Render(result.json, result.columns);
  } else if (result.text.empty()) {
    std::cout << Render(BriefOf(result), result.columns, /*rounded=*/true);
  } else {
    std::cout << PrintableLines(result.text);
  }
  if (!result.hint.empty()) std::cout << Printable(result.hint) << "\n";
  std::cout << std::flush;
}

void PrintError(const absl::Status& status, bool as_json) {
  const std::string code = absl::StatusCodeToString(status.code());
  const std::string message(status.message());
  if (as_json) {
    nlohmann::json error = {{"code", code}, {"message", message}};
    if (const auto problem = FieldProblemOf(status); problem.has_value()) {
      error["field"] = problem->field;
      error["expected"] = problem->expected;
      error["actual"] = problem->actual;
    }
    std::cout << Line({{"error", std::move(error)}}) << "\n";
  }
  std::cerr << "error: " << Printable(message) << " (" << code << ")\n";
}

void Warn(const std::string& text) { std::cerr << "warning: " << Printable(text) << "\n"; }

std::string Line(const nlohmann::json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)), started_(Seconds()), last_(started_) {}

ProgressBar::~ProgressBar() {
  if (shown_) std::fputc('\n', stderr);
}

void ProgressBar::Show(int64_t done, int64_t total) {
  const double now = Seconds();
  if (total < 1) return;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const std::string filled(static_cast<size_t>(30 * share), '#');
  const double left = share > 0 ? (now - started_) * (1 - share) / share : 0;
  const std::string text = absl::StrFormat("%d of %d, %.0f/s, %.0f s left", done, total,
                                           static_cast<double>(done) / (now - started_), left);
  if (::isatty(STDERR_FILENO) == 0) {
    if (now - last_ < kSecondsBetweenLines) return;
    std::fprintf(stderr, "%s: %s\n", label_.c_str(), text.c_str());
  } else {
    if (now - started_ < 2 || (now - last_ <= .1 && done != total)) return;
    std::fprintf(stderr, "\r%s [%-30s] %3.0f %%  %s ", label_.c_str(), filled.c_str(), 100 * share,
                 text.c_str());
    shown_ = true;
  }
  last_ = now;
}

}  // namespace privatemail::client::cli
