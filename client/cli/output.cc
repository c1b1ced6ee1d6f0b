#include "client/cli/output.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/printable.h"
#include "common/items/item_label.h"

namespace privatemail::client::cli {
namespace {

// Newlines are the command's own; a server's were escaped by the command.
std::string PrintableLines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) line = Printable(line);
  return absl::StrJoin(lines, "\n");
}

constexpr double kSecondsBetweenLines = 30;

double Seconds() { return static_cast<double>(absl::GetCurrentTimeNanos()) * 1e-9; }

}  // namespace

void RowList::Add(nlohmann::json json, absl::string_view text) {
  json_.push_back(std::move(json));
  absl::StrAppend(&text_, text);
}

void Print(const Result& result, bool as_json) {
  if (as_json) {
    std::cout << Line(result.json) << std::endl;
  } else {
    std::cout << PrintableLines(result.text) << std::flush;
  }
}

void PrintError(const absl::Status& status, bool as_json) {
  const std::string code = absl::StatusCodeToString(status.code());
  const std::string message(status.message());
  if (as_json) std::cout << Line({{"error", {{"code", code}, {"message", message}}}}) << "\n";
  std::cerr << "error: " << Printable(message) << " (" << code << ")\n";
}

void Warn(const std::string& text) { std::cerr << "warning: " << Printable(text) << "\n"; }

std::string Line(const nlohmann::json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

std::function<void(const std::string&)> RecordAndWarn(std::vector<std::string>* warnings) {
  return [warnings](const std::string& text) {
    warnings->push_back(text);
    Warn(text);
  };
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

nlohmann::json ToJson(const EncryptedGuarantee& guarantee) {
  return {{"kind", guarantee.kind},
          {"bits", guarantee.bits},
          {"assumption", guarantee.assumption},
          {"source", guarantee.source}};
}

nlohmann::json ToJson(const Budget& budget) {
  return {{"epsilon", budget.epsilon}, {"delta", budget.delta}};
}

nlohmann::json ToJson(const ExpectedAlignment& alignment) {
  return {{"expected_recall", alignment.recall},
          {"expected_relative_residual", alignment.relative_residual}};
}

std::string AlignmentText(const ExpectedAlignment& alignment) {
  return absl::StrFormat("without noise: expected recall %.3g, residual %.3g", alignment.recall,
                         alignment.relative_residual);
}

absl::Status OrAccept(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  return {status.code(),
          absl::StrCat(status.message(),
                       "; nothing was charged; to query all the same: ", kAcceptMisalignmentFlag)};
}

nlohmann::json LabelJson(int32_t label) {
  return label == kNoLabel ? nlohmann::json() : nlohmann::json(label);
}

nlohmann::json ToJson(const std::vector<QueryMatch>& matches) {
  nlohmann::json json = nlohmann::json::array();
  for (const QueryMatch& match : matches) {
    // The payload was checked: it is JSON or empty.
    json.push_back({{"id", match.id},
                    {"label", LabelJson(match.label)},
                    {"distance", match.squared_distance},  // older name, for existing scripts
                    {"squared_distance", match.squared_distance},
                    {"payload", match.payload.empty() ? nlohmann::json()
                                                      : nlohmann::json::parse(match.payload)}});
    if (match.similarity.has_value()) json.back()["similarity"] = *match.similarity;
  }
  return json;
}

nlohmann::json ToJson(const std::optional<RadiusStats>& meaning) {
  if (!meaning.has_value()) return nullptr;
  return {{"radius", meaning->radius},
          {"pairs_of_one_class", meaning->same_class_pairs},
          {"closer_of_one_class", meaning->same_class_pairs_within},
          {"pairs_of_two_classes", meaning->cross_class_pairs},
          {"closer_of_two_classes", meaning->cross_class_pairs_within}};
}

nlohmann::json LedgerJson(const LedgerEntry& entry) {
  return {{"spent", ToJson(entry.spent())},
          {"left", ToJson(entry.left())},
          {"charged_ahead", entry.charged_ahead}};
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
