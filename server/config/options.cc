#include "server/config/options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/rpc/host_port.h"

namespace privatemail::server {
namespace {

absl::Status CheckDataDirectoryIsGiven(const DaemonOptions& options) {
  if (!options.data_directory.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a data directory must be given: --data-dir, or data_dir in the file of --config");
}

absl::Status CheckTls(const DaemonOptions& options) {
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert and --tls-key must be given together, but only ",
                     options.tls_key.empty() ? "--tls-cert" : "--tls-key", " is"));
  }
  if (options.insecure && !(options.tls_certificate.empty() && options.client_ca.empty() &&
                            options.trusted_proxies.empty())) {
    return absl::InvalidArgumentError(
        "--insecure turns TLS and keys off, so --tls-cert, --tls-key, --client-ca and "
        "--trusted-proxies must not be given beside it");
  }
  return absl::OkStatus();
}

absl::Status CheckLoopback(const DaemonOptions& options, const HostPort& address) {
  if (IsLoopback(address.host)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--insecure serves plaintext, which anyone on the way could read and change, so --listen "
      "must be a loopback address (127.0.0.1, ::1, localhost), but is '",
      options.listen, "'"));
}

}  // namespace

void Problems::Add(const absl::Status& status) {
  if (!status.ok()) all_.push_back(status);
}

void Problems::Add(const Problems& others) {
  all_.insert(all_.end(), others.all_.begin(), others.all_.end());
}

absl::Status Problems::status() const {
  if (all_.empty()) return absl::OkStatus();
  const auto message = [](std::string* out, const absl::Status& one) {
    out->append(one.message().data(), one.message().size());
  };
  return absl::Status(all_.front().code(), absl::StrJoin(all_, "; ", message));
}

std::string AuditLogPath(const DaemonOptions& options) {
  if (options.audit_log == "off") return "";
  if (!options.audit_log.empty()) return options.audit_log;
  return absl::StrCat(options.data_directory, "/audit.jsonl");
}

Problems CheckOptions(const DaemonOptions& options) {
  Problems problems;
  problems.Add(CheckDataDirectoryIsGiven(options));
  const absl::StatusOr<HostPort> address = ParseHostPort("--listen", options.listen);
  problems.Add(address.status());
  problems.Add(CheckTls(options));
  problems.Add(ParseIpAddresses("--trusted-proxies", options.trusted_proxies).status());
  if (options.insecure && address.ok()) problems.Add(CheckLoopback(options, *address));
  return problems;
}

absl::Status Validate(const DaemonOptions& options) { return CheckOptions(options).status(); }

}  // namespace privatemail::server
