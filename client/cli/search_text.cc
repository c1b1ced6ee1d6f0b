#include "client/cli/search_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "client/cli/render.h"
#include "client/search/charge_text.h"
#include "common/base/printable.h"

namespace privatemail::client::cli {
namespace {

using nlohmann::json;

constexpr double kKilobyte = 1000;

double Kilobytes(const json& bytes, std::initializer_list<const char*> parts) {
  double sum = 0;
  for (const char* part : parts) sum += bytes.value(part, 0.0);
  return sum / kKilobyte;
}

std::string BytesText(const json& bytes) {
  return absl::StrFormat("%.4g kB up, %.4g kB down", Kilobytes(bytes, {"up", "keys"}),
                         Kilobytes(bytes, {"down", "table", "payloads"}));
}

// The labels that a search by joint chose by the anchors.
std::string GuessText(const json& search) {
  if (!search.value("label_guessed", false)) return "";
  const auto append = [](std::string* text, const json& one) {
    absl::StrAppend(text, Printable(one["class"].get<std::string>()), " (",
                    FormatShare(one["posterior"].get<double>()), ")");
  };
  return absl::StrCat("likely label: ", absl::StrJoin(search["classes"], ", ", append), "\n");
}

std::string GuaranteeText(const json& guarantee) {
  const double epsilon = guarantee["epsilon"].get<double>();
  const double delta = guarantee["delta"].get<double>();
  std::string text = absl::StrCat("epsilon ", epsilon);
  if (delta > 0) absl::StrAppend(&text, " delta ", delta);
  if (!guarantee["proven"].get<bool>()) return text + ", as published, without a proof";
  if (guarantee.contains("radius")) text += ", of the features within the radius, not the label";
  return absl::StrCat(text, ", proven", AllowanceText(epsilon));
}

}  // namespace

std::string MatchesText(const json& search, Metric metric) {
  json matches = search["matches"];
  if (matches.empty()) return GuessText(search) + "no item matches\n";
  const bool by_cells = search["scheme"] == NameOf(Scheme::kCells);
  for (json& match : matches) {
    if (const json name = match.value("class", json()); !name.is_null()) match["label"] = name;
    if (metric != Metric::kCosine) continue;
    if (by_cells) {  // distances are of vectors of length 1
      match["similarity"] = 1 - match["squared_distance"].get<double>() / 2;
    }
    if (match.contains("similarity")) {
      match["similarity"] = absl::StrFormat("%.4f", match["similarity"].get<double>());
    }
  }
  std::vector<std::string> columns = {"id"};
  const auto has = [&](const char* key) {
    return std::any_of(matches.begin(), matches.end(), [&](const json& match) {
      return match.contains(key) && !match[key].is_null();
    });
  };
  if (has("label")) columns.push_back("label");
  if (has("similarity") && metric != Metric::kEuclidean) {
    columns.push_back("similarity");
  } else if (has("similarity") || by_cells) {
    columns.push_back("squared_distance");
  }
  if (has("payload")) columns.push_back("payload");
  return GuessText(search) + Render(matches, {{"", columns}});
}

std::string CostText(const std::vector<json>& searches) {
  const json& last = searches.back();
  const std::string scheme = last["scheme"].get<std::string>();
  json bytes = last["bytes"];
  if (scheme == NameOf(Scheme::kEncrypted)) {
    // All queries of an encrypted search share its messages.
    return absl::StrCat("encrypted: the server learns nothing of the query (",
                        last["guarantee"]["bits"].get<int64_t>(), "-bit ring-LWE); no budget; ",
                        BytesText(bytes), "\n");
  }
  for (const json& one : absl::MakeSpan(searches).first(searches.size() - 1)) {
    for (const char* part : {"up", "down"}) {
      bytes[part] = bytes[part].get<int64_t>() + one["bytes"][part].get<int64_t>();
    }
  }
  if (!last.contains("guarantee")) {
    return absl::StrCat(scheme, ": sent again, so nothing was spent; ", BytesText(bytes), "\n");
  }
  std::string text = absl::StrCat(
      scheme, ": ", searches.size() > 1 ? absl::StrCat(searches.size(), " queries, each ") : "",
      GuaranteeText(last["guarantee"]));
  if (last.contains("own_cell_probability")) {
    absl::StrAppend(&text, "; a query's own cell was asked for with probability ",
                    FormatShare(last["own_cell_probability"].get<double>()));
  }
  if (last.contains("ledger")) {
    const json& left = last["ledger"]["left"];
    absl::StrAppendFormat(&text, "; left of the collection's budget: epsilon %.6g",
                          left["epsilon"].get<double>());
    if (left["delta"] > 0) {
      absl::StrAppendFormat(&text, " delta %.6g", left["delta"].get<double>());
    }
  }
  return absl::StrCat(text, "; ", BytesText(bytes), "\n");
}

std::string AllowanceText(double epsilon) {
  if (!(epsilon > kLargeEpsilon)) return "";
  return absl::StrCat(", which ", OddsText(epsilon));
}

}  // namespace privatemail::client::cli
