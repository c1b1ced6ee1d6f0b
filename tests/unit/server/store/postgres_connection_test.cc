#include <thread>
#include <tuple>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/base/operator_only_error.h"
#include "server/store/postgres/postgres_store.h"
#include "tests/testing/postgres_server.h"
#include "tests/unit/server/fixtures.h"
#include "tests/unit/server/store/store_backend.h"

namespace privatemail::testing {
namespace {

TEST(PostgresSchema, NewerVersionIsRefused) {
  const std::string conninfo = SharedPostgres().NewDatabase();
  ASSERT_THAT(PostgresStore::Open(conninfo), IsOk());
  EXPECT_THAT(PostgresStore::Open(conninfo), IsOk());
  PostgresServer::Ask(conninfo, "UPDATE privatemail.schema_version SET version = 3");
  EXPECT_THAT(PostgresStore::Open(conninfo),
              FailsWith(kFailedPrecondition, "has version 3, this program knows versions up to 2"));
}

TEST(PostgresSchema, ConcurrentStartsCreateItOnce) {
  const std::string conninfo = SharedPostgres().NewDatabase();
  std::vector<std::thread> daemons;
  for (int i = 0; i < 6; ++i) {
    daemons.emplace_back([&] { EXPECT_THAT(PostgresStore::Open(conninfo), IsOk()); });
  }
  for (std::thread& daemon : daemons) daemon.join();
  EXPECT_EQ(PostgresServer::Ask(conninfo, "SELECT count(*) FROM privatemail.schema_version"), "1");
}

TEST(PostgresPool, BusyPoolReturnsErrorAfterWait) {
  postgres::Pool pool(*postgres::ConnectionInfo::Parse(SharedPostgres().NewDatabase()),
                      {2, absl::Milliseconds(200)});
  ASSERT_OK_AND_ASSIGN(const auto one, postgres::Transaction::Begin(&pool, /*writes=*/false));
  {
    ASSERT_OK_AND_ASSIGN(const auto two, postgres::Transaction::Begin(&pool, /*writes=*/false));
    const absl::Time start = absl::Now();
    const absl::Status busy = postgres::Transaction::Begin(&pool, /*writes=*/false).status();
    EXPECT_THAT(busy,
                FailsWith(kUnavailable, "all 2 connections to the store were busy for 200ms"));
    EXPECT_TRUE(IsOperatorOnlyError(busy)) << "it would count as a refusal for size";
    EXPECT_GE(absl::Now() - start, absl::Milliseconds(200));
  }
  EXPECT_THAT(postgres::Transaction::Begin(&pool, /*writes=*/false), IsOk());
}

TEST(PostgresPool, WaitersGetFreedConnection) {
  postgres::Pool pool(*postgres::ConnectionInfo::Parse(SharedPostgres().NewDatabase()),
                      {1, absl::Seconds(20)});
  std::vector<std::thread> callers;
  for (int i = 0; i < 5; ++i) {
    callers.emplace_back([&] {
      ASSERT_OK_AND_ASSIGN(auto transaction, postgres::Transaction::Begin(&pool, /*writes=*/true));
      EXPECT_THAT(transaction->Execute("SELECT pg_sleep(.05)"), IsOk());
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(PostgresPool, UncommittedTransactionIsRolledBack) {
  const std::string conninfo = SharedPostgres().NewDatabase();
  postgres::Pool pool(*postgres::ConnectionInfo::Parse(conninfo), {1, absl::Seconds(5)});
  PostgresServer::Ask(conninfo, "CREATE TABLE t (x int PRIMARY KEY)");
  {
    auto dropped = postgres::Transaction::Begin(&pool, /*writes=*/true);
    EXPECT_THAT((*dropped)->Execute("INSERT INTO public.t VALUES (1)"), IsOk());
  }
  {
    auto failed = postgres::Transaction::Begin(&pool, /*writes=*/true);
    EXPECT_THAT((*failed)->Execute("INSERT INTO public.t VALUES (2)"), IsOk());
    EXPECT_FALSE((*failed)->Execute("INSERT INTO public.t VALUES (2)").ok());
    EXPECT_FALSE((*failed)->Commit().ok()) << "a commit that rolls back is no success";
  }
  EXPECT_EQ(PostgresServer::Ask(conninfo, "SELECT count(*) FROM t"), "0");
}

TEST(PostgresConnection, ErrorsOmitPassword) {
  const std::string good = SharedPostgres().NewDatabase();
  const auto replaced = [&](const std::string& from, const std::string& to) {
    return absl::StrReplaceAll(good, {{from, to}});
  };
  const std::string password = PostgresServer::kPassword;
  for (const auto& [conninfo, code, message] :
       {std::tuple{replaced("dbname=test", "dbname=none"), absl::StatusCode::kUnavailable,
                   "does not exist"},
        {replaced(password, password + "x"), absl::StatusCode::kUnavailable,
         "password authentication failed"},
        {replaced("host=127.0.0.1", "host=127.0.0.1 hostaddr=127.0.0.9"),
         absl::StatusCode::kUnavailable, "refused"},
        {replaced("password=", "pasword="), absl::StatusCode::kInvalidArgument,
         "cannot be read as one"},
        {password, absl::StatusCode::kInvalidArgument, "cannot be read as one"},
        {std::string(), absl::StatusCode::kInvalidArgument, "cannot be read as one"}}) {
    const auto store = PostgresStore::Open(conninfo);
    EXPECT_THAT(store, FailsWith(code, message));
    EXPECT_THAT(std::string(store.status().message()),
                ::testing::Not(::testing::HasSubstr(password)));
  }
  const auto info = postgres::ConnectionInfo::Parse(good);
  EXPECT_EQ(info->Redacted("it is " + password + "\n\there"), "it is **** here");
}

TEST(PostgresConnection, ConnectsBySocketAndUri) {
  EXPECT_THAT(PostgresStore::Open(SharedPostgres().NewDatabaseOverSocket()), IsOk());
}

TEST(PostgresConnection, ServerWithoutDurabilityIsRefused) {
  const std::string conninfo = SharedPostgres().NewDatabase();
  const std::string database = conninfo.substr(conninfo.find("dbname=") + 7);
  PostgresServer::Ask(conninfo, "ALTER DATABASE " + database + " SET synchronous_commit = off");
  const auto info = *postgres::ConnectionInfo::Parse(conninfo);
  auto connection = postgres::Connection::Open(info);
  EXPECT_EQ((*connection)->Query("SHOW synchronous_commit")->Bytes(0), "on");
  PostgresServer::Ask(conninfo,
                      "ALTER DATABASE " + database + " SET synchronous_commit = remote_apply");
  connection = postgres::Connection::Open(info);
  EXPECT_EQ((*connection)->Query("SHOW synchronous_commit")->Bytes(0), "remote_apply");

  PostgresServer careless;
  const std::string elsewhere = careless.NewDatabase();
  careless.Kill();
  careless.Start({"-c", "fsync=off"});
  EXPECT_THAT(PostgresStore::Open(elsewhere),
              FailsWith(kFailedPrecondition, "runs with fsync off"));
}

TEST(PostgresConnection, StatementTimeoutKeepsSessionUsable) {
  const auto info = *postgres::ConnectionInfo::Parse(SharedPostgres().NewDatabase());
  ASSERT_OK_AND_ASSIGN(const auto connection, postgres::Connection::Open(info));
  ASSERT_THAT(connection->Execute("SET statement_timeout = 100"), IsOk());
  EXPECT_THAT(connection->Execute("SELECT pg_sleep(30)"),
              FailsWith(kDeadlineExceeded, "statement timeout"));
  EXPECT_TRUE(connection->usable());
  EXPECT_THAT(connection->Execute("SELECT 1"), IsOk());
}

// tests/e2e/kill_test.cc kills a server under load.
TEST(PostgresServerKilled, IdleStoreAnswersFirstCallAfterRestart) {
  PostgresServer server;
  const auto store = *PostgresStore::Open(server.NewDatabase());
  const StoredCollection fruit = SmallCollection("fruit");
  ASSERT_THAT(store->Create(fruit), IsOk());
  std::vector<std::thread> callers;  // leave several idle sessions behind
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] { EXPECT_THAT(store->LoadGallery(fruit.parameters), IsOk()); });
  }
  for (std::thread& caller : callers) caller.join();
  server.Kill();
  const absl::Status away = store->ListStates().status();
  EXPECT_THAT(away, FailsWith(kUnavailable, "the store is unavailable: database test1"));
  EXPECT_TRUE(IsOperatorOnlyError(away));
  server.Start();
  EXPECT_THAT(store->Upsert(fruit.parameters, MakeItems(3, 1)), IsOk());
}

}  // namespace
}  // namespace privatemail::testing
