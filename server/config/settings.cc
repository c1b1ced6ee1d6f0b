#include "server/config/settings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/embedding/public_parameters.h"
#include "common/rpc/status.h"

namespace privatemail::server {
namespace {

constexpr bool kLive = true;
constexpr bool kRestart = false;
constexpr double kMaxBytes = 1'000'000'000'000'000;

template <auto Member>
SettingSlot Of(DaemonOptions& options) {
  return &(options.*Member);
}

template <auto Member>
SettingSlot Limit(DaemonOptions& options) {
  return &(options.limits.*Member);
}

Setting Choice(Setting setting, std::vector<std::string> choices) {
  setting.choices = std::move(choices);
  return setting;
}

std::vector<Setting> AddressSettings() {
  using Options = DaemonOptions;
  return {
      {"data_dir", Of<&Options::data_directory>, kRestart,
       "Directory of keys, certificates and, with store sqlite, the collections; created if "
       "missing."},
      {"listen", Of<&Options::listen>, kRestart,
       "HOST:PORT of the gRPC service; port 0 picks a free one."},
      {"tls_cert", Of<&Options::tls_certificate>, kRestart,
       "PEM certificate chain; default: a self-signed certificate in the data directory."},
      {"tls_key", Of<&Options::tls_key>, kRestart, "PEM private key of tls_cert."},
      {"client_ca", Of<&Options::client_ca>, kRestart,
       "PEM file of authorities: clients must present a certificate that one of them signed."},
      {"tls_reload_seconds", Of<&Options::tls_reload_seconds>, kLive,
       "Interval at which the files of tls_cert, tls_key and client_ca are checked for changes.", 1,
       86400},
      {"trusted_proxies", Of<&Options::trusted_proxies>, kRestart,
       "IP addresses of proxies, separated by commas, that send the caller's address as header "
       "x-real-ip (deploy/nginx); calls without a valid key are then refused at their header."},
      {"insecure", Of<&Options::insecure>, kRestart,
       "No TLS and no keys: everyone who reaches the port has all rights. Loopback addresses "
       "only."},
      {"reflection", Of<&Options::reflection>, kRestart,
       "Let anyone list services and messages, without a key."},
  };
}

std::vector<Setting> StoreSettings() {
  using Options = DaemonOptions;
  return {
      Choice({"store", Of<&Options::store>, kRestart,
              "Store of the collections: data_dir, or PostgreSQL 15 or later, which several "
              "daemons may share."},
             {"sqlite", "postgres"}),
      {"postgres_file", Of<&Options::postgres_file>, kRestart,
       "File with the libpq connection string of store postgres, readable by you alone."},
      {"postgres_connections", Of<&Options::postgres_connections>, kRestart,
       "Maximum connections to PostgreSQL, besides one that listens.", 1, 1000},
  };
}

std::vector<Setting> OperationSettings() {
  using Options = DaemonOptions;
  return {
      {"http", Of<&Options::http>, kRestart,
       "IP:PORT of /metrics, /livez and /readyz, without TLS or key; empty: none. Names "
       "collections."},
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
      {"auto_build_quiet_seconds", Of<&Options::auto_build_quiet_seconds>, kLive,
       "Time without changes before an automatic rebuild starts; it starts after 12 times as long "
       "in any case.",
       .05, 86400},
      Choice({"log_level", Of<&Options::log_level>, kLive,
              "Minimum severity of messages that are logged to standard error."},
             {"debug", "info", "warning", "error"}),
      Choice({"log_format", Of<&Options::log_format>, kLive, "Format of log lines."},
             {"text", "json"}),
  };
}

std::vector<Setting> LimitSettings() {
  return {
      {"max_message_bytes", Limit<&Limits::max_message_bytes>, kRestart,
       "Maximum size of a request message and of a unary response; clients of this version send up "
       "to 64 MiB. Streams use messages of a few MiB.",
       65536, kMaxMessageBytes},
      {"max_transport_memory", Limit<&Limits::max_transport_memory>, kRestart,
       "Maximum bytes of messages being received, over all callers; calls beyond are reset.",
       1 << 24, int64_t{1} << 40},
      {"max_parsed_memory", Limit<&Limits::max_parsed_memory>, kLive,
       "Maximum memory of the parsed messages of all calls, estimated before parsing; unauthorised "
       "calls are refused first.",
       1 << 24, int64_t{1} << 40},
      {"max_search_memory", Limit<&Limits::max_search_memory>, kLive,
       "Maximum memory of all searches and of their answers until they are delivered, estimated "
       "before each starts; half of it for those of one key.",
       65536, kMaxBytes},
      {"max_collections", Limit<&Limits::max_collections>, kLive, "Maximum number of collections.",
       0, 1e6},
      {"max_items", Limit<&Limits::max_items>, kLive,
       "Maximum items of one collection. An upload that might exceed it is refused from that "
       "message on.",
       0, 1e12},
      {"max_batch_items", Limit<&Limits::max_batch_items>, kLive,
       "Maximum items of one upload message.", 1, 1e9},
      {"max_anchors", Limit<&Limits::max_anchors>, kLive, "Maximum anchors of a new collection.", 1,
       1e9},
      {"max_dims", Limit<&Limits::max_dims>, kLive,
       "Maximum dimensions of a new collection's feature vectors.", 1, 1e9},
      {"max_k", Limit<&Limits::max_k>, kLive, "Maximum neighbours per slot of a search.", 1,
       kMaxNeighbors},
      {"max_request_memory", Limit<&Limits::max_request_memory>, kLive,
       "Maximum memory of one call in bytes, estimated from its sizes before it starts.", 65536,
       kMaxBytes},
      {"max_build_memory", Limit<&Limits::max_build_memory>, kLive,
       "Maximum memory of one build in bytes, estimated before it starts, and of one cell index "
       "that is built; feature vectors that would exceed it are moved to unnamed files in "
       "data_dir. A cell index that exceeds it without them is not built.",
       65536, kMaxBytes},
      {"max_resident_memory", Limit<&Limits::max_resident_memory>, kLive,
       "Approximate maximum memory of all collections in bytes. Collections, "
       "embeddings and cells beyond it are refused; a start serves the others. 0: three "
       "quarters of the machine's or the container's memory.",
       0, kMaxBytes},
      {"max_create_seconds", Limit<&Limits::max_create_seconds>, kLive,
       "Maximum time to prepare a new collection: cells, codebook, check of the anchors.", 1,
       86400},
      {"max_snapshot_bytes", Limit<&Limits::max_snapshot_bytes>, kLive,
       "Maximum bytes of all running snapshots and restores, which use unnamed files in data_dir.",
       65536, kMaxBytes},
      {"connection_idle_seconds", Limit<&Limits::connection_idle_seconds>, kRestart,
       "Idle time after which a connection without calls is closed.", 1, 86400},
      {"max_concurrent", Limit<&Limits::max_concurrent>, kLive,
       "Maximum concurrent calls, counted until their answers are delivered. One of every 8, at "
       "most 4, is reserved for keys with scope admin for all collections.",
       1, 10000},
      {"max_concurrent_per_key", Limit<&Limits::max_concurrent_per_key>, kLive,
       "Maximum concurrent calls of one key, at most three quarters of max_concurrent, and again "
       "as many waiting ones; further calls are refused. 0: half of max_concurrent. Keys with "
       "scope admin for all collections have no share.",
       0, 10000},
      {"max_queued", Limit<&Limits::max_queued>, kLive,
       "Maximum number of waiting calls; further calls are refused.", 0, 10000},
      {"queue_seconds", Limit<&Limits::queue_seconds>, kLive,
       "Maximum time that a call waits before it is refused.", 0, 3600},
      {"stream_idle_seconds", Limit<&Limits::stream_idle_seconds>, kLive,
       "Maximum time to wait for the caller's next upload message, or for the caller to take an "
       "answer or the next part of one; then the call ends.",
       1, 86400},
  };
}

bool IsInRange(const Setting& setting, double value) {
  return value >= setting.min && value <= setting.max;  // false for NaN
}

absl::Status RangeError(const Setting& setting, absl::string_view name, absl::string_view actual) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be ", setting.Range(), ", but is ", actual));
}

}  // namespace

std::string ToText(const SettingValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return absl::StrCat("'", *text, "'");
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value)) return absl::StrCat(*whole);
  return absl::StrCat(std::get<double>(value));
}

std::string Setting::Flag() const {
  return absl::StrCat("--", absl::StrReplaceAll(key, {{"_", "-"}}));
}

std::string Setting::Range() const {
  DaemonOptions any;
  const SettingSlot where = slot(any);
  if (std::holds_alternative<bool*>(where)) return "true or false";
  if (!choices.empty()) return absl::StrCat("one of ", absl::StrJoin(choices, ", "));
  if (std::holds_alternative<std::string*>(where)) return "a text";
  const bool whole = std::holds_alternative<int64_t*>(where);
  return absl::StrFormat("%s between %.16g and %.16g", whole ? "an integer" : "a number", min, max);
}

SettingValue Setting::ValueIn(const DaemonOptions& options) const {
  DaemonOptions copy = options;
  return std::visit([](auto* value) -> SettingValue { return *value; }, slot(copy));
}

const std::vector<Setting>& Settings() {
  static const std::vector<Setting> all = [] {
    std::vector<Setting> settings = AddressSettings();
    for (const auto& more : {StoreSettings(), OperationSettings(), LimitSettings()}) {
      settings.insert(settings.end(), more.begin(), more.end());
    }
    return settings;
  }();
  return all;
}

absl::Status Assign(const Setting& setting, absl::string_view name, const SettingValue& value,
                    DaemonOptions* options) {
  const SettingSlot slot = setting.slot(*options);
  const auto* whole = std::get_if<int64_t>(&value);
  if (auto* const* number = std::get_if<double*>(&slot); number && whole) {
    return Assign(setting, name, static_cast<double>(*whole), options);
  }
  if (slot.index() != value.index()) return RangeError(setting, name, ToText(value));
  if (const auto* text = std::get_if<std::string>(&value)) {
    const std::vector<std::string>& choices = setting.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), *text) == choices.end()) {
      return RangeError(setting, name, ToText(value));
    }
    *std::get<std::string*>(slot) = *text;
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    *std::get<bool*>(slot) = *flag;
  } else if (whole != nullptr) {
    if (!IsInRange(setting, static_cast<double>(*whole)))
      return RangeError(setting, name, ToText(value));
    *std::get<int64_t*>(slot) = *whole;
  } else {
    if (!IsInRange(setting, std::get<double>(value)))
      return RangeError(setting, name, ToText(value));
    *std::get<double*>(slot) = std::get<double>(value);
  }
  return absl::OkStatus();
}

absl::Status AssignText(const Setting& setting, absl::string_view name, absl::string_view text,
                        DaemonOptions* options) {
  const SettingSlot slot = setting.slot(*options);
  SettingValue value = std::string(text);
  bool flag = false;
  int64_t whole = 0;
  double number = 0;
  if (std::holds_alternative<bool*>(slot) && absl::SimpleAtob(text, &flag)) value = flag;
  if (std::holds_alternative<int64_t*>(slot) && absl::SimpleAtoi(text, &whole)) value = whole;
  if (std::holds_alternative<double*>(slot) && absl::SimpleAtod(text, &number)) value = number;
  return Assign(setting, name, value, options);
}

}  // namespace privatemail::server
