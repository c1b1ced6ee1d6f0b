#include "common/items/item_label.h"

#include <limits>

#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

TEST(ItemLabel, IsOneOfTheClasses) {
  PublicParameters parameters;
  parameters.slot_labels = {-2, 3, 9};
  for (const int32_t label : {-2, 3, 9}) EXPECT_THAT(CheckItemLabel(label, parameters), IsOk());
  EXPECT_THAT(
      CheckItemLabel(4, parameters),
      FailsWith(kInvalid, "label must be one of the collection's 3 classes (-2 to 9), but is 4"));
  EXPECT_THAT(CheckItemLabel(kNoLabel, parameters),
              FailsWith(kInvalid,
                        "label must be one of the collection's 3 classes (-2 to 9), but is "
                        "missing"));
}

TEST(ItemLabel, IsNotNegativeOrMissingWithoutClasses) {
  const PublicParameters parameters;
  for (const int32_t label : {0, 7, std::numeric_limits<int32_t>::max(), kNoLabel}) {
    EXPECT_THAT(CheckItemLabel(label, parameters), IsOk());
  }
  EXPECT_THAT(CheckItemLabel(-1, parameters),
              FailsWith(kInvalid, "label must be 0 or more, or missing, but is -1"));
  EXPECT_THAT(CheckItemLabel(kNoLabel + 1, parameters), FailsWith(kInvalid));
}

}  // namespace
}  // namespace privatemail
