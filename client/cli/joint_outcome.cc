#include "client/cli/joint_outcome.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/output.h"
#include "common/base/printable.h"
#include "common/wire/codec.h"

namespace privatemail::client::cli {
namespace {

std::vector<std::string> Facts(const JointOutcome& outcome) {
  const QueryState& state = outcome.prepared.state;
  std::vector<std::string> facts = {
      absl::StrFormat("spent epsilon %g, delta %g (%s); left %s", state.guarantee.epsilon,
                      state.guarantee.delta,
                      state.guarantee.proven ? "proven" : "as published, NOT a proven guarantee",
                      LeftOf(outcome.ledger)),
      absl::StrCat("hidden: ", state.guarantee.neighbours,
                   state.guarantee.radius.has_value()
                       ? absl::StrCat(" (radius ", *state.guarantee.radius, ")")
                       : ""),
      absl::StrFormat("%d bytes up, %d bytes down", outcome.prepared.request.ByteSizeLong(),
                      outcome.response.ByteSizeLong()),
      absl::StrFormat("features %.1f ms, release %.1f ms, network %.1f ms, server %.1f ms",
                      outcome.target.features_ms, outcome.release_ms, outcome.network_ms(),
                      outcome.server_ms()),
      absl::StrFormat("alignment residual %.3g (0 is a perfect fit, 1 none)",
                      outcome.result.relative_residual)};
  if (outcome.alignment) facts.back() += "; " + AlignmentText(*outcome.alignment);
  if (outcome.radius_meaning.has_value()) {
    facts.insert(facts.begin() + 2,
                 absl::StrCat("of the anchors ", outcome.radius_meaning->ToString()));
  }
  return facts;
}

void AddClouds(const JointOutcome& outcome, const JointClient& client, ReportQuery* report) {
  const auto coordinates = client.Coordinates(outcome.prepared.request);
  const auto server = FromProto("server_anchors", outcome.response.alignment().server_anchors());
  if (!coordinates.ok() || !server.ok()) return;
  const auto slots = static_cast<Eigen::Index>(client.parameters().slot_labels.size());
  const Matrix aligned = outcome.result.alignment.Apply(*coordinates);
  report->slot = outcome.prepared.state.places.front().slot;
  report->client_slots = coordinates->topRows(slots);
  report->client_anchors = coordinates->bottomRows(coordinates->rows() - slots);
  report->aligned_slots = aligned.topRows(slots);
  report->aligned_anchors = aligned.bottomRows(aligned.rows() - slots);
  report->server_anchors = server->cast<double>();
}

std::set<std::string> ClassNames(const JointOutcome& outcome, const PublicParameters& parameters) {
  std::set<std::string> names;
  for (const ClassPlaces& one : outcome.prepared.state.places) {
    names.insert(parameters.ClassName(one.slot));
  }
  return names;
}

// Whether an item's class is one of those whose matches are read.
bool IsInClasses(const JointOutcome& outcome, const PublicParameters& parameters, int32_t label) {
  const std::vector<ClassPlaces>& places = outcome.prepared.state.places;
  const int64_t slot = *parameters.SlotOf(label);  // checked by Finish
  return std::any_of(places.begin(), places.end(),
                     [&](const ClassPlaces& one) { return one.slot == slot; });
}

int64_t MatchesInClasses(const JointOutcome& outcome, const PublicParameters& parameters) {
  const std::vector<QueryMatch>& matches = outcome.result.matches;
  return std::count_if(matches.begin(), matches.end(), [&](const QueryMatch& match) {
    return IsInClasses(outcome, parameters, match.label);
  });
}

}  // namespace

ReportQuery ToReport(const JointOutcome& outcome, const JointClient& client,
                     const std::optional<LocalGallery>& gallery) {
  ReportQuery report;
  report.query = {outcome.target.image, outcome.target.name, true};
  const std::set<std::string> classes = ClassNames(outcome, client.parameters());
  report.title = outcome.target.guessed
                     ? "Query without a label; likely classes: " + absl::StrJoin(classes, ", ")
                     : "Query of class " + outcome.class_name;
  report.mark = outcome.target.guessed ? "likely class" : "same class";
  report.facts = Facts(outcome);
  if (gallery.has_value()) {
    report.non_private_matches = gallery->Nearest(outcome.target.target.features,
                                                  outcome.prepared.state.expected.k, classes);
  }
  for (const QueryMatch& match : outcome.result.matches) {
    ReportImage image = gallery.has_value() ? gallery->Picture(match.id, classes)
                                            : ReportImage{"", match.id, false};
    image.same_class = IsInClasses(outcome, client.parameters(), match.label);
    report.private_matches.push_back(std::move(image));
  }
  if (outcome.prepared.state.expected.with_alignment) AddClouds(outcome, client, &report);
  return report;
}

namespace {

// That the class of the target is among the answer's, as far as public data tells.
std::optional<double> ExpectedRecall(const JointOutcome& outcome) {
  if (!outcome.alignment) return std::nullopt;
  const double classes = std::isfinite(outcome.class_recall) ? outcome.class_recall : 1;
  return classes * outcome.alignment->recall;
}

nlohmann::json ClassesJson(const JointOutcome& outcome, const PublicParameters& parameters) {
  nlohmann::json classes = nlohmann::json::array();
  for (const ClassPlaces& one : outcome.prepared.state.places) {
    classes.push_back({{"label", parameters.slot_labels[static_cast<size_t>(one.slot)]},
                       {"class", parameters.ClassName(one.slot)},
                       {"places", one.places},
                       {"posterior", one.posterior}});
  }
  return classes;
}

}  // namespace

nlohmann::json OutcomeJson(const JointOutcome& outcome, const PublicParameters& parameters,
                           const std::vector<std::string>& warnings, const ReportQuery& report) {
  const QueryState& state = outcome.prepared.state;
  nlohmann::json compared = nlohmann::json::array();
  for (const ReportImage& image : report.non_private_matches) {
    compared.push_back({{"picture", image.caption}, {"same_class", image.same_class}});
  }
  nlohmann::json json = {{"query", outcome.target.name},
                         {"collection", outcome.prepared.request.collection()},
                         {"scheme", NameOf(Scheme::kJoint)},
                         {"label", outcome.target.target.label},
                         {"label_guessed", outcome.target.guessed},
                         {"class", outcome.class_name},
                         {"classes", ClassesJson(outcome, parameters)},
                         {"matches", ToJson(outcome.result.matches)},
                         {"matches_in_classes", MatchesInClasses(outcome, parameters)},
                         {"non_private_matches", compared},
                         {"truncated", outcome.result.truncated},
                         {"warnings", warnings},
                         {"guarantee", ToJson(state.guarantee)},
                         {"radius_meaning", ToJson(outcome.radius_meaning)},
                         {"sensitivity", state.sensitivity},
                         {"noise_stddev", state.noise_stddev},
                         {"ledger", LedgerJson(outcome.ledger)},
                         {"bytes",
                          {{"up", outcome.prepared.request.ByteSizeLong()},
                           {"down", outcome.response.ByteSizeLong()}}},
                         {"timings",
                          {{"features_ms", outcome.target.features_ms},
                           {"release_ms", outcome.release_ms},
                           {"network_ms", outcome.network_ms()},
                           {"server_ms", outcome.server_ms()}}},
                         {"embedding_version", outcome.result.embedding_version},
                         {"changes_since_embedding", outcome.result.changes_since_embedding}};
  if (outcome.target.row) json["row"] = *outcome.target.row;
  json["alignment"] = outcome.alignment ? ToJson(*outcome.alignment) : nlohmann::json::object();
  json["alignment"]["relative_residual"] = outcome.result.relative_residual;
  json["alignment"]["scale"] = outcome.result.alignment.scale;
  if (const auto recall = ExpectedRecall(outcome)) json["expected_recall"] = *recall;
  return json;
}

namespace {

std::string Cell(const std::vector<ReportImage>& images, size_t i) {
  if (i >= images.size()) return "";
  return absl::StrCat(images[i].same_class ? "= " : "  ", Printable(images[i].caption));
}

// "lime .61 (5 of 8), pear .22 (3 of 8)"
std::string ClassesText(const JointOutcome& outcome, const PublicParameters& parameters) {
  std::vector<std::string> classes;
  for (const ClassPlaces& one : outcome.prepared.state.places) {
    classes.push_back(absl::StrFormat("%s %.2f (%d of %d)",
                                      Printable(parameters.ClassName(one.slot)), one.posterior,
                                      one.places, outcome.prepared.state.expected.k));
  }
  return absl::StrJoin(classes, ", ");
}

}  // namespace

std::string ToText(const JointOutcome& outcome, const PublicParameters& parameters,
                   const ReportQuery& report) {
  std::ostringstream text;
  text << "\nquery " << Printable(outcome.target.name) << "   "
       << (outcome.target.guessed
               ? "classes that fit the anchors best: " + ClassesText(outcome, parameters)
               : absl::StrCat("class ", Printable(outcome.class_name)))
       << "\n";
  const std::vector<QueryMatch>& matches = outcome.result.matches;
  const size_t rows = std::max(report.non_private_matches.size(), matches.size());
  const bool compared = !report.non_private_matches.empty();
  text << (compared ? "      non-private                            private\n" : "      private\n");
  for (size_t i = 0; i < rows; ++i) {
    text << std::setw(4) << i + 1 << "  ";
    if (compared) {
      text << std::left << std::setw(39) << Cell(report.non_private_matches, i) << std::right;
    }
    text << Cell(report.private_matches, i);
    if (i < matches.size()) {
      text << "  class " << Printable(parameters.ClassName(*parameters.SlotOf(matches[i].label)));
    }
    text << "\n";
    if (i < matches.size() && !matches[i].payload.empty()) {
      text << std::string(compared ? 47 : 8, ' ')
           << Printable(Line(nlohmann::json::parse(matches[i].payload))) << "\n";
    }
  }
  text << "      " << MatchesInClasses(outcome, parameters) << " of " << matches.size()
       << (outcome.target.guessed ? " have one of these classes (=), from which matches were "
                                    "taken; the target's own may be another\n"
                                  : " have the class (=)\n");
  if (std::isfinite(outcome.class_recall)) {
    text << absl::StrFormat(
        "  the class of %.0f %% of the anchors is among the classes chosen like this\n",
        100 * outcome.class_recall);
  }
  if (matches.size() > 1) {
    text << "  the order of matches within a class says nothing: any may be the most similar\n";
  }
  for (const std::string& fact : report.facts) text << "  " << fact << "\n";
  if (outcome.result.truncated) {
    text << (outcome.prepared.request.has_filter()
                 ? "  fewer items than -k match the filter: all are shown\n"
                 : "  the gallery has fewer items than -k: all are shown\n");
  }
  return text.str();
}

}  // namespace privatemail::client::cli
