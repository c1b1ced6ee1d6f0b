#include "client/search/scheme_table.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/field_error.h"
#include "common/embedding/offered_schemes.h"
#include "tests/testing/published_things.h"

namespace privatemail::client {
namespace {

PublicParameters ParametersOf(bool with_encrypted) {
  PublicParameters parameters = PublishedThings(1, CellCode::kScalar8).parameters;
  parameters.with_encrypted = with_encrypted;
  return parameters;
}

std::string FieldOf(const absl::Status& status) {
  const std::optional<FieldProblem> problem = FieldProblemOf(status);
  return problem.has_value() ? problem->field : status.ToString();
}

TEST(ResolveScheme, DefaultIsTheFirstOfEncryptedJointAndCells) {
  EXPECT_EQ(DefaultScheme(OfferedSchemes(ParametersOf(true))), Scheme::kEncrypted);
  EXPECT_EQ(DefaultScheme(OfferedSchemes(ParametersOf(false))), Scheme::kJoint);
  EXPECT_EQ(
      DefaultScheme(OfferedSchemes(PublishedThings(1, CellCode::kScalar8, 1, false).parameters)),
      Scheme::kCells);
}

TEST(ResolveScheme, FieldsOfOtherSchemesAreRefusedByName) {
  struct Given {
    std::string field;
    std::function<void(SearchRequest&)> set;
    std::vector<Scheme> takers;
  };
  using enum Scheme;
  const Given fields[] = {
      {"epsilon", [](auto& r) { r.epsilon = 1; }, {kCells, kJoint}},
      {"delta", [](auto& r) { r.delta = 1e-5; }, {kJoint}},
      {"mechanism", [](auto& r) { r.mechanism = MechanismKind::kLaplace; }, {kJoint}},
      {"radius", [](auto& r) { r.radius = 1; }, {kJoint}},
      {"private_iterations", [](auto& r) { r.private_iterations = 1; }, {kJoint}},
      {"post_process", [](auto& r) { r.post_process = PostProcessing::kClient; }, {kJoint}},
      {"classes", [](auto& r) { r.classes = 1; }, {kJoint}},
      {"dummies", [](auto& r) { r.dummies.emplace(); }, {kJoint}},
      {"own_anchors", [](auto& r) { r.own_anchors.emplace(); }, {kJoint}},
      {"with_alignment", [](auto& r) { r.with_alignment = true; }, {kJoint}},
      {"accept_misalignment", [](auto& r) { r.accept_misalignment = true; }, {kJoint}},
      {"filter", [](auto& r) { r.filter = "{}"; }, {kEncrypted, kJoint}},
      {"label", [](auto& r) { r.targets[0].label = 1; }, {kEncrypted, kJoint}},
      {"partition", [](auto& r) { r.partition = 0; }, {kCells}},
      {"ask", [](auto& r) { r.ask = 1; }, {kCells}},
      {"focus", [](auto& r) { r.focus = 1; }, {kCells}},
      {"items", [](auto& r) { r.items = 1; }, {kCells}}};
  for (const auto& [field, set, takers] : fields) {
    for (const Scheme scheme : {kCells, kEncrypted, kJoint}) {
      SearchRequest request{.collection = "moths", .targets = {SearchTarget()}, .scheme = scheme};
      if (scheme != kEncrypted) request.epsilon = 1;
      set(request);
      const auto resolved = ResolveScheme(request, ParametersOf(true));
      if (std::find(takers.begin(), takers.end(), scheme) != takers.end()) {
        EXPECT_THAT(resolved, IsOk()) << field << " " << NameOf(scheme);
      } else {
        EXPECT_EQ(FieldOf(resolved.status()), field) << NameOf(scheme);
      }
    }
  }
}

TEST(ResolveScheme, CostWithoutSchemeIsNotSearchedForByEncrypted) {
  SearchRequest request{.collection = "moths", .targets = {SearchTarget()}, .epsilon = 1};
  const absl::Status status = ResolveScheme(request, ParametersOf(true)).status();
  EXPECT_EQ(FieldOf(status), "scheme");
  EXPECT_THAT(status, FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(ResolveScheme(request, ParametersOf(false)), IsOk());
}

TEST(ResolveScheme, EpsilonHasNoDefault) {
  for (const Scheme scheme : {Scheme::kCells, Scheme::kJoint}) {
    EXPECT_EQ(FieldOf(ResolveScheme(
                          {.collection = "moths", .targets = {SearchTarget()}, .scheme = scheme},
                          ParametersOf(true))
                          .status()),
              "epsilon");
  }
}

}  // namespace
}  // namespace privatemail::client
