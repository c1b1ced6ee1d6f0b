#include "client/cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <set>
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
    const nlohmann::json::json_pointer path("/" + key);
    const nlohmann::json member = result.json.value(path, nlohmann::json());
    if (!member.empty() && member != "") brief[path.back()] = member;
  }
  return brief;
}

// The warnings since the last result, each once.
struct Warnings {
  std::mutex mutex;
  std::set<std::string> texts;
};

Warnings& NewWarnings() {
  static Warnings warnings;
  return warnings;
}

// A result that is a list has no place for them.
nlohmann::json WithWarnings(nlohmann::json json) {
  Warnings& warnings = NewWarnings();
  const std::lock_guard lock(warnings.mutex);
  for (const std::string& text : std::exchange(warnings.texts, {})) {
    if (!json.is_object()) continue;
    nlohmann::json& all = json["warnings"];
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
  }
  return json;
}

constexpr double kSecondsBetweenLines = 30;

double Seconds() { return static_cast<double>(absl::GetCurrentTimeNanos()) * 1e-9; }

}  // namespace

void Print(const Result& result, bool as_json, bool verbose) {
  if (as_json) {
    std::cout << Line(WithWarnings(result.json)) << std::endl;
    return;
  }
  if (!result.head.empty()) std::cout << Printable(result.head) << "\n";
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

void Warn(const std::string& text) {
  std::cerr << "warning: " << Printable(text) << "\n";
  Warnings& warnings = NewWarnings();
  const std::lock_guard lock(warnings.mutex);
  warnings.texts.insert(text);
}

std::string Line(const nlohmann::json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

void ProgressBar::Show(int64_t done, int64_t total) {
  if (total > 0) Draw(static_cast<double>(done) / static_cast<double>(total), done, total);
}

void ProgressBar::Show(std::optional<double> share) { Draw(share.value_or(0), 0, 0); }

void ProgressBar::End() {
  if (shown_) std::fputc('\n', stderr);
  shown_ = false;
}

void ProgressBar::Draw(double share, int64_t done, int64_t total) {
  share = share > 0 ? std::min(share, 1.) : 0;  // a server may send anything
  const double now = Seconds();
  if (!started_.has_value()) {
    started_ = last_ = now;
    first_ = share;
  }
  const double elapsed = now - *started_;
  const double pace = elapsed > 0 ? (share - first_) / elapsed : 0;  // of the whole, a second
  std::string text = total > 0 ? absl::StrFormat("%d of %d, ", done, total) : "";
  if (pace > 0 && total > 0) {
    absl::StrAppendFormat(&text, "%.0f/s, ", pace * static_cast<double>(total));
  }
  absl::StrAppendFormat(&text, "%.0f s %s", pace > 0 ? (1 - share) / pace : elapsed,
                        pace > 0 ? "left" : "so far");
  if (::isatty(STDERR_FILENO) == 0) {
    if (now - last_ < kSecondsBetweenLines) return;
    std::fprintf(stderr, "%s: %s\n", label_.c_str(), text.c_str());
  } else {
    if (elapsed < 2 || (now - last_ <= .1 && share < 1)) return;
    const std::string filled(static_cast<size_t>(30 * share), '#');
    std::fprintf(stderr, "\r%s [%-30s] %3.0f %%  %s\x1b[K", label_.c_str(), filled.c_str(),
                 100 * share, text.c_str());
    shown_ = true;
  }
  last_ = now;
}

}  // namespace privatemail::client::cli
