#include "server/config/settings.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/numerics/neighbors.h"
#include "common/rpc/status.h"
#include "common/wire/codec.h"

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

std::vector<Setting> AddressSettings() {
  using Options = DaemonOptions;
  return {
      {"data_dir", Of<&Options::data_directory>, kRestart,
       "Directory of keys, certificates and, with store sqlite, the collections; made if it is not "
       "there."},
      {"listen", Of<&Options::listen>, kRestart,
       "HOST:PORT of the gRPC service; port 0 picks a free one."},
      {"tls_cert", Of<&Options::tls_certificate>, kRestart,
       "PEM certificate chain; without it a self-signed one is kept under the data directory."},
      {"tls_key", Of<&Options::tls_key>, kRestart, "PEM private key of tls_cert."},
      {"client_ca", Of<&Options::client_ca>, kRestart,
       "PEM authorities: demand a client certificate that one of them signed."},
      {"tls_reload_seconds", Of<&Options::tls_reload_seconds>, kLive,
       "How often the files of tls_cert, tls_key and client_ca are looked at for changes.", 1,
       86400},
      {"insecure", Of<&Options::insecure>, kRestart,
       "Neither TLS nor keys: whoever reaches the port may do everything. Loopback addresses "
       "only."},
      {"reflection", Of<&Options::reflection>, kRestart,
       "Let anyone list services and messages, without a key."},
  };
}

std::vector<Setting> StoreSettings() {
  using Options = DaemonOptions;
  return {
      {"store",
       Of<&Options::store>,
       kRestart,
       "Where collections are kept: in data_dir, or in PostgreSQL 15 or later, which several "
       "daemons may share.",
       0,
       0,
       {"sqlite", "postgres"}},
      {"postgres_file", Of<&Options::postgres_file>, kRestart,
       "File with the libpq connection string of store postgres, readable by you alone."},
      {"postgres_connections", Of<&Options::postgres_connections>, kRestart,
       "Connections to PostgreSQL at most, beside one that listens.", 1, 1000},
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
       "Size from which the audit log is renamed to NAME.1, over the one before, and begun anew; "
       "0: never, for whoever rotates it (deploy/logrotate).",
       0, kMaxBytes},
      {"drain_seconds", Of<&Options::drain_seconds>, kLive,
       "After SIGTERM calls under way have this long to end before they are cancelled.", 0, 3600},
      {"auto_build_share", Of<&Options::auto_build_share>, kLive,
       "Changed items, as a share of those embedded, from which a collection that was built before "
       "is built again by itself; 0: never, as for all but one of the daemons on one PostgreSQL.",
       0, 1},
      {"auto_build_quiet_seconds", Of<&Options::auto_build_quiet_seconds>, kLive,
       "It is built when nothing of it has changed for so long, or after 12 times as long.", .05,
       86400},
      {"log_level",
       Of<&Options::log_level>,
       kLive,
       "Least severity that is logged to standard error.",
       0,
       0,
       {"debug", "info", "warning", "error"}},
      {"log_format",
       Of<&Options::log_format>,
       kLive,
       "Format of the log's lines.",
       0,
       0,
       {"text", "json"}},
  };
}

std::vector<Setting> IndexSettings() {
  using Options = DaemonOptions;
  return {
      {"index",
       Of<&Options::index>,
       kLive,
       "How embeddings of more than 4 columns and 10000 items or more are searched: all of one, or "
       "the lists of an inverted file that are nearest, of one that is built or loaded from then "
       "on.",
       0,
       0,
       {"exact", "ivf"}},
      {"index_recall", Of<&Options::index_recall>, kLive,
       "Share of the 8 true nearest that index ivf must find, measured when it is made; where it "
       "would not, it is exact.",
       .5, 1},
  };
}

std::vector<Setting> LimitSettings() {
  return {
      {"max_message_bytes", Limit<&Limits::max_message_bytes>, kRestart,
       "Largest message that is accepted, or is a whole answer; clients of this version send up to "
       "64 MiB. Streams come in messages of some MiB.",
       65536, kMaxMessageBytes},
      {"max_transport_memory", Limit<&Limits::max_transport_memory>, kRestart,
       "Bytes of messages that are being received, of all callers together; calls that would take "
       "more are reset.",
       1 << 24, int64_t{1} << 40},
      {"max_parsed_memory", Limit<&Limits::max_parsed_memory>, kLive,
       "Bytes that the messages of all calls may take together once they are parsed, as estimated "
       "before; what a key may not do is refused first.",
       1 << 24, int64_t{1} << 40},
      {"max_collections", Limit<&Limits::max_collections>, kLive, "Collections in all.", 0, 1e6},
      {"max_items", Limit<&Limits::max_items>, kLive,
       "Items of one collection. An upload that might exceed it is refused from that message on.",
       0, 1e12},
      {"max_batch_items", Limit<&Limits::max_batch_items>, kLive,
       "Items of one message of an upload.", 1, 1e9},
      {"max_anchors", Limit<&Limits::max_anchors>, kLive, "Anchors of a new collection.", 1, 1e9},
      {"max_dims", Limit<&Limits::max_dims>, kLive,
       "Dimensions of a new collection's feature vectors.", 1, 1e9},
      {"max_k", Limit<&Limits::max_k>, kLive, "Nearest items that a search may want of each slot.",
       1, kMaxNeighbors},
      {"max_request_memory", Limit<&Limits::max_request_memory>, kLive,
       "Bytes that one call may work with, as estimated from its sizes before it starts.", 65536,
       kMaxBytes},
      {"max_build_memory", Limit<&Limits::max_build_memory>, kLive,
       "The same for building an embedding. Where feature vectors would take it beyond, they are "
       "in a file without a name in data_dir meanwhile. Also for making what answers for cells, "
       "which is not made beyond it.",
       65536, kMaxBytes},
      {"max_snapshot_bytes", Limit<&Limits::max_snapshot_bytes>, kLive,
       "Bytes of all snapshots that are being taken or restored; they are in files without names "
       "in data_dir meanwhile.",
       65536, kMaxBytes},
      {"max_connections", Limit<&Limits::max_connections>, kRestart,
       "Connections at once, about; those beyond are closed. The process needs as many open files "
       "and 256 more.",
       1, 1'000'000},
      {"connection_idle_seconds", Limit<&Limits::connection_idle_seconds>, kRestart,
       "Time without a call after which a connection is closed.", 1, 86400},
      {"max_concurrent", Limit<&Limits::max_concurrent>, kLive,
       "Calls that are worked on at once, until their answers are taken. Of every 8, up to 4, one "
       "is kept for keys with the scope admin for all collections.",
       1, 10000},
      {"max_concurrent_per_key", Limit<&Limits::max_concurrent_per_key>, kLive,
       "Calls of one key that are worked on at once, and that wait; calls beyond are refused at "
       "once.",
       1, 10000},
      {"max_queued", Limit<&Limits::max_queued>, kLive,
       "Calls that may wait for one of these to end; calls beyond are refused at once.", 0, 10000},
      {"queue_seconds", Limit<&Limits::queue_seconds>, kLive,
       "Longest time a call waits before it is refused.", 0, 3600},
      {"stream_idle_seconds", Limit<&Limits::stream_idle_seconds>, kLive,
       "Longest time in which the next message of an upload must have come, or an answer or the "
       "next part of a streamed one been taken; the call ends otherwise.",
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
    for (const auto& more :
         {StoreSettings(), OperationSettings(), IndexSettings(), LimitSettings()}) {
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
