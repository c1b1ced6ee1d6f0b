#include "client/schemes/answer_check.h"

#include <functional>
#include <limits>

#include "tests/testing/matchers.h"

namespace privatemail::client::answer_check_test {
namespace {

constexpr int kSlots = 3;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

PublicParameters ThreeClasses() {
  PublicParameters parameters;
  parameters.slot_labels = {1, 4, 9};
  parameters.anchor_count = 4;
  parameters.settings.embedding_dim = 2;
  return parameters;
}

// Two matches in every slot, with payloads and server anchors.
v1::RetrieveResponse FullAnswer() {
  v1::RetrieveResponse response;
  for (int i = 0; i < 2 * kSlots; ++i) {
    v1::SlotMatches* slot = i % 2 == 0 ? response.add_slots() : response.mutable_slots(i / 2);
    v1::Match* match = slot->add_matches();
    match->set_id("h\xc3\xa9ron");
    match->set_label(4);
    match->set_squared_distance(i);
    match->set_payload(R"({"shelf": [1]})");
  }
  v1::Alignment* alignment = response.mutable_alignment();
  alignment->set_scale(2);
  for (const double value : {1., 0., 0., 1.}) alignment->add_rotation(value);
  for (const double value : {0., 0.}) alignment->add_translation(value);
  alignment->mutable_server_anchors()->set_rows(4);
  alignment->mutable_server_anchors()->set_cols(2);
  for (int i = 0; i < 8; ++i) alignment->mutable_server_anchors()->add_values(1);
  return response;
}

const ExpectedAnswer kAll{.k = 2, .with_payloads = true, .with_alignment = true};

TEST(CheckAnswer, ValidAnswersAreAccepted) {
  EXPECT_THAT(CheckAnswer(ThreeClasses(), kAll, FullAnswer()), IsOk());
  v1::RetrieveResponse bare = FullAnswer();
  bare.mutable_alignment()->clear_server_anchors();
  for (v1::SlotMatches& slot : *bare.mutable_slots()) {
    for (v1::Match& match : *slot.mutable_matches()) match.clear_payload();
  }
  EXPECT_THAT(CheckAnswer(ThreeClasses(), {.k = 2}, bare), IsOk());
}

// A client that checked its own slot only would reveal it to the server.
TEST(CheckAnswer, CorruptMatchInAnySlotReturnsDataLoss) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  const std::pair<std::function<void(v1::SlotMatches*)>, const char*> faults[] = {
      {[](auto* slot) { *slot->add_matches() = slot->matches(0); }, "it must have at most 2"},
      {[](auto* slot) { slot->mutable_matches(1)->set_id("h\xe9ron"); }, "an id is not UTF-8"},
      {[](auto* slot) { slot->mutable_matches(1)->set_label(5); }, "label must be one of"},
      {[](auto* slot) { slot->mutable_matches(1)->set_squared_distance(kNan); },
       "squared_distance must be"},
      {[](auto* slot) { slot->mutable_matches(1)->set_squared_distance(INFINITY); },
       "squared_distance must be"},
      {[](auto* slot) { slot->mutable_matches(1)->set_payload("{"); }, "payload must be empty or"},
      {[](auto* slot) { slot->mutable_matches(1)->set_payload(std::string("{}\0more", 7)); },
       "payload must be empty or"},
      {[&](auto* slot) { slot->mutable_matches(1)->set_payload(deep); }, "payload must be nested"}};
  for (const auto& [corrupt, message] : faults) {
    for (int slot = 0; slot < kSlots; ++slot) {
      v1::RetrieveResponse response = FullAnswer();
      corrupt(response.mutable_slots(slot));
      EXPECT_THAT(CheckAnswer(ThreeClasses(), kAll, response),
                  FailsWith(kDataLoss, absl::StrCat("slot ", slot, " of the response: ", message)));
    }
  }
}

TEST(CheckAnswer, UnrequestedPayloadReturnsDataLoss) {
  EXPECT_THAT(CheckAnswer(ThreeClasses(), {.k = 2}, FullAnswer()),
              FailsWith(kDataLoss, "none was requested"));
}

TEST(CheckAnswer, MalformedAlignmentReturnsDataLoss) {
  for (const auto& corrupt : std::vector<std::function<void(v1::Alignment*)>>{
           [](auto* alignment) { alignment->add_rotation(1); },
           [](auto* alignment) { alignment->clear_translation(); },
           [](auto* alignment) { alignment->set_scale(kNan); },
           [](auto* alignment) { alignment->set_relative_residual(kNan); },
           [](auto* alignment) { alignment->set_rotation(1, kNan); },
           [](auto* alignment) { alignment->set_translation(1, kNan); }}) {
    v1::RetrieveResponse response = FullAnswer();
    corrupt(response.mutable_alignment());
    EXPECT_THAT(CheckAnswer(ThreeClasses(), kAll, response),
                FailsWith(kDataLoss, "alignment must have"));
  }
}

TEST(CheckAnswer, MalformedServerAnchorsReturnDataLoss) {
  for (const bool requested : {true, false}) {
    const ExpectedAnswer expected{.k = 2, .with_payloads = true, .with_alignment = requested};
    v1::RetrieveResponse response = FullAnswer();
    v1::Matrix* anchors = response.mutable_alignment()->mutable_server_anchors();
    anchors->set_values(3, static_cast<float>(kNan));
    EXPECT_THAT(CheckAnswer(ThreeClasses(), expected, response),
                FailsWith(kDataLoss, "server_anchors row 1"));
    anchors->set_values(3, 1);
    anchors->set_rows(2);
    anchors->set_cols(4);
    EXPECT_THAT(CheckAnswer(ThreeClasses(), expected, response),
                FailsWith(kDataLoss, "server_anchors must be 4 x 2"));
  }
  v1::RetrieveResponse response = FullAnswer();
  response.mutable_alignment()->clear_server_anchors();
  EXPECT_THAT(CheckAnswer(ThreeClasses(), kAll, response), FailsWith(kDataLoss, "server_anchors"));
}

}  // namespace
}  // namespace privatemail::client::answer_check_test
