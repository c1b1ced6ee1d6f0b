// Labels by name: the numbers of the names that items, anchors and queries have in a collection.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_CLASS_LABELS_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_CLASS_LABELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/label_column.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// Labels with the names of their classes: none, or one for each distinct label, ascending.
struct NamedLabels {
  std::vector<int32_t> labels;
  std::vector<std::string> class_names;
};

// The labels of a new collection's anchors. Names become classes 0, 1, ... in the order of the
// alphabet; a column with numbers keeps these. INVALID_ARGUMENT naming field and row: a name is
// missing, not printable UTF-8 or too long.
absl::StatusOr<NamedLabels> NumberClasses(absl::string_view field, const LabelColumn& column);

// The labels of public rows in a collection: the numbers, or those of the names. class_names: the
// collection's; in one without classes followed by the new names of the column, which an upload
// then sends. Integers are numbers of classes and text is names, as in scikit-learn. A text file of
// integers alone holds numbers, or names that the collection has if its labels have names.
// has_items: whether the collection has items, whose numbers no new name may call.
// INVALID_ARGUMENT naming field, row and some known names: a name that is not one of the
//   collection's classes, not printable UTF-8 or too long, or numbers that the collection's names
//   do not cover.
absl::StatusOr<NamedLabels> LabelsOfItems(absl::string_view field, const LabelColumn& column,
                                          const PublicParameters& parameters, bool has_items);

// The label of a class's number or name; without classes any number that an item may have.
// INVALID_ARGUMENT listing the classes, but not the text, which is private: neither. Takes as long
// for every text.
absl::StatusOr<int32_t> LabelFrom(absl::string_view text, const PublicParameters& parameters);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_CLASS_LABELS_H_
