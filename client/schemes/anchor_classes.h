// The classes of public rows, anchors or dummies.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ANCHOR_CLASSES_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ANCHOR_CLASSES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// INVALID_ARGUMENT naming `field` and row: a label is none of the collection's.
absl::Status CheckLabels(absl::string_view field, const PublicParameters& parameters,
                         const std::vector<int32_t>& labels);

// For each slot the rows of its class. labels: each of a slot. INVALID_ARGUMENT: a class has none.
absl::StatusOr<std::vector<std::vector<int64_t>>> RowsBySlot(absl::string_view field,
                                                             const PublicParameters& parameters,
                                                             const std::vector<int32_t>& labels);

// Sum of each class's unit anchors, scaled to length 1: slots x d. labels: each of a slot.
Matrix ClassMeans(const PublicParameters& parameters, const Matrix& unit_anchors,
                  const std::vector<int32_t>& labels);

// The slot whose mean's direction is nearest to that of a row (d).
int64_t NearestSlot(const Matrix& class_means, const RowVector& unit_row);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ANCHOR_CLASSES_H_
