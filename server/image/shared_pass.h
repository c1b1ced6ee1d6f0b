// Answers of concurrent calls from shared passes over an image.
#ifndef PRIVATEMAIL_SERVER_IMAGE_SHARED_PASS_H_
#define PRIVATEMAIL_SERVER_IMAGE_SHARED_PASS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/cancellation.h"
#include "common/base/thread_pool.h"
#include "server/image/image.h"

namespace privatemail::server {

// Answers halves of private searches from one image. While a pass over its memory runs on all
// cores, calls gather; the next pass answers all of them that read the same part (scores, or the
// lists of one group). Sees halves, each of which is uniform and tells nothing of the target. Work
// depends on the public sizes alone. Thread-safe.
class SharedPass {
 public:
  explicit SharedPass(std::shared_ptr<const Image> image);
  // No call may be running. Waits for the pass of a cancelled one.
  ~SharedPass();

  const Image& image() const { return *image_; }

  // The SentScore of every item, kScoreBytes each, in row order. share: feature_dim words.
  // Takes the answer's memory and 4 bytes a word. `cancelled` is polled every 50 ms.
  // - INVALID_ARGUMENT: share does not have feature_dim words
  // - FAILED_PRECONDITION: the image has no scores
  // - CANCELLED
  absl::StatusOr<std::string> Scores(absl::Span<const uint32_t> share,
                                     const CancelledFunction& cancelled);

  // For each selection the xor of its lists, one after the other. selections: 1 to kMaxFetches, as
  // FetchListsRequest. Takes the answer's memory and a byte for each selection and list.
  // - INVALID_ARGUMENT naming group or selection: no such group, another length, a bit beyond K
  // - CANCELLED
  absl::StatusOr<std::string> Lists(uint32_t group, absl::Span<const std::string> selections,
                                    const CancelledFunction& cancelled);

 private:
  struct Call;

  absl::StatusOr<std::string> Join(const std::shared_ptr<Call>& call,
                                   const CancelledFunction& cancelled);
  // Runs passes until no call waits.
  void RunPasses();
  void PassOverScores(const std::vector<std::shared_ptr<Call>>& calls) const;
  void PassOverLists(uint32_t group, const std::vector<std::shared_ptr<Call>>& calls) const;

  const std::shared_ptr<const Image> image_;
  std::mutex mutex_;                          // guards the following
  std::list<std::shared_ptr<Call>> waiting_;  // in order of arrival
  bool running_ = false;
  ThreadPool pool_;  // last: its job uses the other members
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_IMAGE_SHARED_PASS_H_
