#include "server/config/options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/rpc/host_port.h"

namespace privatemail::server {

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
  const auto add = [&problems](const auto&... parts) {
    problems.Add(absl::InvalidArgumentError(absl::StrCat(parts...)));
  };
  if (options.data_directory.empty()) {
    add("a data directory must be given: --data-dir, or data_dir in the file of --config");
  }
  const absl::StatusOr<HostPort> address = ParseHostPort("--listen", options.listen);
  problems.Add(address.status());
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    add("--tls-cert and --tls-key must be given together, but only ",
        options.tls_key.empty() ? "--tls-cert" : "--tls-key", " is");
  } else if (options.insecure && !(options.tls_certificate.empty() && options.client_ca.empty() &&
                                   options.trusted_proxies.empty())) {
    add("--insecure turns TLS and keys off, so --tls-cert, --tls-key, --client-ca and "
        "--trusted-proxies must not be given beside it");
  }
  problems.Add(ParseIpAddresses("--trusted-proxies", options.trusted_proxies).status());
  if (options.insecure && address.ok() && !IsLoopback(address->host)) {
    add("--insecure serves plaintext, which anyone on the way could read and change, so --listen "
        "must be a loopback address (127.0.0.1, ::1, localhost), but is '",
        options.listen, "'");
  }
  return problems;
}

}  // namespace privatemail::server
