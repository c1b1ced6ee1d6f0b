// What one caller may ask of the daemon, so that no caller can take it from the others.
#ifndef PRIVATEMAIL_SERVER_ACCESS_LIMITS_H_
#define PRIVATEMAIL_SERVER_ACCESS_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace privatemail::server {

// Settings of the same names (server/config/settings.cc says what each is for). A lower value
// refuses sooner; what is stored already stays.
struct Limits {
  int64_t max_message_bytes = int64_t{64} << 20;
  int64_t max_transport_memory = int64_t{1} << 30;  // bytes of messages on their way in, of all
  int64_t max_parsed_memory = int64_t{1} << 32;     // bytes they take once parsed, of all
  int64_t max_collections = 1000;
  int64_t max_items = 10'000'000;                 // stored items of one collection
  int64_t max_batch_items = 100'000;              // items of one message of an upload
  int64_t max_anchors = 100'000;                  // rows of a new collection's anchors
  int64_t max_dims = 65'536;                      // columns of a feature vector
  int64_t max_k = 10'000;                         // nearest items a slot
  int64_t max_request_memory = int64_t{1} << 30;  // bytes one call works with, builds apart
  int64_t max_build_memory = int64_t{1} << 34;    // the same of a build, or of making cells
  int64_t max_snapshot_bytes = int64_t{1} << 36;  // of all snapshots under way
  int64_t max_connections = 4096;                 // of clients, about
  double connection_idle_seconds = 300;           // longest time without a call
  int64_t max_concurrent = 64;                    // calls at work
  int64_t max_concurrent_per_key = 48;            // of them, and of those that wait
  int64_t max_queued = 64;                        // calls that wait for one of these to end
  double queue_seconds = 5;                       // longest wait
  double stream_idle_seconds = 60;                // longest wait for a caller to send or to take
};

// RESOURCE_EXHAUSTED when `value` is above the limit: "k is 11, more than the limit of 10 (max_k)".
absl::Status CheckLimit(absl::string_view what, int64_t value, int64_t limit,
                        absl::string_view setting);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_LIMITS_H_
