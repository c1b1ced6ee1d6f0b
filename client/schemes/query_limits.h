// Checks of ClientLimits: memory of a query from public parameters, and a deadline for computing.
// Not installed.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_QUERY_LIMITS_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_QUERY_LIMITS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/stopwatch.h"
#include "common/base/thread_pool.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/smlq.h"
#include "privatemail/client_limits.h"

namespace privatemail::client {

// Upper estimates in bytes of the arrays of one client and its queries, with the messages of the
// anchors. P anchors, d feature_dim or the columns of own anchors if they are more, r = min(P, d),
// C classes, k embedding_dim, n = C + P, K cells of all partitions.
//
//   all        P (28 d + 4 k + 200) + 200 C                       messages, floats, unit rows twice
//   joint      4 min(P, 4096)^2 + MaxAffinityBytes(n, k)                 affinities
//              8 n k (14 + cores)                                        iterates
//   ranking    8 (P d + 2 P r + 2 d r + 3 r^2 + min(2000 P, 10^7)), for targets without a label
//   cells      8 K d
double JointQueryMemory(const PublicParameters& parameters, int64_t own_columns = 0);
double CellQueryMemory(const PublicParameters& parameters);

// RESOURCE_EXHAUSTED naming the sizes: `bytes`, one of the above, exceed limits.max_memory.
absl::Status CheckQueryMemory(const PublicParameters& parameters, double bytes,
                              const ClientLimits& limits);

// The end of the time for a computation whose size a server chose. Immutable, thread-safe.
class ComputingDeadline {
 public:
  // Starts now. what: "preparing queries".
  ComputingDeadline(absl::string_view what, const ClientLimits& limits);

  // DEADLINE_EXCEEDED: the time is over.
  absl::Status Check() const;

  // Observers that call Check; null without a limit, where nothing needs to be polled.
  WorkObserver work() const;
  ProductObserver products() const;
  StepObserver steps() const;

 private:
  std::string what_;
  absl::Duration limit_;
  Stopwatch computed_;
};

// Checks fitting a ClassRanker to anchors with these columns, which targets without a label need.
// RESOURCE_EXHAUSTED: it would take more than limits.max_memory, with the anchors.
// DEADLINE_EXCEEDED: it would take longer even on a fast machine, and it cannot be interrupted.
absl::Status CheckRanking(const PublicParameters& parameters, int64_t columns,
                          const ClientLimits& limits);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_QUERY_LIMITS_H_
