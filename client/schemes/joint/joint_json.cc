#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/schemes/joint/joint_search.h"
#include "common/base/status_macros.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client {
namespace {

nlohmann::json RadiusJson(const std::optional<RadiusStats>& meaning) {
  if (!meaning.has_value()) return nullptr;
  return {{"radius", meaning->radius},
          {"pairs_of_one_class", meaning->same_class_pairs},
          {"closer_of_one_class", meaning->same_class_pairs_within},
          {"pairs_of_two_classes", meaning->cross_class_pairs},
          {"closer_of_two_classes", meaning->cross_class_pairs_within}};
}

int64_t MatchesInClasses(const SearchResult& result) {
  const std::vector<SearchedClass>& classes = result.joint->classes;
  return std::count_if(result.matches.begin(), result.matches.end(), [&](const Match& match) {
    return std::any_of(classes.begin(), classes.end(),
                       [&](const SearchedClass& one) { return one.label == match.label; });
  });
}

std::string RowName(const PublicParameters& parameters, int64_t row) {
  const auto slots = static_cast<int64_t>(parameters.slot_labels.size());
  return row < slots ? absl::StrCat("slot ", row, " (", parameters.ClassName(row), ")")
                     : absl::StrCat("anchor ", row - slots);
}

}  // namespace

void AddJointJson(const SearchResponse& response, const SearchResult& result,
                  nlohmann::json* json) {
  const JointResult& joint = *result.joint;
  const SearchedClass& best = joint.classes.front();
  nlohmann::json classes = nlohmann::json::array();
  for (const SearchedClass& one : joint.classes) {
    classes.push_back({{"label", one.label},
                       {"class", response.parameters.ClassName(one.slot)},
                       {"places", one.places},
                       {"posterior", one.posterior}});
  }
  json->update(
      {{"label", best.label},
       {"class", response.parameters.ClassName(best.slot)},
       {"classes", std::move(classes)},
       {"matches_in_classes", MatchesInClasses(result)},
       {"truncated", joint.truncated},
       {"label_guessed", joint.label_guessed},
       {"timings",
        {{"network_ms", std::max(0., result.times.answer_ms - result.times.server_ms)},
         {"server_ms", result.times.server_ms}}},
       {"embedding_version", joint.embedding_version},
       {"changes_since_embedding", joint.changes_since_embedding},
       {"alignment", {{"relative_residual", joint.relative_residual}, {"scale", joint.scale}}}});
  if (joint.noise_stddev.has_value()) {
    (*json)["radius_meaning"] = RadiusJson(joint.radius_meaning);
    (*json)["sensitivity"] = *joint.sensitivity;
    (*json)["noise_stddev"] = *joint.noise_stddev;
    (*json)["timings"]["release_ms"] = result.times.prepare_ms;
  }
  if (!joint.expected_recall.has_value()) return;
  (*json)["alignment"]["expected_recall"] = *joint.expected_recall;
  (*json)["alignment"]["expected_relative_residual"] = *joint.expected_residual;
  // The probability, by public data, that the class of the target is among the answer's.
  (*json)["expected_recall"] = joint.class_recall.value_or(1) * *joint.expected_recall;
}

absl::StatusOr<nlohmann::json> ExplainJoint(const v1::RetrieveRequest& request,
                                            const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix release, FromProto("release", request.release()));
  const nlohmann::json filter =
      request.filter().empty() ? nullptr : nlohmann::json::parse(request.filter(), nullptr, false);
  nlohmann::json rows = nlohmann::json::array();
  for (Eigen::Index i = 0; i < release.rows(); ++i) {
    const float* values = release.row(i).data();
    rows.push_back({{"row", RowName(parameters, i)},
                    {"values", std::vector<float>(values, values + release.cols())}});
  }
  return nlohmann::json{{"k", request.k()},
                        {"post_processing_steps", request.post_processing_steps()},
                        {"with_payloads", request.with_payloads()},
                        {"filter", filter},
                        {"bytes", request.ByteSizeLong()},
                        {"rows", std::move(rows)}};
}

}  // namespace privatemail::client
