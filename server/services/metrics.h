// Prometheus metrics of the daemon: counts, times, and the names of collections.
#ifndef PRIVATEMAIL_SERVER_SERVICES_METRICS_H_
#define PRIVATEMAIL_SERVER_SERVICES_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/access/admission.h"
#include "server/engine/catalog.h"

namespace privatemail::server {

// Labels are RPCs, status codes and the names of the first 100 collections; further collections are
// summed as "_other", which is not a valid collection name. Thread-safe.
class Metrics {
 public:
  // Both must outlive the metrics.
  Metrics(const Catalog* catalog, const Admission* admission);

  void CountCall(const std::string& rpc, const absl::Status& status, double seconds);
  // limit: "rate", "concurrency" or "size".
  void CountRejection(const std::string& limit);
  void CountStoreError(absl::StatusCode code);
  void CountAuditFailure() { audit_failures_->Increment(); }
  void SetCertificateExpiry(absl::Time time);

  // hit: a search found its evaluation keys in the cache.
  void CountEvaluationKeys(bool hit) { (hit ? key_hits_ : key_misses_)->Increment(); }

  // In the Prometheus text format.
  std::string Text() const;

 private:
  prometheus::Registry registry_;
  const Catalog* const catalog_;
  const Admission* const admission_;
  prometheus::Family<prometheus::Counter>* calls_;
  prometheus::Family<prometheus::Histogram>* seconds_;
  prometheus::Family<prometheus::Counter>* rejections_;
  prometheus::Family<prometheus::Counter>* refusals_;
  prometheus::Family<prometheus::Counter>* store_errors_;
  prometheus::Counter* audit_failures_;
  prometheus::Gauge* certificate_expiry_;
  prometheus::Counter* key_hits_;
  prometheus::Counter* key_misses_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_METRICS_H_
