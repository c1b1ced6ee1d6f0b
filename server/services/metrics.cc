#include "server/services/metrics.h"

#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <utility>
#include <vector>

namespace privatemail::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

constexpr size_t kMaxNamedCollections = 100;
constexpr char kOther[] = "_other";

// In seconds, from a search of a small gallery to a long build.
const prometheus::Histogram::BucketBoundaries& BucketBoundaries() {
  static const prometheus::Histogram::BucketBoundaries buckets = {
      .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600};
  return buckets;
}

MetricFamily GaugeFamily(const std::string& name, const std::string& help,
                         const std::map<std::string, double>& by_collection) {
  MetricFamily family{name, help, prometheus::MetricType::Gauge, {}};
  for (const auto& [collection, value] : by_collection) {
    ClientMetric metric;
    metric.label.push_back({"collection", collection});
    metric.gauge.value = value;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

MetricFamily SingleValue(const std::string& name, const std::string& help,
                         prometheus::MetricType type, double value) {
  MetricFamily family{name, help, type, {}};
  ClientMetric metric;
  metric.gauge.value = value;
  metric.counter.value = value;
  family.metric.push_back(std::move(metric));
  return family;
}

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0;
  double resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double CpuSeconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void AddProcess(std::vector<MetricFamily>* families) {
  families->push_back(SingleValue("process_resident_memory_bytes", "Memory of the daemon.",
                                  prometheus::MetricType::Gauge, ResidentBytes()));
  families->push_back(SingleValue("process_cpu_seconds_total", "Processor time of the daemon.",
                                  prometheus::MetricType::Counter, CpuSeconds()));
}

MetricFamily CounterFamily(const std::string& name, const std::string& help,
                           const std::map<std::string, double>& by_collection) {
  MetricFamily family = GaugeFamily(name, help, by_collection);
  family.type = prometheus::MetricType::Counter;
  for (ClientMetric& metric : family.metric) metric.counter.value = metric.gauge.value;
  return family;
}

// The collections that offer encrypted searches.
void AddEncrypted(const std::vector<CollectionView>& views, std::vector<MetricFamily>* families) {
  std::map<std::string, double> rows, bytes, passes, queries;
  for (size_t i = 0; i < views.size(); ++i) {
    EncryptedCollection* const encrypted = views[i].encrypted.get();
    if (encrypted == nullptr) continue;
    const std::string name = i < kMaxNamedCollections ? views[i].published->name : kOther;
    const std::shared_ptr<const EncryptedRows> loaded = encrypted->rows();
    const ScorePass::Counts counts = encrypted->pass().counts();
    rows[name] += loaded == nullptr ? 0 : static_cast<double>(loaded->rows);
    bytes[name] += static_cast<double>(encrypted->memory());
    passes[name] += static_cast<double>(counts.passes);
    queries[name] += static_cast<double>(counts.queries);
  }
  families->push_back(GaugeFamily("privatemail_encrypted_rows",
                                  "Rows of encrypted searches, empty ones included.", rows));
  families->push_back(GaugeFamily("privatemail_encrypted_rows_bytes",
                                  "Memory of the rows of encrypted searches.", bytes));
  families->push_back(CounterFamily("privatemail_encrypted_passes_total",
                                    "Passes over the rows of encrypted searches.", passes));
  families->push_back(CounterFamily("privatemail_encrypted_queries_total",
                                    "Queries that these passes took up.", queries));
}

void AddCollections(const std::vector<CollectionView>& views, std::vector<MetricFamily>* families) {
  std::map<std::string, double> items;
  std::map<std::string, double> embedded;
  std::map<std::string, double> changes;
  for (size_t i = 0; i < views.size(); ++i) {
    const std::string name = i < kMaxNamedCollections ? views[i].published->name : kOther;
    items[name] += static_cast<double>(views[i].items);
    embedded[name] += static_cast<double>(views[i].embedded_items());
    changes[name] += static_cast<double>(views[i].changes_since_embedding());
  }
  families->push_back(GaugeFamily("privatemail_collection_items", "Items stored.", items));
  families->push_back(GaugeFamily("privatemail_collection_embedded_items",
                                  "Items that a search can find.", embedded));
  families->push_back(GaugeFamily("privatemail_collection_changes_since_embedding",
                                  "Insertions, updates and deletions since the last build.",
                                  changes));
  AddEncrypted(views, families);
  families->push_back(SingleValue("privatemail_collections", "Collections.",
                                  prometheus::MetricType::Gauge,
                                  static_cast<double>(views.size())));
}

}  // namespace

Metrics::Metrics(const Catalog* catalog, const Admission* admission)
    : catalog_(catalog), admission_(admission) {
  calls_ = &prometheus::BuildCounter()
                .Name("privatemail_requests_total")
                .Help("Calls that have ended, by RPC and status code.")
                .Register(registry_);
  seconds_ = &prometheus::BuildHistogram()
                  .Name("privatemail_request_seconds")
                  .Help("Time that calls took, queue included.")
                  .Register(registry_);
  rejections_ = &prometheus::BuildCounter()
                     .Name("privatemail_rejected_total")
                     .Help("Calls refused by a limit: rate, concurrency or size.")
                     .Register(registry_);
  refusals_ = &prometheus::BuildCounter()
                   .Name("privatemail_access_refused_total")
                   .Help("Calls without a valid key, and calls that a key is not for.")
                   .Register(registry_);
  for (const char* limit : {"rate", "concurrency", "size"}) rejections_->Add({{"limit", limit}});
  for (const char* code : {"UNAUTHENTICATED", "PERMISSION_DENIED"})
    refusals_->Add({{"code", code}});
  store_errors_ = &prometheus::BuildCounter()
                       .Name("privatemail_store_errors_total")
                       .Help("Calls that failed because the store, or a disk, was away or full.")
                       .Register(registry_);
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kResourceExhausted}) {
    store_errors_->Add({{"code", absl::StatusCodeToString(code)}});
  }
  audit_failures_ = &prometheus::BuildCounter()
                         .Name("privatemail_audit_failures_total")
                         .Help("Lines of the audit log that could not be written.")
                         .Register(registry_)
                         .Add({});
  certificate_expiry_ = &prometheus::BuildGauge()
                             .Name("privatemail_certificate_expiry_timestamp_seconds")
                             .Help("When the certificate that is served expires; 0 without TLS.")
                             .Register(registry_)
                             .Add({});
  auto& lookups = prometheus::BuildCounter()
                      .Name("privatemail_evaluation_key_lookups_total")
                      .Help("Encrypted searches, by whether the cache had their evaluation keys.")
                      .Register(registry_);
  key_hits_ = &lookups.Add({{"result", "hit"}});
  key_misses_ = &lookups.Add({{"result", "miss"}});
}

void Metrics::CountCall(const std::string& rpc, const absl::Status& status, double seconds) {
  const std::string code = absl::StatusCodeToString(status.code());
  calls_->Add({{"rpc", rpc}, {"code", code}}).Increment();
  seconds_->Add({{"rpc", rpc}}, BucketBoundaries()).Observe(seconds);
  if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) {
    refusals_->Add({{"code", code}}).Increment();
  }
}

void Metrics::CountRejection(const std::string& limit) {
  rejections_->Add({{"limit", limit}}).Increment();
}

void Metrics::CountStoreError(absl::StatusCode code) {
  store_errors_->Add({{"code", absl::StatusCodeToString(code)}}).Increment();
}

void Metrics::SetCertificateExpiry(absl::Time time) {
  certificate_expiry_->Set(static_cast<double>(absl::ToUnixSeconds(time)));
}

void Metrics::SetBuildProgress(const std::string& collection, double fraction) {
  const std::lock_guard<std::mutex> guard(builds_mutex_);
  if (builds_.size() < kMaxNamedCollections || builds_.count(collection) > 0) {
    builds_[collection] = fraction;
  }
}

void Metrics::EndBuild(const std::string& collection) {
  const std::lock_guard<std::mutex> guard(builds_mutex_);
  builds_.erase(collection);
}

std::optional<double> Metrics::BuildProgress(const std::string& collection) const {
  const std::lock_guard<std::mutex> guard(builds_mutex_);
  const auto found = builds_.find(collection);
  return found == builds_.end() ? std::nullopt : std::optional(found->second);
}

std::string Metrics::Text() const {
  std::vector<MetricFamily> families = registry_.Collect();
  families.push_back(SingleValue("privatemail_requests_in_flight",
                                 "Running calls, and calls whose answer is not delivered yet.",
                                 prometheus::MetricType::Gauge,
                                 static_cast<double>(admission_->running())));
  families.push_back(SingleValue("privatemail_requests_queued", "Waiting calls.",
                                 prometheus::MetricType::Gauge,
                                 static_cast<double>(admission_->waiting())));
  families.push_back(SingleValue("privatemail_read_only",
                                 "1 while writes are refused since a start on a full disk.",
                                 prometheus::MetricType::Gauge, catalog_->read_only() ? 1 : 0));
  const EvaluationKeyCache& keys = catalog_->evaluation_keys();
  families.push_back(SingleValue("privatemail_evaluation_keys",
                                 "Sessions whose evaluation keys are in the cache.",
                                 prometheus::MetricType::Gauge, static_cast<double>(keys.size())));
  families.push_back(SingleValue("privatemail_evaluation_keys_bytes",
                                 "Memory of the cached evaluation keys.",
                                 prometheus::MetricType::Gauge, static_cast<double>(keys.bytes())));
  AddCollections(catalog_->List(), &families);
  {
    const std::lock_guard<std::mutex> guard(builds_mutex_);
    families.push_back(GaugeFamily("privatemail_build_progress",
                                   "Share of the steps that are done, while a build runs.",
                                   builds_));
  }
  AddProcess(&families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace privatemail::server
