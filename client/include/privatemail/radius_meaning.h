// What a radius of Inference Privacy means on a collection, in pairs of its public anchors.
#ifndef PRIVATEMAIL_RADIUS_MEANING_H_
#define PRIVATEMAIL_RADIUS_MEANING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail::client {

// Public: it depends on the anchors alone. A radius within which hardly two items of a class lie
// hides a target among hardly more than itself.
struct RadiusMeaning {
  double radius = 0;
  int64_t pairs_of_one_class = 0;
  int64_t pairs_of_two_classes = 0;
  int64_t close_of_one_class = 0;  // of these, how many are at most the radius apart
  int64_t close_of_two_classes = 0;

  // "closer than 0.5: 3 % of pairs of one class, 0.2 % of pairs of two classes"
  std::string InWords() const;
};

// anchors: P x d, rows of length 1; class_of_anchor: P. Of more than 4,000 anchors, as many, evenly
// spaced, stand for all. O(min(P, 4,000)^2 d) time.
RadiusMeaning MeaningOfRadius(const Matrix& anchors, const std::vector<int64_t>& class_of_anchor,
                              double radius);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_RADIUS_MEANING_H_
