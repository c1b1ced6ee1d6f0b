#include "privatemail/guarantee.h"

#include <cmath>
#include <limits>

#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Guarantee Sound() {
  return {.epsilon = 1, .delta = 1e-6, .neighbours = "any two", .proven = true, .source = "test"};
}

TEST(Guarantee, IsAValue) {
  Guarantee one = Sound();
  const Guarantee two = one;
  EXPECT_EQ(one, two);
  one.radius = .1;
  one.metric = "l2";
  EXPECT_NE(one, two);
  EXPECT_THAT(Validate(one), IsOk());
}

TEST(Guarantee, BadFieldsAreNamed) {
  const double nan = std::nan("");
  const auto with = [](auto change) {
    Guarantee guarantee = Sound();
    change(guarantee);
    return Validate(guarantee);
  };
  EXPECT_THAT(with([&](Guarantee& g) { g.epsilon = nan; }), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(with([&](Guarantee& g) { g.epsilon = -1; }), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(with([&](Guarantee& g) { g.delta = nan; }), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(with([&](Guarantee& g) { g.delta = 1; }), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(with([&](Guarantee& g) { g.radius = nan; }), FailsWith(kInvalid, "radius"));
  EXPECT_THAT(with([&](Guarantee& g) { g.radius = 1; }),
              FailsWith(kInvalid, "a radius without a metric"));
  EXPECT_THAT(with([&](Guarantee& g) { g.metric = "l2"; }),
              FailsWith(kInvalid, "a metric without a radius"));
  EXPECT_THAT(with([&](Guarantee& g) { g.gaussian_mu = nan; }), FailsWith(kInvalid, "gaussian_mu"));
  EXPECT_THAT(with([](Guarantee& g) { g.source.clear(); }),
              FailsWith(kInvalid, "source must name the theorem"));
}

TEST(Guarantee, AnInfiniteRadiusIsLocalPrivacy) {
  Guarantee guarantee = Sound();
  guarantee.radius = std::numeric_limits<double>::infinity();
  guarantee.metric = "l2";
  EXPECT_THAT(Validate(guarantee), IsOk());
}

}  // namespace
}  // namespace privatemail::client
