#include "privatemail/guarantee.h"

#include <cmath>
#include <limits>

#include "client/privacy/accounting/guarantee_fields.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

Guarantee Sound() {
  return {.epsilon = 1, .delta = 1e-6, .neighbours = "any two", .proven = true, .source = "test"};
}

TEST(Guarantee, BadFieldsAreNamed) {
  const double nan = std::nan("");
  const auto refused = [](const char* message, auto change) {
    Guarantee guarantee = Sound();
    change(guarantee);
    EXPECT_THAT(Validate(guarantee), FailsWith(kInvalid, message));
  };
  refused("epsilon", [&](Guarantee& g) { g.epsilon = nan; });
  refused("epsilon", [&](Guarantee& g) { g.epsilon = -1; });
  refused("delta", [&](Guarantee& g) { g.delta = nan; });
  refused("delta", [&](Guarantee& g) { g.delta = 1; });
  refused("radius", [&](Guarantee& g) { g.radius = nan, g.metric = "l2"; });
  refused("a radius without a metric", [&](Guarantee& g) { g.radius = 1; });
  refused("a metric without a radius", [&](Guarantee& g) { g.metric = "l2"; });
  refused("gaussian_mu", [&](Guarantee& g) { g.gaussian_mu = nan; });
  refused("source must name the theorem", [](Guarantee& g) { g.source.clear(); });
}

TEST(Guarantee, InfiniteRadiusIsValid) {
  Guarantee guarantee = Sound();
  guarantee.radius = std::numeric_limits<double>::infinity();
  guarantee.metric = "l2";
  EXPECT_THAT(Validate(guarantee), IsOk());
}

TEST(Neighbours, TextHasEveryNumber) {
  EXPECT_EQ(NeighboursOfValue(.5, "L1"), "any two inputs whose values differ by at most 0.5 in L1");
  EXPECT_EQ(NeighboursInBox({0, 0, 0, -2}, {1, 1, 1, 2}, .5),
            "any two inputs whose values, clipped to the box [0, 1]^3 x [-2, 2], differ by at most "
            "0.5 in L2");
}

Guarantee Of(MechanismParameters parameters, bool made) {
  parameters.epsilon = 1;
  if (TraitsOf(parameters.kind).TakesDelta()) parameters.delta = 1e-5;
  return made ? (*MakeMechanism(parameters, {2, 10}))->guarantee()
              : Calibrate(parameters, 2)->guarantee;
}

void ExpectApart(const Guarantee& one, const Guarantee& other) {
  EXPECT_THAT(Validate(one), IsOk());
  EXPECT_NE(one.neighbours, other.neighbours);
}

TEST(Neighbours, DifferentSensitivitiesHaveDifferentTexts) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    if (traits.protects != MechanismTraits::Protects::kValue) continue;
    MechanismParameters one{.kind = traits.kind, .sensitivity = 1};
    if (traits.law == MechanismTraits::Law::kBoundedGaussian) one.box = {{0}, {1}};
    MechanismParameters next = one;
    next.sensitivity = std::nextafter(1, 2);
    for (const bool made : {false, true}) {
      SCOPED_TRACE(traits.name);
      ExpectApart(Of(one, made), Of(next, made));
    }
  }
}

TEST(Neighbours, DifferentBoxesHaveDifferentTexts) {
  for (const auto kind :
       {MechanismKind::kBoundedGaussian, MechanismKind::kPublishedBoundedGaussian}) {
    MechanismParameters one{.kind = kind, .sensitivity = 1, .box = {{0, 0}, {1, 2}}};
    for (const Box& box :
         {Box{{5, 5}, {6, 7}}, Box{{0, 0}, {2, 1}}, Box{{0, 0}, {1, std::nextafter(2, 3)}}}) {
      MechanismParameters other = one;
      other.box = box;
      for (const bool made : {false, true}) ExpectApart(Of(one, made), Of(other, made));
    }
    // Equal for both factories.
    EXPECT_EQ(Of(one, false).neighbours, Of(one, true).neighbours);
  }
}

}  // namespace
}  // namespace privatemail::client
