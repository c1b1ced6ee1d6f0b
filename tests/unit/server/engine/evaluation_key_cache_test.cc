#include "server/engine/evaluation_key_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace privatemail::server {
namespace {

constexpr int kKeysDelta = 32;
const int64_t kKeysBytes = static_cast<int64_t>(lattice::EvaluationKeys::Memory(kKeysDelta));

EvaluationKeyCache::Handle EmptyKeys() {
  const int count = 2 * lattice::CountLevels(kKeysDelta) * lattice::kDigits;
  return std::make_shared<lattice::EvaluationKeys>(
      lattice::EvaluationKeys{kKeysDelta, lattice::Words(count)});
}

TEST(EvaluationKeyCache, EvictsTheLeastRecentlyUsed) {
  EvaluationKeyCache cache(2 * kKeysBytes);
  const EvaluationKeyCache::Handle first = EmptyKeys();
  cache.Add("first", first, "a");
  cache.Add("second", EmptyKeys(), "a");
  cache.Add("first", EmptyKeys(), "a");  // there already
  EXPECT_EQ(cache.Find("first"), first);
  EXPECT_EQ(cache.bytes(), 2 * kKeysBytes);
  EXPECT_EQ(cache.size(), 2u);
  cache.Add("third", EmptyKeys(), "a");
  EXPECT_EQ(cache.bytes(), 2 * kKeysBytes);
  EXPECT_EQ(cache.Find("second"), nullptr);
  EXPECT_EQ(cache.Find("first"), first);
  EXPECT_NE(cache.Find("third"), nullptr);
  EXPECT_EQ(cache.Find(""), nullptr);
  cache.Clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.bytes(), 0);
  EXPECT_EQ(cache.Find("first"), nullptr);
  cache.Add("first", EmptyKeys(), "a");
  EXPECT_EQ(cache.bytes(), kKeysBytes);
}

TEST(EvaluationKeyCache, CallerWithManyKeysEvictsOwnOnes) {
  EvaluationKeyCache cache(3 * kKeysBytes);
  cache.Add("other", EmptyKeys(), "b");
  for (const char* digest : {"first", "second", "third", "fourth"}) {
    cache.Add(digest, EmptyKeys(), "a");
  }
  EXPECT_NE(cache.Find("other"), nullptr) << "the least recently used of all";
  EXPECT_EQ(cache.Find("second"), nullptr);
  EXPECT_NE(cache.Find("third"), nullptr);
  EXPECT_NE(cache.Find("fourth"), nullptr);
  cache.Add("another", EmptyKeys(), "c");
  EXPECT_EQ(cache.Find("third"), nullptr) << "of the caller with most";
  cache.Add("last", EmptyKeys(), "d");
  EXPECT_EQ(cache.Find("other"), nullptr) << "all callers have one: the least recently used";
  EXPECT_EQ(cache.size(), 3u);
}

TEST(EvaluationKeyCache, KeepsASingleSetBeyondItsCapacity) {
  EvaluationKeyCache cache(1);
  cache.Add("only", EmptyKeys(), "a");
  EXPECT_NE(cache.Find("only"), nullptr);
  cache.Add("next", EmptyKeys(), "a");
  EXPECT_EQ(cache.Find("only"), nullptr);
  EXPECT_NE(cache.Find("next"), nullptr);
}

// For the sanitizers, too: entries are found, added, evicted and removed at once.
TEST(EvaluationKeyCache, ConcurrentSessionsKeepItsCounts) {
  EvaluationKeyCache cache(4 * kKeysBytes);
  std::vector<std::thread> sessions;
  for (int session = 0; session < 4; ++session) {
    sessions.emplace_back([&cache, session] {
      for (int i = 0; i < 200; ++i) {
        const std::string digest = std::to_string((session + i) % 7);
        if (cache.Find(digest) == nullptr) cache.Add(digest, EmptyKeys(), "a");
        if (i % 50 == 0) cache.Clear();
      }
    });
  }
  for (std::thread& session : sessions) session.join();
  EXPECT_LE(cache.size(), 4u);
  EXPECT_EQ(cache.bytes(), static_cast<int64_t>(cache.size()) * kKeysBytes);
}

}  // namespace
}  // namespace privatemail::server
