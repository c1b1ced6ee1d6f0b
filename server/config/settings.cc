#include "server/config/settings.h"

#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/suggestion.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::server {
namespace {

constexpr bool kLive = true;
constexpr bool kRestart = false;
constexpr double kMaxBytes = 1'000'000'000'000'000;

template <auto Member>
Setting::Field Of(DaemonOptions& options) {
  return &(options.*Member);
}

template <auto Member>
Setting::Field OfLimits(DaemonOptions& options) {
  return &(options.limits.*Member);
}

bool Read(absl::string_view text, std::string* value) {
  *value = std::string(text);
  return true;
}
bool Read(absl::string_view text, bool* value) { return absl::SimpleAtob(text, value); }
bool Read(absl::string_view text, int64_t* value) { return absl::SimpleAtoi(text, value); }
bool Read(absl::string_view text, double* value) { return absl::SimpleAtod(text, value); }

// An integer is also a floating-point number.
template <typename Value>
bool Read(const toml::node& node, Value* value) {
  if (!(std::is_same_v<Value, double> ? node.is_number() : node.is<Value>())) return false;
  *value = *node.value<Value>();
  if constexpr (std::is_same_v<Value, double>) *value += 0;  // makes -0 print as 0
  return true;
}

bool IsAllowed(const Setting& setting, const std::string& value) {
  const std::vector<std::string>& all = setting.choices;
  return all.empty() || std::find(all.begin(), all.end(), value) != all.end();
}
bool IsAllowed(const Setting& /*setting*/, bool /*value*/) { return true; }
template <typename Number>
bool IsAllowed(const Setting& setting, Number value) {  // false for NaN
  return static_cast<double>(value) >= setting.min && static_cast<double>(value) <= setting.max;
}

// `source`: of an overload of Read. `shown`: the source as messages show it.
template <typename Source>
absl::Status AssignFrom(const Source& source, const Setting& setting, absl::string_view name,
                        absl::string_view shown, DaemonOptions* options) {
  const auto assign = [&](auto* field) -> absl::Status {
    auto value = *field;
    if (!Read(source, &value) || !IsAllowed(setting, value)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " must be ", setting.Range(), ", but is ", shown));
    }
    *field = std::move(value);
    return absl::OkStatus();
  };
  return std::visit(assign, setting.field(*options));
}

template <typename Printable>
std::string ToToml(const Printable& value) {
  std::ostringstream out;
  out << toml::toml_formatter(value, toml::format_flags::none);
  return out.str();
}

absl::Status AssignEntry(absl::string_view key, const toml::node& node, DaemonOptions* options) {
  const std::vector<Setting>& all = Settings();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Setting& one) { return key == one.key; });
  if (found == all.end()) {
    std::vector<std::string> keys;
    for (const Setting& one : all) keys.emplace_back(one.key);
    return absl::InvalidArgumentError(
        absl::StrCat("'", key, "' is no setting", Suggestion(key, keys),
                     " (privatemaild --check-config prints all there are)"));
  }
  const auto* const text = node.as_string();
  return AssignFrom(node, *found, key,
                    text == nullptr ? ToToml(node) : absl::StrCat("'", **text, "'"), options);
}

// toml++ recurses without limit for dotted keys, so that a long key would overflow the stack.
absl::Status CheckLines(absl::string_view text, absl::string_view file) {
  constexpr size_t kMaxLineBytes = 4096;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].size() <= kMaxLineBytes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(file, " line ", i + 1, ": must have at most ", kMaxLineBytes, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<Setting>& Settings() {
  using Options = DaemonOptions;
  static const std::vector<Setting> all = {
      {"data_dir", Of<&Options::data_directory>, kRestart,
       "Directory of keys, certificates and, without postgres_file, the collections; created if "
       "missing."},
      {"listen", Of<&Options::listen>, kRestart,
       "HOST:PORT of the gRPC service; port 0 picks a free one."},
      {"tls_cert", Of<&Options::tls_certificate>, kRestart,
       "PEM certificate chain; default: a self-signed certificate in the data directory."},
      {"tls_key", Of<&Options::tls_key>, kRestart, "PEM private key of tls_cert."},
      {"client_ca", Of<&Options::client_ca>, kRestart,
       "PEM file of authorities: clients must present a certificate that one of them signed."},
      {"trusted_proxies", Of<&Options::trusted_proxies>, kRestart,
       "IP addresses of proxies, separated by commas, that send the caller's address as header "
       "x-real-ip (deploy/nginx); calls without a valid key are then refused at their header."},
      {"insecure", Of<&Options::insecure>, kRestart,
       "No TLS and no keys: everyone who reaches the port has all rights. Loopback addresses "
       "only."},
      {"postgres_file", Of<&Options::postgres_file>, kRestart,
       "File with a libpq connection string, readable by you alone: the collections are in "
       "PostgreSQL 15 or later, which several daemons may share; empty: SQLite in data_dir."},
      {"shard", Of<&Options::shard>, kRestart,
       "NUMBER/COUNT, such as 2/8: this daemon has that part of all items of the PostgreSQL that "
       "all share. It answers fronts alone, which need a certificate of client_ca and no key; "
       "empty: all items."},
      {"shards", Of<&Options::shards>, kRestart,
       "HOST:PORT of every shard in order, separated by commas, replicas of one by |: this daemon "
       "is a front, which holds no items and merges the answers of all shards. It shows them "
       "tls_cert and trusts what tls_cert's file holds; empty: no front."},
      {"http", Of<&Options::http>, kRestart,
       "IP:PORT of /metrics, /livez and /readyz, without TLS or key; empty: none. Names "
       "collections."},
      {"http_listen", Of<&Options::http_listen>, kRestart,
       "IP:PORT of the RPCs over HTTP (docs/api.md), without TLS; empty: none. Beyond loopback "
       "only "
       "with trusted_proxies, and then only they may connect."},
      {"allowed_origins", Of<&Options::allowed_origins>, kRestart,
       "Origins of web pages, separated by commas, that may call over HTTP, such as "
       "https://example.org; pages of all others are refused."},
      {"audit_log", Of<&Options::audit_log>, kRestart,
       "File of one JSON line a call, start, stop and reload; empty: audit.jsonl in the data "
       "directory; off: none. SIGHUP reopens it."},
      {"audit_max_bytes", Of<&Options::audit_max_bytes>, kLive,
       "Size at which the audit log is renamed to NAME.1, replacing the previous one, and started "
       "anew; 0: never, for external rotation (deploy/logrotate).",
       0, kMaxBytes},
      {"drain_seconds", Of<&Options::drain_seconds>, kLive,
       "Time that running calls have to end after SIGTERM before they are cancelled.", 0, 3600},
      {"auto_build_share", Of<&Options::auto_build_share>, kLive,
       "Fraction of changed items, relative to embedded ones, at which a built collection is "
       "rebuilt automatically; 0: never, which all but one of the daemons of one PostgreSQL need.",
       0, 1},
      {.key = "log_level",
       .field = Of<&Options::log_level>,
       .live = kLive,
       .help = "Minimum severity of messages that are logged to standard error.",
       .choices = {"debug", "info", "warning", "error"}},
      {.key = "log_format",
       .field = Of<&Options::log_format>,
       .live = kLive,
       .help = "Format of log lines.",
       .choices = {"text", "json"}},
      {"memory", Of<&Options::memory>, kLive,
       "Bytes of memory for collections (a half), builds (a quarter), searches (an eighth), parsed "
       "messages, messages on their way, and one call (a sixteenth each); 0: those of the machine "
       "or of the container. A restart changes the share of messages on their way.",
       0, kMaxBytes},
      {"max_collections", OfLimits<&Limits::max_collections>, kLive,
       "Maximum number of collections.", 0, 1e6},
      {"max_items", OfLimits<&Limits::max_items>, kLive,
       "Maximum items of one collection. An upload that might exceed it is refused from that "
       "message on.",
       0, 1e12},
      {"max_k", OfLimits<&Limits::max_k>, kLive, "Maximum neighbours per slot of a search.", 1,
       kMaxNeighbors},
      {"max_snapshot_bytes", OfLimits<&Limits::max_snapshot_bytes>, kLive,
       "Maximum bytes of all running snapshots and restores, which use unnamed files in data_dir.",
       65536, kMaxBytes},
      {"max_concurrent", OfLimits<&Limits::max_concurrent>, kLive,
       "Maximum concurrent calls, counted until their answers are delivered. One of every 8, at "
       "most 4, is reserved for keys with scope admin for all collections; another key has at most "
       "half of them, and as many waiting ones.",
       1, 10000},
  };
  return all;
}

std::string Setting::Flag() const {
  return absl::StrCat("--", absl::StrReplaceAll(key, {{"_", "-"}}));
}

bool Setting::IsFlag() const {
  DaemonOptions any;
  return std::holds_alternative<bool*>(field(any));
}

std::string Setting::Range() const {
  DaemonOptions any;
  const Field where = field(any);
  if (IsFlag()) return "true or false";
  if (!choices.empty()) return absl::StrCat("one of ", absl::StrJoin(choices, ", "));
  if (std::holds_alternative<std::string*>(where)) return "a text";
  const bool whole = std::holds_alternative<int64_t*>(where);
  return absl::StrFormat("%s between %.16g and %.16g", whole ? "an integer" : "a number", min, max);
}

std::string Setting::ValueIn(const DaemonOptions& options) const {
  DaemonOptions copy = options;
  const Field where = field(copy);
  if (const auto* const* text = std::get_if<std::string*>(&where)) return **text;
  if (const auto* const* flag = std::get_if<bool*>(&where)) return **flag ? "true" : "false";
  if (const auto* const* whole = std::get_if<int64_t*>(&where)) return absl::StrCat(**whole);
  return FormatExact(*std::get<double*>(where));
}

absl::Status Assign(const Setting& setting, absl::string_view name, absl::string_view text,
                    DaemonOptions* options) {
  return AssignFrom(text, setting, name, absl::StrCat("'", text, "'"), options);
}

absl::StatusOr<Problems> ParseConfig(absl::string_view text, absl::string_view file,
                                     DaemonOptions* options) {
  PM_RETURN_IF_ERROR(CheckLines(text, file));
  const auto problem = [&](const toml::source_region& source, absl::string_view message) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " line ", source.begin.line, ": ", message));
  };
  std::multimap<toml::source_index, absl::Status> by_line;  // a toml::table iterates by name
  try {
    for (const auto& [key, node] : toml::parse(std::string_view(text.data(), text.size()))) {
      const absl::Status assigned = AssignEntry({key.data(), key.length()}, node, options);
      if (assigned.ok()) continue;
      by_line.emplace(key.source().begin.line, problem(key.source(), assigned.message()));
    }
  } catch (const toml::parse_error& error) {
    const std::string_view reason = error.description();
    return problem(error.source(), absl::StrCat("this is no TOML: ",
                                                absl::string_view(reason.data(), reason.size())));
  }
  Problems problems;
  for (const auto& [line, wrong] : by_line) problems.Add(wrong);
  return problems;
}

std::string PrintConfig(const DaemonOptions& options) {
  std::string text =
      "# Configuration of privatemaild: privatemaild --config FILE. A flag of the same name "
      "(max_k:\n"
      "# --max-k) overrides. SIGHUP reads this file again.\n";
  for (const Setting& setting : Settings()) {
    DaemonOptions any;
    const std::string range = setting.Range();
    const std::string value = setting.ValueIn(options);
    const bool is_text = std::holds_alternative<std::string*>(setting.field(any));
    absl::StrAppend(&text, "\n# ", setting.help, "\n# ",
                    range == "a text" ? "" : absl::StrCat("Must be ", range, ". "),
                    setting.live ? "Changed by SIGHUP" : "Changed by a restart", ".\n", setting.key,
                    " = ", is_text ? ToToml(toml::value<std::string>(value)) : value, "\n");
  }
  return text;
}

}  // namespace privatemail::server
