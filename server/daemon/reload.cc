// DaemonServer: reload of settings, keys, certificates and audit log.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/config/settings.h"
#include "server/daemon/server.h"
#include "server/services/log.h"

namespace privatemail::server {
namespace {

// Applies live settings and logs every difference.
void MergeLive(const DaemonOptions& updated, DaemonOptions* options) {
  for (const Setting& setting : Settings()) {
    const SettingValue before = setting.ValueIn(*options);
    const SettingValue after = setting.ValueIn(updated);
    if (before == after) continue;
    if (!setting.live) {
      Log(LogLevel::kWarning, absl::StrCat("reload: ", setting.key, " stays ", ToText(before),
                                           " until a restart makes it ", ToText(after)));
      continue;
    }
    Log(LogLevel::kInfo,
        absl::StrCat("reload: ", setting.key, " is now ", ToText(after), ", was ", ToText(before)));
    // The value was validated when it was read.
    Assign(setting, setting.key, after, options).IgnoreError();
  }
}

void LogOutcome(const absl::Status& status, absl::string_view what, absl::string_view otherwise) {
  if (status.ok()) {
    Log(LogLevel::kInfo, absl::StrCat("reload: ", what));
  } else {
    Log(LogLevel::kError, absl::StrCat("reload: ", status.message(), "; ", otherwise));
  }
}

void ReloadKeys(KeyRing* keys) {
  const absl::StatusOr<std::vector<std::string>> revalidated = keys->Reload();
  LogOutcome(revalidated.status(), "keys read", "the former keys stay valid");
  if (!revalidated.ok()) return;
  for (const std::string& id : *revalidated) {
    Log(LogLevel::kError, absl::StrCat("reload: key ", id,
                                       " was revoked, but that could not be "
                                       "written, so that it is valid again: revoke it once more"));
  }
}

}  // namespace

void ApplyLogSettings(const DaemonOptions& options) {
  const LogLevel level = options.log_level == "debug"     ? LogLevel::kDebug
                         : options.log_level == "info"    ? LogLevel::kInfo
                         : options.log_level == "warning" ? LogLevel::kWarning
                                                          : LogLevel::kError;
  SetLog(level, options.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
}

void DaemonServer::Reload(const DaemonOptions& updated) {
  {
    const std::lock_guard<std::mutex> guard(options_mutex_);
    MergeLive(updated, &options_);
    ApplyLogSettings(options_);
    dispatcher_.SetLimits(options_.limits);
    maintenance_.SetOptions(ToAutomaticBuildOptions(options_));
    parts_.catalog->SetOptions(ToCatalogOptions(options_));
    if (parts_.audit != nullptr) parts_.audit->SetMaxBytes(options_.audit_max_bytes);
  }
  ReloadFiles();
}

void DaemonServer::ReloadFiles() {
  if (parts_.keys != nullptr) ReloadKeys(parts_.keys.get());
  if (parts_.audit != nullptr) {
    LogOutcome(parts_.audit->Reopen(), "audit log reopened", "it continues in the former file");
    Audit("reload");
  }
  RefreshCertificates();
}

void DaemonServer::RefreshCertificates() {
  if (parts_.tls == nullptr) return;
  const absl::StatusOr<bool> changed = parts_.tls->Refresh();
  if (!changed.ok()) {
    LogOutcome(changed.status(), "", "the former certificate stays in use");
  } else if (*changed) {
    const TlsIdentity identity = parts_.tls->identity();
    metrics_.SetCertificateExpiry(identity.not_after);
    LogOutcome(absl::OkStatus(),
               absl::StrCat("certificates changed; fingerprint ", identity.fingerprint, ", until ",
                            absl::FormatTime("%Y-%m-%d", identity.not_after, absl::UTCTimeZone())),
               "");
  }
}

void DaemonServer::Audit(absl::string_view event) {
  if (parts_.audit == nullptr) return;
  if (const absl::Status written = parts_.audit->Record(event); !written.ok()) {
    metrics_.CountAuditFailure();
    Log(LogLevel::kError, written.message());
  }
}

DaemonOptions DaemonServer::options() const {
  const std::lock_guard<std::mutex> guard(options_mutex_);
  return options_;
}

}  // namespace privatemail::server
