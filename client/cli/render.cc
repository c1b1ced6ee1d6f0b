#include "client/cli/render.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/printable.h"

namespace privatemail::client::cli {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

constexpr size_t kMaxWidth = 100;       // of a table without its last column
constexpr size_t kMaxColumnWidth = 70;  // to which cells are padded
constexpr size_t kMaxLineMembers = 4;   // of an object on one line
constexpr char kIndent[] = "  ";
constexpr char kGap[] = "  ";  // between a name and its value, and between columns

// Members that come before the others, which are in the order of the alphabet.
constexpr absl::string_view kFirst[] = {"name", "collection", "query",   "scheme", "id",
                                        "uuid", "label",      "epsilon", "delta",  "max_bytes"};

std::string NameText(absl::string_view key) {
  // Text says label, as users do; JSON keeps the names that its readers know.
  if (key == "class") return "label name";
  if (key == "class_names") return "label names";
  return absl::StrReplaceAll(Printable(key), {{"_", " "}});
}

bool IsEstimate(const json& value) {
  const auto has_number = [&](const char* key) {
    const auto member = value.find(key);
    return member != value.end() && member->is_number();
  };
  return value.is_object() && value.size() == 3 && has_number("value") && has_number("low") &&
         has_number("high");
}

bool HoldsScalars(const json& value) {
  return std::all_of(value.begin(), value.end(),
                     [](const json& one) { return one.is_primitive(); });
}

// A sum of epsilons or deltas without the last digits of one such as 0.30000000000000004.
std::string SumText(double number) {
  constexpr size_t kManyDigits = 8;
  std::string exact = FormatExact(number), rounded = absl::StrFormat("%.12g", number);
  return rounded.size() + kManyDigits <= exact.size() ? rounded : exact;
}

// The value on one line.
std::string LineText(absl::string_view key, const json& value, bool rounded) {
  if (value.empty() || (value.is_string() && value.get_ref<const std::string&>().empty())) {
    return "-";
  }
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return Printable(value.get_ref<const std::string&>());
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (rounded && key == "seconds") {
      return number < 10 ? absl::StrFormat("%.2g", number) : absl::StrFormat("%.0f", number);
    }
    if (rounded) return absl::StrCat(number);
    return key == "epsilon" || key == "delta" ? SumText(number) : FormatExact(number);
  }
  if (value.is_number_integer() && absl::EndsWith(key, "_at")) {
    return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixSeconds(value.get<int64_t>()),
                            absl::UTCTimeZone());
  }
  if (IsEstimate(value)) {
    return absl::StrFormat("%.2f (%.2f to %.2f)", value["value"].get<double>(),
                           value["low"].get<double>(), value["high"].get<double>());
  }
  if (value.is_object() && value.size() == 2 && value.contains("epsilon") &&
      value.contains("delta")) {
    return absl::StrCat("epsilon ", LineText(key, value["epsilon"], rounded), ", delta ",
                        LineText(key, value["delta"], rounded));
  }
  if (value.is_array() && HoldsScalars(value)) {
    constexpr size_t kMaxShown = 24;
    const size_t shown = rounded ? std::min(value.size(), kMaxShown) : value.size();
    const auto append = [&](std::string* text, const json& one) {
      text->append(LineText(key, one, rounded));
    };
    return absl::StrCat(
        absl::StrJoin(value.begin(), value.begin() + static_cast<ptrdiff_t>(shown), ", ", append),
        shown < value.size() ? absl::StrCat(", ... (", value.size(), " in all)") : "");
  }
  return Printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

// Characters, not bytes: continuation bytes of UTF-8 are not counted.
size_t Width(absl::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

std::string Padded(const std::string& text, size_t width) {
  return absl::StrCat(text, std::string(width - std::min(width, Width(text)), ' '));
}

bool IsTable(const json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const json& row) { return row.is_object(); });
}

// Whether the members of an object stand on the line of its name.
bool FitsLine(const json& value) {
  if (!value.is_object()) return true;
  return IsEstimate(value) || value.empty() ||
         (value.size() <= kMaxLineMembers && HoldsScalars(value) &&
          std::none_of(value.begin(), value.end(),
                       [](const json& one) { return one.is_string(); }));
}

// The members of all rows: kFirst, other scalars, arrays and short objects, tables and long
// objects.
Strings KeysOf(absl::Span<const json* const> rows) {
  std::map<std::string, int64_t> ranks;
  for (const json* row : rows) {
    for (const auto& [key, value] : row->items()) {
      const auto first = std::find(std::begin(kFirst), std::end(kFirst), key);
      const int64_t kind = IsTable(value) || !FitsLine(value) ? 2 : value.is_structured() ? 1 : 0;
      const int64_t rank = 100 * kind + std::distance(std::begin(kFirst), first);
      const auto [known, added] = ranks.try_emplace(key, rank);
      if (!added) known->second = std::max(known->second, rank);
    }
  }
  Strings keys;
  for (const auto& [key, rank] : ranks) keys.push_back(key);
  std::erase(keys, "warnings");
  std::stable_sort(keys.begin(), keys.end(),
                   [&](const auto& a, const auto& b) { return ranks[a] < ranks[b]; });
  return keys;
}

// "epsilon 1, delta 0"
std::string MembersText(const json& object, bool rounded) {
  return absl::StrJoin(KeysOf({&object}), ", ", [&](std::string* text, const std::string& key) {
    absl::StrAppend(text, NameText(key), " ", LineText(key, object[key], rounded));
  });
}

size_t NamesWidth(const Strings& keys) {
  size_t width = 0;
  for (const std::string& key : keys) width = std::max(width, Width(NameText(key)));
  return width;
}

void AppendBlocks(const json& rows, const std::string& indent, std::string* text) {
  for (const json& row : rows) {
    if (&row != &rows.front()) *text += "\n";
    const Strings keys = KeysOf({&row});
    const size_t width = NamesWidth(keys);
    for (const std::string& key : keys) {
      absl::StrAppend(text, indent, Padded(NameText(key), width), kGap,
                      LineText(key, row[key], /*rounded=*/false), "\n");
    }
  }
}

// name: of the table; without columns of this name all are shown.
void AppendTable(const json& rows, const Columns& columns, const std::string& name,
                 const std::string& indent, std::string* text) {
  std::vector<const json*> objects;
  for (const json& row : rows) objects.push_back(&row);
  const auto chosen = columns.find(name);
  const Strings keys = chosen == columns.end() ? KeysOf(objects) : chosen->second;
  std::vector<Strings> lines(1);
  std::vector<size_t> widths;
  for (const std::string& key : keys) {
    widths.push_back(Width(lines[0].emplace_back(NameText(key))));
  }
  for (const json& row : rows) {
    Strings& line = lines.emplace_back();
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto member = row.find(keys[i]);
      line.push_back(member == row.end() ? "-" : LineText(keys[i], *member, /*rounded=*/true));
      widths[i] = std::max(widths[i], std::min(Width(line[i]), kMaxColumnWidth));
    }
  }
  const size_t width = std::accumulate(widths.begin(), widths.end() - 1, 2 * (widths.size() - 1));
  if (chosen == columns.end() && width > kMaxWidth) return AppendBlocks(rows, indent, text);
  for (Strings& line : lines) {
    for (size_t i = 0; i + 1 < line.size(); ++i) line[i] = Padded(line[i], widths[i]);
    absl::StrAppend(text, indent, absl::StrJoin(line, kGap), "\n");
  }
}

void AppendObject(const json& object, const Columns& columns, bool rounded,
                  const std::string& indent, std::string* text) {
  const Strings keys = KeysOf({&object});
  Strings on_line;
  for (const std::string& key : keys) {
    if (!IsTable(object[key]) && FitsLine(object[key])) on_line.push_back(key);
  }
  const size_t width = NamesWidth(on_line);
  for (const std::string& key : keys) {
    const json& value = object[key];
    absl::StrAppend(text, indent, NameText(key));
    if (IsTable(value)) {
      *text += "\n";
      AppendTable(value, columns, key, indent + kIndent, text);
    } else if (!FitsLine(value)) {
      *text += "\n";
      AppendObject(value, columns, rounded, indent + kIndent, text);
    } else {
      absl::StrAppend(text, std::string(width - Width(NameText(key)), ' '), kGap,
                      value.is_object() && !value.empty() && !IsEstimate(value)
                          ? MembersText(value, rounded)
                          : LineText(key, value, rounded),
                      "\n");
    }
  }
}

}  // namespace

std::string Render(const json& json, const Columns& columns, bool rounded) {
  std::string text;
  if (IsTable(json)) {
    AppendTable(json, columns, "", "", &text);
  } else if (json.is_object()) {
    AppendObject(json, columns, rounded, "", &text);
  } else {
    text = (json.empty() ? "none" : LineText("", json, rounded)) + "\n";
  }
  return text;
}

}  // namespace privatemail::client::cli
