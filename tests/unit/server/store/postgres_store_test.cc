// Several daemons on one PostgreSQL database.
#include "server/store/postgres/postgres_store.h"

#include <atomic>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/base/operator_only_error.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/store/store_backend.h"

namespace privatemail::testing {
namespace {

using ::testing::Not;
using ::testing::SizeIs;

class TwoDaemons : public ::testing::Test {
 protected:
  const std::string conninfo_ = SharedPostgres().NewDatabase();
  const StoredCollection fruit_ = SmallCollection("fruit");
  const std::unique_ptr<PostgresStore> one_ = *PostgresStore::Open(conninfo_);
  const std::unique_ptr<PostgresStore> other_ = *PostgresStore::Open(conninfo_);
};

TEST_F(TwoDaemons, ARoleNeedsNoRightButToItsSchema) {
  const std::string conninfo = SharedPostgres().NewDatabase();
  PostgresServer::Ask(conninfo,
                      absl::StrCat("CREATE ROLE plain LOGIN PASSWORD '", PostgresServer::kPassword,
                                   "'; CREATE SCHEMA privatemail AUTHORIZATION plain; SELECT 1"));
  const std::string plain = absl::StrReplaceAll(conninfo, {{"user=tester", "user=plain"}});
  EXPECT_THAT(PostgresStore::Open(plain), IsOk());
}

TEST_F(TwoDaemons, ConcurrentCreatesOfOneNameLetOneThrough) {
  for (int round = 0; round < 10; ++round) {
    const std::string name = absl::StrCat("c", round);
    absl::Status outcome[2];
    std::thread first([&] { outcome[0] = one_->Create(SmallCollection(name)); });
    outcome[1] = other_->Create(SmallCollection(name));
    first.join();
    EXPECT_NE(outcome[0].ok(), outcome[1].ok());
    EXPECT_THAT(outcome[0].ok() ? outcome[1] : outcome[0],
                FailsWith(kAlreadyExists, "exists already"));
  }
}

TEST_F(TwoDaemons, WrongCountReturnsDataLoss) {
  ASSERT_THAT(one_->Create(fruit_), IsOk());
  ASSERT_THAT(one_->Upsert(fruit_.parameters, MakeItems(10, 1)), IsOk());
  for (const int count : {9, 11}) {
    PostgresServer::Ask(conninfo_,
                        absl::StrCat("UPDATE privatemail.collections SET items = ", count));
    const absl::Status damaged =
        one_->ReadGallery(fruit_.parameters, [](int64_t, Gallery) { return absl::OkStatus(); });
    EXPECT_THAT(damaged,
                FailsWith(kDataLoss, "database is damaged (a collection counts other items"));
    EXPECT_TRUE(IsOperatorOnlyError(damaged));
  }
}

// The statistics count the rows that were fetched. A plan that sorts what follows each of the 8
// parts would fetch more than four times as many.
TEST_F(TwoDaemons, GalleryWithoutStatisticsIsReadOnce) {
  constexpr int kItems = 40000;
  for (int i = 0; i < 16; ++i) {
    PostgresServer::Ask(conninfo_, absl::StrCat("ALTER TABLE privatemail.items_", i,
                                                " SET (autovacuum_enabled = off)"));
  }
  ASSERT_THAT(Import(one_.get(), fruit_, ManyItems(kItems)), IsOk());
  const auto ignore = [](int64_t, Gallery) { return absl::OkStatus(); };
  ASSERT_THAT((*PostgresStore::Open(conninfo_))->ReadGallery(fruit_.parameters, ignore), IsOk());
  // A session reports what it has read when it ends.
  int fetched = 0;
  EXPECT_TRUE(WaitUntil([&] {
    fetched = std::stoi(PostgresServer::Ask(
        conninfo_,
        "SELECT sum(idx_tup_fetch) FROM pg_stat_all_tables WHERE relname LIKE 'items\\_%'"));
    return fetched > 30000;
  }));
  EXPECT_LE(fetched, 2 * kItems);
}

TEST_F(TwoDaemons, SavingEmbeddingDoesNotBlockWrites) {
  ASSERT_THAT(one_->Create(fruit_), IsOk());
  ASSERT_THAT(one_->Upsert(fruit_.parameters, MakeItems(10, 1)), IsOk());
  Embedding large = EmbeddingOf(ManyItems(100'000, "{}"));
  large.items_version = 10;
  std::atomic<bool> saved = false;
  std::thread saver([&] {
    EXPECT_THAT(one_->SaveEmbedding(fruit_.parameters, large), IsOk());
    saved = true;
  });
  int meanwhile = 0;
  for (int i = 0; !saved; ++i) {
    EXPECT_THAT(other_->Upsert(fruit_.parameters, {{MakeItem(absl::StrCat("x", i), 3, 1)}}),
                IsOk());
    if (!saved) ++meanwhile;
  }
  saver.join();
  EXPECT_GE(meanwhile, 2) << "one may have come before the other began";
  ASSERT_OK_AND_ASSIGN(const auto loaded, other_->LoadEmbedding(fruit_.parameters));
  EXPECT_EQ(loaded->ids, large.ids);
  EXPECT_EQ(loaded->coordinates, large.coordinates);
}

TEST_F(TwoDaemons, WatchReportsEveryKindOfChange) {
  std::atomic<int> calls = 0;
  const auto count = [&] {
    ++calls;
    return absl::OkStatus();
  };
  const auto watch = other_->Watch(count, nullptr);
  ASSERT_TRUE(WaitUntil([&] { return calls > 0; })) << "once at first";
  const std::vector<std::function<absl::Status()>> changes = {
      [&] { return one_->Create(fruit_); },
      [&] { return one_->Upsert(fruit_.parameters, MakeItems(3, 1)).status(); },
      [&] { return one_->DeleteItems(fruit_.parameters, {"item-000"}).status(); },
      [&] { return one_->SaveEmbedding(fruit_.parameters, SomeEmbedding(2)).status(); },
      [&] { return one_->Delete(fruit_.parameters.collection_uuid).status(); }};
  for (size_t i = 0; i < changes.size(); ++i) {
    const int before = calls;
    ASSERT_THAT(changes[i](), IsOk());
    EXPECT_TRUE(WaitUntil([&] { return calls > before; })) << i;
  }
}

TEST_F(TwoDaemons, DisconnectedWatchCatchesUp) {
  ASSERT_THAT(one_->Create(fruit_), IsOk());
  std::atomic<uint64_t> seen = 0;
  std::atomic<int> calls = 0;
  const auto look = [&] {
    seen = other_->ListStates()->front().latest_version;
    ++calls;
    return absl::OkStatus();
  };
  const auto watch = other_->Watch(look, nullptr);
  ASSERT_TRUE(WaitUntil([&] { return calls > 0; }));
  const int before = calls;
  // The watch cannot reconnect before the commit, so it gets no notification.
  PostgresServer::RefuseListeners(conninfo_);
  ASSERT_THAT(one_->Upsert(fruit_.parameters, MakeItems(1, 1)), IsOk());
  EXPECT_EQ(calls, before);
  PostgresServer::AllowConnections(conninfo_);
  ASSERT_TRUE(WaitUntil([&] { return calls > before; })) << "it has not looked again";
  EXPECT_EQ(seen, 1u);
  const int after = calls;
  ASSERT_THAT(one_->Upsert(fruit_.parameters, MakeItems(2, 1)), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return calls > after; })) << "it does not listen any more";
}

TEST_F(TwoDaemons, FailedWatchCallbackIsRetriedAndReportedOnce) {
  std::atomic<int> calls = 0, reports = 0;
  const auto watch = one_->Watch(
      [&] { return ++calls < 3 ? absl::UnavailableError("not yet") : absl::OkStatus(); },
      [&](const absl::Status& /*status*/) { ++reports; });
  EXPECT_TRUE(WaitUntil([&] { return calls >= 3; }));
  absl::SleepFor(absl::Milliseconds(1200));  // retries are a second apart
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(reports, 2) << "the failure and its end";
}

TEST_F(TwoDaemons, ShardsDivideItemsAndHaveTheirOwnEmbeddings) {
  constexpr int kItems = 300;
  constexpr int kShards = 3;
  ASSERT_THAT(Import(one_.get(), fruit_, ManyItems(kItems)), IsOk());
  std::set<std::string> all;
  std::vector<std::unique_ptr<PostgresStore>> shards;
  for (int i = 1; i <= kShards; ++i) {
    shards.push_back(*PostgresStore::Open(conninfo_, {}, {i, kShards}));
    const Gallery part = *shards.back()->LoadGallery(fruit_.parameters);
    EXPECT_GT(part.ids.size(), kItems / kShards / 2u);
    all.insert(part.ids.begin(), part.ids.end());
    EXPECT_EQ(part.version, static_cast<uint64_t>(kItems));
    const uint64_t estimate = shards.back()->ListStates()->front().items;
    EXPECT_NEAR(estimate, kItems / kShards, kItems / 16 + 1);
    uint64_t read = 0;
    ASSERT_THAT(
        shards.back()->ReadChanges(fruit_.parameters, 0,
                                   [&](const ItemChanges& changes, std::vector<Item> items) {
                                     EXPECT_EQ(changes.items, part.ids.size());
                                     read += items.size();
                                     return absl::OkStatus();
                                   }),
        IsOk());
    EXPECT_EQ(read, part.ids.size());
  }
  const uint64_t first = *one_->NewEmbeddingVersion();
  const auto save = [&](int shard, int rows, uint64_t version, uint64_t items_version) {
    Embedding embedding = SomeEmbedding(rows);
    embedding.version = version;
    embedding.items_version = items_version;
    return shards[shard]->SaveEmbedding(fruit_.parameters, embedding).status();
  };
  const auto take_over = [&](int shard, uint64_t version) {
    return shards[shard]->TakeOver(fruit_.parameters, version,
                                   [] { return absl::CancelledError("waits"); });
  };
  const auto version_of = [&](int shard) {
    return shards[shard]->ListStates()->front().embedding_version;
  };
  for (int i = 0; i < kShards; ++i) {
    EXPECT_EQ(version_of(0), 0u);
    ASSERT_THAT(save(i, i + 1, first, kItems), IsOk());
  }
  ASSERT_THAT(take_over(1, first), IsOk());
  for (int i = 0; i < kShards; ++i) EXPECT_EQ(version_of(i), first);
  EXPECT_TRUE(absl::IsAborted(save(0, 1, first, kItems))) << "as a replica that is late";
  EXPECT_TRUE(absl::IsAborted(save(1, 1, first + 1, kItems - 1))) << "of earlier items";
  // Cells of one are there when those of all are.
  const EmbeddingVersion of{static_cast<int64_t>(first), kItems};
  const auto load = [&](int shard) {
    return shards[shard]->LoadCells(fruit_.parameters, of,
                                    [](int64_t) { return absl::OkStatus(); });
  };
  for (int i = 0; i < kShards; ++i) {
    EXPECT_FALSE(load(i)->has_value());
    ASSERT_THAT(shards[i]->SaveCells(fruit_.parameters, of, std::string(1, 'a' + i)), IsOk());
    EXPECT_EQ(absl::IsAborted(load(i).status()), i + 1 < kShards);
  }
  for (int i = 0; i < kShards; ++i) EXPECT_EQ((*load(i))->image, std::string(1, 'a' + i));
  EXPECT_EQ(all.size(), static_cast<size_t>(kItems));
  EXPECT_FALSE(one_->LoadEmbedding(fruit_.parameters)->has_value());
  // Another shard may still need what this one's embedding does not.
  ASSERT_THAT(one_->DeleteItems(fruit_.parameters, {"000001"}), IsOk());
  // Without the others nothing is taken over.
  const uint64_t later = *one_->NewEmbeddingVersion();
  ASSERT_THAT(save(0, 2, later, kItems + 1), IsOk());
  EXPECT_TRUE(absl::IsCancelled(take_over(0, later)));
  // Nor is an embedding of another build.
  const uint64_t latest = *one_->NewEmbeddingVersion();
  ASSERT_THAT(save(0, 2, later, kItems + 1), IsOk());
  for (int i = 1; i < kShards; ++i) ASSERT_THAT(save(i, 2, latest, kItems + 1), IsOk());
  EXPECT_TRUE(absl::IsCancelled(take_over(1, latest)));
  EXPECT_TRUE(absl::IsAborted(take_over(0, latest)));
  EXPECT_EQ(version_of(0), first);
  EXPECT_EQ(PostgresServer::Ask(conninfo_,
                                "SELECT count(*) FROM privatemail_shard_1_of_3.embedded_items"),
            "3")
      << "those of the first and the last build, and of none in between";
  const Embedding other = shards[2]->LoadEmbedding(fruit_.parameters)->value();
  EXPECT_EQ(other.ids.size(), 3u);
  ASSERT_THAT(other.deleted, SizeIs(1));
  EXPECT_EQ(other.deleted[0].id, "000001");
  EXPECT_THAT(shards[0]->Upsert(fruit_.parameters, MakeItems(1, 5)), Not(IsOk()));
  // A build that all take over leaves nothing of their former cells.
  ASSERT_THAT(save(0, 2, latest, kItems + 1), IsOk());
  ASSERT_THAT(take_over(0, latest), IsOk());
  EXPECT_FALSE(load(0)->has_value());
  EXPECT_EQ(
      PostgresServer::Ask(conninfo_, "SELECT count(*) FROM privatemail_shard_1_of_3.cell_parts"),
      "0");
  // A shard removes its embeddings of deleted collections.
  ASSERT_THAT(one_->Delete(fruit_.parameters.collection_uuid), IsOk());
  EXPECT_TRUE(shards[0]->ListStates()->empty());
  EXPECT_THAT(RemoveRows(shards[0].get()), IsOk());
  EXPECT_EQ(PostgresServer::Ask(conninfo_,
                                "SELECT count(*) FROM privatemail_shard_1_of_3.embedded_items"),
            "0");
}

TEST_F(TwoDaemons, TombstonesStayUntilNoShardNeedsThem) {
  ASSERT_THAT(Import(one_.get(), fruit_, ManyItems(3)), IsOk());
  ASSERT_THAT(one_->DeleteItems(fruit_.parameters, {"000001"}), IsOk());
  const auto shard = *PostgresStore::Open(conninfo_, {}, {1, 2});
  const auto other = *PostgresStore::Open(conninfo_, {}, {2, 2});
  Embedding embedding = SomeEmbedding(2);
  embedding.items_version = 4;
  embedding.version = *one_->NewEmbeddingVersion();
  const auto tombstones = [&] {
    return PostgresServer::Ask(conninfo_, "SELECT count(*) FROM privatemail.deletions");
  };
  for (PostgresStore* store : {shard.get(), other.get()}) {
    ASSERT_THAT(store->SaveEmbedding(fruit_.parameters, embedding), IsOk());
  }
  EXPECT_THAT(shard->TakeOver(fruit_.parameters, embedding.version, absl::OkStatus), IsOk());
  EXPECT_EQ(tombstones(), "1") << "encrypted rows may follow by it";
  PostgresServer::Ask(
      conninfo_,
      absl::StrCat("UPDATE privatemail.collections SET latest_version = ", kKeptTombstones + 4));
  ASSERT_THAT(one_->SaveEmbedding(fruit_.parameters, embedding), IsOk());
  EXPECT_EQ(tombstones(), "0");
}

// Tables of version 1, whose items had no partitions.
TEST_F(TwoDaemons, ItemsOfVersionOneAreCopiedIntoPartitions) {
  constexpr int kMany = kDeletedRows + 5;
  StoredCollection other = SmallCollection("other");
  other.parameters.collection_uuid = *NewUuid();
  ASSERT_THAT(Import(one_.get(), fruit_, ManyItems(kMany)), IsOk());
  ASSERT_THAT(Import(one_.get(), other, ManyItems(3)), IsOk());
  const auto digest = [&] {
    return PostgresServer::Ask(conninfo_,
                               "SELECT md5(string_agg(i::text, ' ' ORDER BY collection, id)) FROM "
                               "privatemail.items i");
  };
  const std::string before = digest();
  PostgresServer::Ask(conninfo_,
                      "SET search_path = privatemail; CREATE TABLE old (LIKE items);"
                      "INSERT INTO old SELECT * FROM items; DROP TABLE items;"
                      "ALTER TABLE old RENAME TO items;"
                      "ALTER TABLE items ADD CONSTRAINT items_pkey PRIMARY KEY (collection, id);"
                      "CREATE INDEX items_by_version ON items (collection, version);"
                      "UPDATE schema_version SET version = 1; SELECT 1");
  ASSERT_EQ(digest(), before);
  const auto store = PostgresStore::Open(conninfo_);
  ASSERT_THAT(store, IsOk());
  EXPECT_EQ(digest(), before);
  EXPECT_EQ(
      PostgresServer::Ask(conninfo_, "SELECT count(DISTINCT tableoid) FROM privatemail.items"),
      "16");
  EXPECT_EQ((*store)->LoadGallery(fruit_.parameters)->ids.size(), kMany);
  EXPECT_THAT(PostgresStore::Open(conninfo_), IsOk()) << "once";
}

// A statement has two minutes, in which tens of millions of rows cannot be deleted. A trigger
// counts the rows of each.
TEST_F(TwoDaemons, ManyRowsAreDeletedInBoundedStatements) {
  constexpr int kMany = 2 * kDeletedRows + 1;
  ASSERT_THAT(one_->Create(fruit_), IsOk());
  ASSERT_THAT(one_->Upsert(fruit_.parameters, MakeItems(kMany, 1)), IsOk());
  ASSERT_THAT(one_->SaveEmbedding(fruit_.parameters, SomeEmbedding(kMany)), IsOk());
  PostgresServer::Ask(conninfo_,
                      "CREATE TABLE privatemail.counts (name text, rows bigint);"
                      "CREATE FUNCTION privatemail.note() RETURNS trigger LANGUAGE plpgsql AS $$ "
                      "BEGIN INSERT INTO privatemail.counts SELECT TG_TABLE_NAME, count(*) FROM "
                      "gone; RETURN NULL; END $$;"
                      "CREATE TRIGGER note AFTER DELETE ON privatemail.items REFERENCING OLD TABLE "
                      "AS gone FOR EACH STATEMENT EXECUTE FUNCTION privatemail.note();"
                      "CREATE TRIGGER note AFTER DELETE ON privatemail.embedded_items REFERENCING "
                      "OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION privatemail.note();"
                      "SELECT 1");
  const auto ask = [&](const std::string& what, const std::string& table) {
    return PostgresServer::Ask(
        conninfo_,
        absl::StrCat("SELECT ", what, " FROM privatemail.counts WHERE name = '", table, "'"));
  };
  ASSERT_THAT(one_->SaveEmbedding(fruit_.parameters, SomeEmbedding(3)), IsOk());
  EXPECT_EQ(ask("sum(rows)", "embedded_items"), absl::StrCat(kMany));
  EXPECT_EQ(ask("max(rows)", "embedded_items"), absl::StrCat(kDeletedRows));
  EXPECT_EQ(one_->LoadEmbedding(fruit_.parameters)->value().ids.size(), 3u);
  ASSERT_THAT(other_->Delete(fruit_.parameters.collection_uuid), IsOk());
  EXPECT_EQ(ask("sum(rows)", "items"), absl::StrCat(kMany));
  EXPECT_EQ(ask("max(rows)", "items"), absl::StrCat(kDeletedRows));
  EXPECT_EQ(ask("sum(rows)", "embedded_items"), absl::StrCat(kMany + 3));
}

}  // namespace
}  // namespace privatemail::testing
