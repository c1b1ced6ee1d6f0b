#include "client/cli/query_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/render.h"

namespace privatemail::client::cli {

absl::StatusOr<std::optional<LocalGallery>> OpenGallery(const std::string& folder,
                                                        ExtractorOptions extractor,
                                                        const PublicParameters& parameters) {
  if (folder.empty()) return std::nullopt;
  extractor.collection = parameters.extractor;
  return LocalGallery::Create(folder, extractor);
}

ReportQuery ToReport(const SearchResponse& response, size_t index, const QueryTarget& target,
                     const std::optional<LocalGallery>& gallery, const nlohmann::json& json) {
  const SearchResult& result = response.results[index];
  const JointResult& joint = *result.joint;
  std::set<std::string> names;
  std::set<int32_t> labels;
  for (const SearchedClass& one : joint.classes) {
    names.insert(response.parameters.ClassName(one.slot));
    labels.insert(one.label);
  }
  ReportQuery report;
  report.query = {target.image, result.target, true};
  report.title = joint.label_guessed
                     ? "Query without a label; likely classes: " + absl::StrJoin(names, ", ")
                     : "Query of class " + *names.begin();
  report.mark = joint.label_guessed ? "likely class" : "same class";
  nlohmann::json facts;
  for (const char* key : {"guarantee", "ledger", "bytes", "timings", "alignment", "expected_recall",
                          "radius_meaning"}) {
    if (json.contains(key) && !json[key].is_null()) facts[key] = json[key];
  }
  report.facts = absl::StrSplit(Render(facts), '\n', absl::SkipWhitespace());
  if (gallery.has_value()) {
    const auto k = static_cast<int64_t>(result.matches.size());
    report.non_private_matches = gallery->Nearest(target.target.features, k, names);
  }
  for (const Match& match : result.matches) {
    ReportImage image =
        gallery.has_value() ? gallery->Picture(match.id, names) : ReportImage{"", match.id, false};
    image.same_class = labels.contains(match.label);
    report.private_matches.push_back(std::move(image));
  }
  if (joint.released.size() == 0) return report;
  const auto slots = static_cast<Eigen::Index>(response.parameters.slot_labels.size());
  report.slot = joint.classes.front().slot;
  report.client_slots = joint.released.topRows(slots);
  report.client_anchors = joint.released.bottomRows(joint.released.rows() - slots);
  report.aligned_slots = joint.aligned.topRows(slots);
  report.aligned_anchors = joint.aligned.bottomRows(joint.aligned.rows() - slots);
  report.server_anchors = joint.server_anchors;
  return report;
}

nlohmann::json ComparedJson(const ReportQuery& report) {
  nlohmann::json compared = nlohmann::json::array();
  for (const ReportImage& image : report.non_private_matches) {
    compared.push_back({{"picture", image.caption}, {"same_class", image.same_class}});
  }
  return compared;
}

}  // namespace privatemail::client::cli
