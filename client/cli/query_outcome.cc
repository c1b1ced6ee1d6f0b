#include "client/cli/query_outcome.h"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "privatemail/bit_source.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/wire/codec.h"

namespace privatemail::client::cli {
namespace {

absl::Status Release(const SlotSchemeClient& client, Ledger& ledger, const QueryOptions& options,
                     QueryOutcome* outcome) {
  SecureBits bits;
  const auto start = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(outcome->prepared,
                      client.Prepare(outcome->target.target, options, ledger, bits));
  outcome->release_ms = MillisecondsSince(start);
  outcome->charged = true;
  outcome->epsilon = outcome->prepared.state.guarantee.epsilon;
  PM_ASSIGN_OR_RETURN(outcome->ledger, ledger.Show(client.parameters().collection_uuid));
  return absl::OkStatus();
}

absl::Status Send(const KeepFn& keep, const SendFn& send, QueryOutcome* outcome) {
  PM_RETURN_IF_ERROR(keep(outcome->prepared.request));
  outcome->kept = true;
  const auto start = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(outcome->response, send(outcome->prepared.request));
  outcome->round_trip_ms = MillisecondsSince(start);
  return absl::OkStatus();
}

// CheckAnswer let it pass, so it is JSON, or nothing.
nlohmann::json PayloadOf(const QueryMatch& match) {
  return match.payload.empty() ? nlohmann::json() : nlohmann::json::parse(match.payload);
}

std::vector<std::string> Facts(const QueryOutcome& outcome) {
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
  if (outcome.radius_meaning.has_value()) {
    facts.insert(facts.begin() + 2,
                 absl::StrCat("of the anchors ", outcome.radius_meaning->ToString()));
  }
  return facts;
}

void AddClouds(const QueryOutcome& outcome, const SlotSchemeClient& client, ReportQuery* report) {
  const auto coordinates = client.Coordinates(outcome.prepared.request);
  const auto server = FromProto("server_anchors", outcome.response.alignment().server_anchors());
  if (!coordinates.ok() || !server.ok()) return;
  const auto slots = static_cast<Eigen::Index>(client.parameters().slot_labels.size());
  const Matrix aligned = outcome.result.alignment.Apply(*coordinates);
  report->slot = outcome.prepared.state.slot;
  report->client_slots = coordinates->topRows(slots);
  report->client_anchors = coordinates->bottomRows(coordinates->rows() - slots);
  report->aligned_slots = aligned.topRows(slots);
  report->aligned_anchors = aligned.bottomRows(aligned.rows() - slots);
  report->server_anchors = server->cast<double>();
}

std::string Cell(const std::vector<ReportImage>& images, size_t i) {
  if (i >= images.size()) return "";
  return absl::StrCat(images[i].same_class ? "= " : "  ", Printable(images[i].caption));
}

}  // namespace

double QueryOutcome::network_ms() const { return std::max(0.0, round_trip_ms - server_ms()); }

std::vector<QueryOutcome> SendAll(const SlotSchemeClient& client, const KeepFn& keep, const SendFn& send,
                                  Ledger& ledger, const std::vector<NamedTarget>& targets,
                                  const QueryOptions& options) {
  return SendAll<QueryOutcome>(
      targets,
      [&](QueryOutcome* outcome) {
        const PublicParameters& parameters = client.parameters();
        outcome->class_name =
            parameters.ClassName(*parameters.SlotOf(outcome->target.target.label));
        return Release(client, ledger, options, outcome);
      },
      [&](QueryOutcome* outcome) { return Send(keep, send, outcome); });
}

void Finish(const SlotSchemeClient& client, QueryOutcome* outcome) {
  if (!outcome->status.ok()) return;
  absl::StatusOr<QueryResult> result = client.Finish(outcome->prepared.state, outcome->response);
  outcome->status = result.status();
  if (result.ok()) outcome->result = *std::move(result);
}

nlohmann::json ToJson(const std::optional<RadiusStats>& meaning) {
  if (!meaning.has_value()) return nullptr;
  return {{"radius", meaning->radius},
          {"pairs_of_one_class", meaning->same_class_pairs},
          {"closer_of_one_class", meaning->same_class_pairs_within},
          {"pairs_of_two_classes", meaning->cross_class_pairs},
          {"closer_of_two_classes", meaning->cross_class_pairs_within}};
}

nlohmann::json ToJson(const std::vector<QueryMatch>& matches) {
  nlohmann::json json = nlohmann::json::array();
  for (const QueryMatch& match : matches) {
    json.push_back({{"id", match.id},
                    {"label", match.label},
                    {"distance", match.squared_distance},
                    {"payload", PayloadOf(match)}});
  }
  return json;
}

nlohmann::json ToJson(const QueryOutcome& outcome, const std::vector<std::string>& warnings,
                      const ReportQuery& report) {
  const QueryState& state = outcome.prepared.state;
  nlohmann::json compared = nlohmann::json::array();
  for (const ReportImage& image : report.non_private_matches) {
    compared.push_back({{"picture", image.caption}, {"same_class", image.same_class}});
  }
  return {{"query", outcome.target.name},
          {"label", outcome.target.target.label},
          {"label_guessed", outcome.target.guessed},
          {"class", outcome.class_name},
          {"matches", ToJson(outcome.result.matches)},
          {"non_private_matches", compared},
          {"truncated", outcome.result.truncated},
          {"warnings", warnings},
          {"guarantee", ToJson(state.guarantee)},
          {"radius_meaning", ToJson(outcome.radius_meaning)},
          {"sensitivity", state.sensitivity},
          {"noise_stddev", state.noise_stddev},
          {"ledger",
           {{"spent", ToJson(outcome.ledger.spent())}, {"left", ToJson(outcome.ledger.left())}}},
          {"bytes",
           {{"up", outcome.prepared.request.ByteSizeLong()},
            {"down", outcome.response.ByteSizeLong()}}},
          {"timings",
           {{"features_ms", outcome.target.features_ms},
            {"release_ms", outcome.release_ms},
            {"network_ms", outcome.network_ms()},
            {"server_ms", outcome.server_ms()}}},
          {"alignment",
           {{"relative_residual", outcome.result.relative_residual},
            {"scale", outcome.result.alignment.scale}}},
          {"embedding_version", outcome.result.embedding_version},
          {"changes_since_embedding", outcome.result.changes_since_embedding}};
}

ReportQuery Describe(const QueryOutcome& outcome, const SlotSchemeClient& client,
                     const std::optional<LocalGallery>& gallery) {
  ReportQuery report;
  report.query = {outcome.target.image, outcome.target.name, true};
  report.class_name = outcome.class_name;
  report.facts = Facts(outcome);
  if (gallery.has_value()) {
    report.non_private_matches = gallery->Nearest(
        outcome.target.target.features, outcome.prepared.state.expected.k, outcome.class_name);
  }
  for (const QueryMatch& match : outcome.result.matches) {
    ReportImage image = gallery.has_value() ? gallery->Picture(match.id, outcome.class_name)
                                            : ReportImage{"", match.id, false};
    image.same_class = match.label == outcome.target.target.label;
    report.private_matches.push_back(std::move(image));
  }
  if (outcome.prepared.state.expected.with_alignment) AddClouds(outcome, client, &report);
  return report;
}

void Print(const QueryOutcome& outcome, const ReportQuery& report) {
  std::cout << "\nquery " << Printable(outcome.target.name) << "   class "
            << Printable(outcome.class_name)
            << (outcome.target.guessed ? " (guessed from the anchors)" : "") << "\n";
  const std::vector<QueryMatch>& matches = outcome.result.matches;
  const size_t rows = std::max(report.non_private_matches.size(), matches.size());
  const bool compared = !report.non_private_matches.empty();
  std::cout << (compared ? "      non-private                            private\n"
                         : "      private\n");
  for (size_t i = 0; i < rows; ++i) {
    std::cout << std::setw(4) << i + 1 << "  ";
    if (compared)
      std::cout << std::left << std::setw(39) << Cell(report.non_private_matches, i) << std::right;
    std::cout << Cell(report.private_matches, i) << "\n";
    if (i < matches.size() && !matches[i].payload.empty()) {
      std::cout << std::string(compared ? 47 : 8, ' ') << Printable(Line(PayloadOf(matches[i])))
                << "\n";
    }
  }
  std::cout << "      (= marks the class "
            << (outcome.target.guessed ? "guessed for the query, not a known one)\n"
                                       : "given for the query)\n");
  for (const std::string& fact : report.facts) std::cout << "  " << fact << "\n";
  if (outcome.result.truncated) {
    std::cout << (outcome.prepared.request.has_filter()
                      ? "  fewer items than asked for fit the filter: all are shown\n"
                      : "  the gallery holds fewer items than asked for: all are shown\n");
  }
}

}  // namespace privatemail::client::cli
