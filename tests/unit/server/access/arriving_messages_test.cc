#include "server/access/arriving_messages.h"

#include <deque>
#include <string>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail::testing {

using namespace server;  // NOLINT: every test of the server

namespace {

class ArrivingMessagesTest : public ::testing::Test {
 protected:
  static Limits FivePlaces() {
    Limits limits;
    limits.max_message_bytes = 30;
    limits.max_transport_memory = 200;  // of which 150 are for messages, one place for operators
    return limits;
  }

  void Enter(const std::string& key, bool is_operator = false) {
    const size_t number = places_.size();
    places_.emplace_back(&messages_);
    places_.back().Enter(key, is_operator, [this, number] { started_.push_back(number); });
  }

  std::vector<size_t> started_;
  ArrivingMessages messages_{FivePlaces()};
  std::deque<ArrivingMessages::Place> places_;  // ends before what it uses
};

TEST_F(ArrivingMessagesTest, KeyHasHalfOfThePlacesAndOthersTheRest) {
  for (const char* key : {"a", "a", "a", "b", "c", "d"}) Enter(key);
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 3, 4));
  places_[3].Leave();
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 3, 4, 5)) << "the third of key a waits on";
  places_[5].Leave();
  EXPECT_THAT(started_, ::testing::SizeIs(5));
  places_[0].Leave();
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 3, 4, 5, 2));
}

TEST_F(ArrivingMessagesTest, FreePlaceGoesToTheKeyWithFewest) {
  for (const char* key : {"a", "a", "b", "b", "a", "b", "a", "c"}) Enter(key);
  places_[0].Leave();
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 2, 3, 7)) << "c came last and has none";
  places_[7].Leave();
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 2, 3, 7, 4));
}

TEST_F(ArrivingMessagesTest, OnePlaceIsForOperators) {
  for (const char* key : {"a", "a", "b", "b", "c"}) Enter(key);
  EXPECT_THAT(started_, ::testing::SizeIs(4));
  Enter("admin", /*is_operator=*/true);
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 2, 3, 5));
  Enter("admin", /*is_operator=*/true);
  EXPECT_THAT(started_, ::testing::SizeIs(5));
  places_[5].Leave();
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 2, 3, 5, 6)) << "c has no room";
}

TEST_F(ArrivingMessagesTest, CallersWithoutKeyHaveAllPlaces) {
  for (int i = 0; i < 6; ++i) Enter("");
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 2, 3));
  places_[2].Leave();
  places_[2].Leave();
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 2, 3, 4)) << "one place was given back";
}

TEST_F(ArrivingMessagesTest, CallerThatIsGoneStartsWithoutPlace) {
  for (int i = 0; i < 6; ++i) Enter("");
  places_[4].StopWaiting();
  places_[0].StopWaiting();  // has a place
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 2, 3, 4));
  places_[4].Leave();
  EXPECT_THAT(started_, ::testing::SizeIs(5)) << "it had no place to give back";
  places_[0].Leave();
  EXPECT_THAT(started_, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(ArrivingMessagesTest, PlaceThatEndsWhileItWaitsNeverStarts) {
  for (int i = 0; i < 4; ++i) Enter("");
  {
    ArrivingMessages::Place gone(&messages_);
    gone.Enter("", /*is_operator=*/false, [] { FAIL() << "it is gone"; });
  }
  places_[0].Leave();
}

TEST_F(ArrivingMessagesTest, OnlyKeysWithMoreKeepOthersWaiting) {
  for (const char* key : {"a", "a", "b", "c"}) Enter(key);
  EXPECT_FALSE(places_[0].KeepsOthersWaiting());
  Enter("a");
  EXPECT_FALSE(places_[0].KeepsOthersWaiting()) << "its own key waits";
  Enter("b");
  EXPECT_TRUE(places_[0].KeepsOthersWaiting());
  EXPECT_FALSE(places_[2].KeepsOthersWaiting()) << "its own key waits, and c has as many";
  Enter("d");
  EXPECT_TRUE(places_[2].KeepsOthersWaiting()) << "d has none";
  EXPECT_FALSE(places_[6].KeepsOthersWaiting()) << "it waits itself";
  places_[6].StopWaiting();
  EXPECT_FALSE(places_[2].KeepsOthersWaiting());
}

TEST_F(ArrivingMessagesTest, LittleMemoryHasTwoPlaces) {
  ArrivingMessages messages([] {
    Limits limits;
    limits.max_transport_memory = 1;
    return limits;
  }());
  int started = 0;  // outlives the places, which count as they leave
  std::deque<ArrivingMessages::Place> places;
  for (int i = 0; i < 3; ++i)
    places.emplace_back(&messages).Enter("", /*is_operator=*/false, [&] { ++started; });
  EXPECT_EQ(started, 2);
}

}  // namespace
}  // namespace privatemail::testing
