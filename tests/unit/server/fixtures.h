// Fixtures of a small collection.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_FIXTURES_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_FIXTURES_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/store/sqlite/sqlite_store.h"
#include "server/store/types.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::testing {

using namespace server;  // NOLINT: every test of the server

inline constexpr int kDim = 4;

// 12 anchors of kDim features in the classes 3, 5 and 9.
Anchors SmallAnchors();
// Settings with a well-spread embedding of few points: two columns, three steps.
EmbeddingSettings SmallSettings();
StoredCollection SmallCollection(const std::string& name);

// An item with features that depend on `seed` only.
Item MakeItem(const std::string& id, int32_t label, unsigned seed);
// Items "item-000", "item-001", ... with labels 3, 5, 9, 3, ...
std::vector<Item> MakeItems(int count, unsigned seed);
// As read from a store, without version and key.
Gallery GalleryOf(const std::vector<Item>& items);
// Imports the collection with this gallery in one part. Its version precedes those of the items.
absl::Status Import(Store* store, StoredCollection collection, const Gallery& gallery);
// Removes all rows that deletions have left, as a Catalog does in the background.
absl::Status RemoveRows(Store* store);
// Rows with ids of six digits, label 3 and random features.
Gallery ManyItems(int rows, const std::string& payload = "");
// An embedding of a gallery, or of MakeItems(count, 1), with arbitrary coordinates.
Embedding EmbeddingOf(const Gallery& gallery);
Embedding SomeEmbedding(int items);

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_FIXTURES_H_
