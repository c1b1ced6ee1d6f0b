// The default weight alpha of the label graph.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_DEFAULT_ALPHA_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_DEFAULT_ALPHA_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "common/embedding/label_graph.h"

namespace privatemail {

// Largest minus smallest label plus 1; 1 if there are none.
inline double LabelSpan(absl::Span<const int32_t> labels) {
  if (labels.empty()) return 1;
  const auto [lowest, highest] = std::minmax_element(labels.begin(), labels.end());
  return 1.0 + *highest - *lowest;
}

// 60 / span for the distance graph, the papers' .6 for the others, which do not scale with labels.
// - An iteration multiplies the direction that orders the classes by (1 - alpha span / pi^2) / 2,
//   other directions by about 1/2: below alpha span = 3 pi^2 the classes fade.
// - Measured over 10 to 100 classes, recall@8 of one picture: chance up to alpha span = 25, and
//   above .8 from 40 on. The papers' .6 at 100 classes is 60.
inline double DefaultAlpha(LabelGraphKind graph, double span) {
  return graph == LabelGraphKind::kDistance ? 60 / span : .6;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_DEFAULT_ALPHA_H_
