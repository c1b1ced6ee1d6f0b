// The image that two operators serve, as their common client sees it (PRIVACY.md section 9).
#ifndef PRIVATEMAIL_TWO_SERVER_IMAGE_H_
#define PRIVATEMAIL_TWO_SERVER_IMAGE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/two_server.pb.h"

namespace privatemail::client {

// One value for, or from, each of the two servers.
template <typename Half>
struct Halves {
  Half a;
  Half b;
};

enum class TwoServerMode {
  kScores,  // the product with every item; exact
  kLists,   // lists of items of the cells near the target
};

// FAILED_PRECONDITION: an operator has no name, or both have one name.
absl::Status CheckDifferentOperators(const Halves<std::string>& names);

// An image that both servers serve. Public. Immutable, thread-safe.
class TwoServerImage {
 public:
  // Largest image that is searched by scores unless another mode is chosen.
  static constexpr uint64_t kMaxDefaultScoreItems = 100'000;

  // parameters: of the collection. images: each server's answer to GetImage.
  // FAILED_PRECONDITION naming the servers: as CheckDifferentOperators, an image is of another
  //   collection, or the images differ (with the version of each).
  // DATA_LOSS: a header is malformed or contradicts the parameters.
  static absl::StatusOr<TwoServerImage> Create(const PublicParameters& parameters,
                                               const Halves<v1::GetImageResponse>& images);

  const v1::ImageHeader& header() const { return header_; }
  const std::string& digest() const { return digest_; }  // 32 bytes
  const Halves<std::string>& operators() const { return operators_; }

  // FAILED_PRECONDITION: the image has no scores, or an operator (named) does not allow them.
  absl::Status CheckScoresAllowed() const { return scores_; }
  // Scores if they are allowed and the image is small, else lists.
  TwoServerMode DefaultMode() const;

  // Bytes of each server's answer.
  uint64_t AnswerBytes(const v1::ScoreRequest& request) const;
  uint64_t AnswerBytes(const v1::FetchListsRequest& request) const;

 private:
  TwoServerImage() = default;

  v1::ImageHeader header_;
  std::string digest_;
  Halves<std::string> operators_;
  absl::Status scores_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TWO_SERVER_IMAGE_H_
