#include "common/base/field_error.h"

#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

TEST(FieldError, CarriesFieldExpectedAndActual) {
  const absl::Status status = FieldError("k", "between 1 and 100", "0");
  EXPECT_THAT(status, FailsWith(kInvalid, "k must be between 1 and 100, but is 0"));
  const std::optional<FieldProblem> problem = FieldProblemOf(status);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->field, "k");
  EXPECT_EQ(problem->expected, "between 1 and 100");
  EXPECT_EQ(problem->actual, "0");
}

TEST(FieldError, IsSpelledAsTheFrontEndSpellsItsField) {
  const absl::Status failed =
      WithContext("1 of 2 queries failed: ",
                  WithNote(FieldError("private_iterations", "positive", "0"), "; none was sent"));
  const absl::Status shown = WithFieldName(failed, "--private-iterations");
  EXPECT_THAT(shown, FailsWith(kInvalid,
                               "1 of 2 queries failed: --private-iterations must be positive, but "
                               "is 0; none was sent"));
  EXPECT_EQ(FieldProblemOf(shown)->field, "private_iterations");
  EXPECT_EQ(FieldProblemOf(shown)->expected, "positive");
  const absl::Status other = absl::NotFoundError("no collection things");
  EXPECT_EQ(WithFieldName(other, "--k"), other);
  EXPECT_EQ(WithContext("it failed: ", other).message(), "it failed: no collection things");
  EXPECT_EQ(WithNote(other, "; none was sent").message(), "no collection things; none was sent");
  EXPECT_FALSE(FieldProblemOf(other).has_value());
}

TEST(FieldError, PayloadTravelsAndNonsenseOfAPeerIsIgnored) {
  absl::Status received = absl::InvalidArgumentError("k must be positive, but is 0");
  for (const char* nonsense : {"", "k", "k\n1\n2\n3\n4"}) {
    SetFieldPayload(nonsense, &received);
    EXPECT_FALSE(FieldProblemOf(received).has_value());
  }
  SetFieldPayload(FieldPayloadOf(FieldError("epsilon", "1", "2")), &received);
  EXPECT_FALSE(FieldProblemOf(received).has_value()) << "not of this message";
  SetFieldPayload(FieldPayloadOf(FieldError("k", "positive", "0")), &received);
  EXPECT_EQ(FieldProblemOf(received)->expected, "positive");
}

}  // namespace
}  // namespace privatemail
