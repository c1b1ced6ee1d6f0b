// What a target is to be told from.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_DECOY_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_DECOY_H_

#include <cstdint>
#include <random>
#include <vector>

#include "client/evaluation/dataset.h"

namespace privatemail::client {

enum class DecoyClass { kSame, kOther };

// A row of the gallery of the target's class, or of any other, drawn uniformly. There must be one.
inline int64_t DrawDecoy(const LabelledRows& gallery, int32_t label, DecoyClass of, uint64_t seed) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < gallery.labels.size(); ++i) {
    if ((gallery.labels[i] == label) == (of == DecoyClass::kSame)) {
      rows.push_back(static_cast<int64_t>(i));
    }
  }
  std::mt19937_64 bits(seed);
  return rows[bits() % rows.size()];
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_DECOY_H_
