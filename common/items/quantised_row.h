// Unit rows as int16, which products with ciphertexts or shares are exact for.
#ifndef PRIVATEMAIL_COMMON_ITEMS_QUANTISED_ROW_H_
#define PRIVATEMAIL_COMMON_ITEMS_QUANTISED_ROW_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

// unit_row times 2^lattice::kItemScaleBits, rounded to the nearest. unit_row: of length 1.
std::vector<int16_t> QuantiseUnitRow(const RowVector& unit_row);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_ITEMS_QUANTISED_ROW_H_
