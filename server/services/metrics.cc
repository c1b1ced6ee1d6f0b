#include "server/services/metrics.h"

#include <prometheus/text_serializer.h>
#include <sys/resource.h>

#include <vector>

#include "common/base/process_memory.h"

namespace privatemail::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr size_t kMaxNamedCollections = 100;
constexpr char kOther[] = "_other";

// In seconds, from a search of a small gallery to a long build.
const prometheus::Histogram::BucketBoundaries& BucketBoundaries() {
  static const prometheus::Histogram::BucketBoundaries buckets = {
      .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600};
  return buckets;
}

using Values = std::map<std::string, double>;  // by collection; "": of the daemon

void Add(const std::string& name, const std::string& help, MetricType type, const Values& values,
         std::vector<MetricFamily>* families) {
  MetricFamily& family = families->emplace_back(MetricFamily{name, help, type, {}});
  for (const auto& [collection, value] : values) {
    ClientMetric& metric = family.metric.emplace_back();
    if (!collection.empty()) metric.label.push_back({"collection", collection});
    metric.gauge.value = value;
    metric.counter.value = value;
  }
}

double CpuSeconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct CollectionMetric {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const CollectionView& view);
  // A front has only what is stored: it has no items in memory. kEncrypted: only collections that
  // offer encrypted searches have it.
  enum class Of { kStored, kLoaded, kEncrypted } of = Of::kLoaded;
};

constexpr CollectionMetric kCollectionMetrics[] = {
    {"privatemail_collection_items", "Items stored.", MetricType::Gauge,
     [](const CollectionView& view) { return static_cast<double>(view.items); },
     CollectionMetric::Of::kStored},
    {"privatemail_collection_embedded_items", "Items that a search can find.", MetricType::Gauge,
     [](const CollectionView& view) { return static_cast<double>(view.embedded_items()); }},
    {"privatemail_collection_changes_since_embedding",
     "Insertions, updates and deletions since the last build.", MetricType::Gauge,
     [](const CollectionView& view) {
       return static_cast<double>(view.changes_since_embedding());
     }},
    {"privatemail_encrypted_rows", "Rows of encrypted searches, empty ones included.",
     MetricType::Gauge,
     [](const CollectionView& view) {
       const std::shared_ptr<const EncryptedRows> loaded = view.encrypted->rows();
       return loaded == nullptr ? 0 : static_cast<double>(loaded->rows);
     },
     CollectionMetric::Of::kEncrypted},
    {"privatemail_encrypted_rows_bytes", "Memory of the rows of encrypted searches.",
     MetricType::Gauge,
     [](const CollectionView& view) { return static_cast<double>(view.encrypted->memory()); },
     CollectionMetric::Of::kEncrypted},
    {"privatemail_encrypted_passes_total", "Passes over the rows of encrypted searches.",
     MetricType::Counter,
     [](const CollectionView& view) {
       return static_cast<double>(view.encrypted->pass().counts().passes);
     },
     CollectionMetric::Of::kEncrypted},
    {"privatemail_encrypted_queries_total", "Queries that these passes took up.",
     MetricType::Counter,
     [](const CollectionView& view) {
       return static_cast<double>(view.encrypted->pass().counts().queries);
     },
     CollectionMetric::Of::kEncrypted},
};

void AddCollections(const std::vector<CollectionView>& views, bool is_front,
                    std::vector<MetricFamily>* families) {
  using Of = CollectionMetric::Of;
  for (const CollectionMetric& metric : kCollectionMetrics) {
    if (is_front && metric.of != Of::kStored) continue;
    Values values;
    for (size_t i = 0; i < views.size(); ++i) {
      if (metric.of == Of::kEncrypted && views[i].encrypted == nullptr) continue;
      values[i < kMaxNamedCollections ? views[i].published->name : kOther] +=
          metric.value(views[i]);
    }
    Add(metric.name, metric.help, metric.type, values, families);
  }
}

}  // namespace

Metrics::Metrics(const Catalog* catalog, const Admission* admission)
    : catalog_(catalog), admission_(admission) {
  const auto counters = [this](const char* name, const char* help) {
    return &prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
  };
  calls_ = counters("privatemail_requests_total", "Calls that have ended, by RPC and status code.");
  seconds_ = &prometheus::BuildHistogram()
                  .Name("privatemail_request_seconds")
                  .Help("Time that calls took, queue included.")
                  .Register(registry_);
  rejections_ = counters("privatemail_rejected_total",
                         "Calls refused by a limit: rate, concurrency or size.");
  refusals_ = counters("privatemail_access_refused_total",
                       "Calls without a valid key, and calls that a key is not for.");
  store_errors_ = counters("privatemail_store_errors_total",
                           "Calls that failed because the store, or a disk, was away or full.");
  audit_failures_ = &counters("privatemail_audit_failures_total",
                              "Lines of the audit log that could not be written.")
                         ->Add({});
  certificate_expiry_ = &prometheus::BuildGauge()
                             .Name("privatemail_certificate_expiry_timestamp_seconds")
                             .Help("When the certificate that is served expires; 0 without TLS.")
                             .Register(registry_)
                             .Add({});
  auto* const lookups =
      counters("privatemail_evaluation_key_lookups_total",
               "Encrypted searches, by whether the cache had their evaluation keys.");
  key_hits_ = &lookups->Add({{"result", "hit"}});
  key_misses_ = &lookups->Add({{"result", "miss"}});
  // Rates and alerts need these from the start.
  for (const char* limit : {"rate", "concurrency", "size"}) rejections_->Add({{"limit", limit}});
  for (const char* code : {"UNAUTHENTICATED", "PERMISSION_DENIED"})
    refusals_->Add({{"code", code}});
  for (const char* code : {"UNAVAILABLE", "RESOURCE_EXHAUSTED"})
    store_errors_->Add({{"code", code}});
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

std::string Metrics::Text() const {
  std::vector<MetricFamily> families = registry_.Collect();
  const auto gauge = [&](const char* name, const char* help, auto value) {
    Add(name, help, MetricType::Gauge, {{"", static_cast<double>(value)}}, &families);
  };
  gauge("privatemail_requests_in_flight",
        "Running calls, and calls whose answer is not delivered yet.", admission_->running());
  gauge("privatemail_requests_queued", "Waiting calls.", admission_->waiting());
  gauge("privatemail_read_only", "1 while writes are refused since a start on a full disk.",
        catalog_->read_only());
  const EvaluationKeyCache& keys = catalog_->evaluation_keys();
  gauge("privatemail_evaluation_keys", "Sessions whose evaluation keys are in the cache.",
        keys.size());
  gauge("privatemail_evaluation_keys_bytes", "Memory of the cached evaluation keys.", keys.bytes());
  const std::vector<CollectionView> collections = catalog_->List();
  gauge("privatemail_collections", "Collections.", collections.size());
  AddCollections(collections, catalog_->is_front(), &families);
  Values builds;
  for (const CollectionView& view : collections) {
    const std::optional<double> share = view.collection->build_share();
    if (share.has_value() && builds.size() < kMaxNamedCollections) {
      builds[view.published->name] = *share;
    }
  }
  Add("privatemail_build_progress", "Share of the steps that are done, while a build runs.",
      MetricType::Gauge, builds, &families);
  gauge("process_resident_memory_bytes", "Memory of the daemon.",
        static_cast<double>(ResidentMemory()));
  Add("process_cpu_seconds_total", "Processor time of the daemon.", MetricType::Counter,
      {{"", CpuSeconds()}}, &families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace privatemail::server
