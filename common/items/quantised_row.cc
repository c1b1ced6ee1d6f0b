#include "common/items/quantised_row.h"

#include <cmath>

#include "common/lattice/scores.h"

namespace privatemail {

std::vector<int16_t> QuantiseUnitRow(const RowVector& unit_row) {
  constexpr double kScale = 1 << lattice::kItemScaleBits;
  std::vector<int16_t> values(static_cast<size_t>(unit_row.size()));
  for (Eigen::Index i = 0; i < unit_row.size(); ++i) {
    values[static_cast<size_t>(i)] = static_cast<int16_t>(std::lround(kScale * unit_row[i]));
  }
  return values;
}

}  // namespace privatemail
