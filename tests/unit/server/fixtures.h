// A small collection and a place on disk for it.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_FIXTURES_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_FIXTURES_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sqlite_store.h"
#include "server/store/types.h"

namespace privatemail::testing {

// An empty directory, gone with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline constexpr int kDim = 4;

// 12 anchors of kDim features in the classes 3, 5 and 9.
Anchors SmallAnchors();
// Settings whose embedding of so few points is well spread: two columns, three steps.
EmbeddingSettings SmallSettings();
StoredCollection SmallCollection(const std::string& name);

// An item whose features depend on `seed` alone.
Item MakeItem(const std::string& id, int32_t label, unsigned seed);
// Items "item-000", "item-001", ... with labels 3, 5, 9, 3, ...
std::vector<Item> MakeItems(int count, unsigned seed);

const absl::Status& StatusOf(const absl::Status& status);
template <typename Value>
const absl::Status& StatusOf(const absl::StatusOr<Value>& result) {
  return result.status();
}

MATCHER(IsOk, "") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// The code, and a part of the message.
MATCHER_P2(IsStatus, code, text, "") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         ::testing::Value(std::string(StatusOf(arg).message()), ::testing::HasSubstr(text));
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_FIXTURES_H_
