// What a monitor reads. Counts and times only; the one text of an operator's in it is the name of a
// collection.
#ifndef PRIVATEMAIL_SERVER_SERVICES_METRICS_H_
#define PRIVATEMAIL_SERVER_SERVICES_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/admission.h"
#include "server/engine/catalog.h"

namespace privatemail::server {

// Thread-safe. Labels are bounded: RPCs, status codes, and the names of the first 100 collections;
// what is beyond is added up as collection "_other", which no collection can be called.
class Metrics {
 public:
  // Both must outlive the metrics.
  Metrics(const Catalog* catalog, const Admission* admission);

  void CountCall(const std::string& rpc, const absl::Status& status, double seconds);
  // Which kind of limit refused a call: "rate", "concurrency" or "size".
  void CountRejection(const std::string& limit);
  void CountStoreError(absl::StatusCode code);
  void CountAuditFailure() { audit_failures_->Increment(); }
  void SetCertificateExpiry(absl::Time time);

  // Share of a build that is done, 0 to 1; and its end.
  void SetBuildProgress(const std::string& collection, double done);
  void EndBuild(const std::string& collection);

  // Prometheus's text format.
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
  mutable std::mutex builds_mutex_;
  std::map<std::string, double> builds_;  // by collection
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_METRICS_H_
