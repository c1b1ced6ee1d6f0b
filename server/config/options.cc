#include "server/config/options.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/process_memory.h"
#include "common/base/status_macros.h"
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

absl::StatusOr<std::pair<int64_t, int64_t>> ParseShard(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  std::pair<int64_t, int64_t> shard;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &shard.first) &&
      absl::SimpleAtoi(parts[1], &shard.second) && shard.second >= 2 &&
      shard.second <= kMaxShards && shard.first >= 1 && shard.first <= shard.second) {
    return shard;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--shard must be NUMBER/COUNT with a count from 2 to ", kMaxShards,
                   " and a number from 1 to it, such as 2/8, but is '", text, "'"));
}

absl::StatusOr<std::vector<std::vector<std::string>>> ParseShards(absl::string_view text) {
  std::vector<std::vector<std::string>> shards;
  for (const absl::string_view shard : absl::StrSplit(text, ',')) {
    std::vector<std::string>& replicas = shards.emplace_back();
    for (const absl::string_view replica : absl::StrSplit(shard, '|')) {
      replicas.emplace_back(absl::StripAsciiWhitespace(replica));
      PM_RETURN_IF_ERROR(ParseHostPort("each address of --shards", replicas.back()).status());
    }
  }
  if (shards.size() >= 2 && shards.size() <= kMaxShards) return shards;
  return absl::InvalidArgumentError(
      absl::StrCat("--shards must name 2 to ", kMaxShards, " shards, but names ", shards.size()));
}

void ApplyMemory(DaemonOptions* options) {
  constexpr int64_t kMinTransport = int64_t{1} << 28, kMaxTransport = int64_t{1} << 30;
  const int64_t memory = options->memory > 0 ? options->memory : AvailableMemory();
  Limits& limits = options->limits;
  limits.max_resident_memory = memory / 2;
  limits.max_build_memory = memory / 4;
  limits.max_search_memory = memory / 8;
  limits.max_parsed_memory = limits.max_request_memory = memory / 16;
  limits.max_transport_memory = std::clamp(memory / 16, kMinTransport, kMaxTransport);
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
  if (!options.shard.empty()) problems.Add(ParseShard(options.shard).status());
  if (!options.shards.empty()) problems.Add(ParseShards(options.shards).status());
  if (!(options.shard.empty() && options.shards.empty()) && options.postgres_file.empty()) {
    add("shards and fronts share one PostgreSQL, so that --postgres-file must be given with "
        "--shard "
        "and --shards: the collections of an SQLite file belong to one daemon");
  }
  if (!options.shard.empty() && ((options.client_ca.empty() && !options.insecure) ||
                                 !options.http_listen.empty() || !options.shards.empty())) {
    add("--shard serves any caller with a certificate, without keys, so that it needs --client-ca, "
        "the "
        "authority of the fronts' certificates, and neither --http-listen nor --shards");
  }
  if (options.insecure && address.ok() && !IsLoopback(address->host)) {
    add("--insecure serves plaintext, which anyone on the way could read and change, so --listen "
        "must be a loopback address (127.0.0.1, ::1, localhost), but is '",
        options.listen, "'");
  }
  if (!options.http_listen.empty()) {
    const absl::StatusOr<HostPort> http = ParseIpPort("--http-listen", options.http_listen);
    problems.Add(http.status());
    if (http.ok() && !IsLoopback(http->host) && options.trusted_proxies.empty()) {
      add("--http-listen serves plaintext, which anyone on the way could read and change, so it "
          "must be a loopback address, or --trusted-proxies must name who may connect, but it is '",
          options.http_listen, "'");
    }
  }
  for (const absl::string_view origin :
       absl::StrSplit(options.allowed_origins, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    absl::string_view host = origin;
    if ((absl::ConsumePrefix(&host, "https://") || absl::ConsumePrefix(&host, "http://")) &&
        !host.empty() && absl::c_all_of(host, [](unsigned char c) {
          return absl::ascii_islower(c) || absl::ascii_isdigit(c) || absl::StrContains(".-:[]", c);
        })) {
      continue;
    }
    add("--allowed-origins must be origins of web pages as browsers send them, separated by "
        "commas, "
        "such as https://example.org or http://localhost:8080, but has '",
        origin, "'");
  }
  return problems;
}

}  // namespace privatemail::server
