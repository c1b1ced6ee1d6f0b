#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iomanip>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/inputs.h"
#include "client/cli/last_release.h"
#include "client/cli/query_targets.h"
#include "client/cli/report.h"
#include "client/privacy/bit_source.h"
#include "client/retrieval_client.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"
#include "common/numerics/neighbors.h"
#include "common/numerics/smlq.h"
#include "common/protocol/codec.h"

namespace privatemail::cli {
namespace {

struct QueryCommandOptions {
  std::string name;
  TargetOptions targets;
  QueryOptions query;
  std::string mechanism = "gaussian";
  std::string post_process = "client";
  std::string dummies_file;
  std::string dummy_labels_file;
  std::string compare_images;
  std::string report_file;
};

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

absl::StatusOr<RetrievalClient> Prepare(const Transport& transport,
                                        const QueryCommandOptions& options,
                                        v1::GetCollectionResponse* collection) {
  PM_ASSIGN_OR_RETURN(*collection, transport.GetCollection(options.name));
  PM_ASSIGN_OR_RETURN(const std::vector<v1::GetAnchorsResponse> anchors,
                      transport.GetAnchors(options.name, collection->fingerprint()));
  std::optional<Anchors> dummies;
  if (!options.dummies_file.empty()) {
    dummies.emplace();
    PM_ASSIGN_OR_RETURN(dummies->features, ReadVectors(options.dummies_file));
    PM_ASSIGN_OR_RETURN(dummies->labels, ReadLabels(options.dummy_labels_file));
  }
  return RetrievalClient::Create(*collection, anchors, dummies);
}

// The gallery's pictures, described on this machine: what a search without privacy would find.
struct LocalGallery {
  ImageFolder folder;
  FolderFeatures described;
  Matrix unit;

  std::vector<ReportImage> Nearest(const Eigen::RowVectorXf& features, int64_t k,
                                   const std::string& class_name) const {
    const Matrix query = features.cast<double>().normalized();
    std::vector<ReportImage> nearest;
    const auto neighbors = NearestRows(query, unit, k);
    for (const Neighbor& neighbor : neighbors[0]) {
      nearest.push_back(Picture(described.ids[static_cast<size_t>(neighbor.row)], class_name));
    }
    return nearest;
  }

  // An id is "class/file.png".
  ReportImage Picture(const std::string& id, const std::string& class_name) const {
    const auto image = std::find_if(folder.images.begin(), folder.images.end(),
                                    [&](const FolderImage& i) { return i.id == id; });
    return {image == folder.images.end() ? "" : image->path, id,
            id.substr(0, id.find('/')) == class_name};
  }
};

absl::StatusOr<std::optional<LocalGallery>> DescribeGallery(const QueryCommandOptions& options) {
  if (options.compare_images.empty()) return std::nullopt;
  LocalGallery gallery;
  PM_ASSIGN_OR_RETURN(gallery.folder, ListImageFolder(options.compare_images));
  PM_ASSIGN_OR_RETURN(gallery.described, DescribeFolder(gallery.folder, options.targets.extractor));
  PM_ASSIGN_OR_RETURN(gallery.unit, UnitRows("--compare-images", gallery.described.features));
  return gallery;
}

struct Outcome {
  NamedTarget target;
  std::string class_name;
  PreparedQuery prepared;
  v1::RetrieveResponse response;
  QueryResult result;
  LedgerEntry ledger;
  double release_ms = 0;
  double round_trip_ms = 0;

  double server_ms() const { return response.server_seconds() * 1e3; }
  double network_ms() const { return std::max(0.0, round_trip_ms - server_ms()); }
};

absl::StatusOr<Outcome> Ask(const RetrievalClient& client, const SendFn& send, Ledger& ledger,
                            const NamedTarget& target, const QueryOptions& options) {
  Outcome outcome;
  outcome.target = target;
  outcome.class_name =
      client.parameters().ClassName(*client.parameters().SlotOf(target.target.label));
  SecureBits bits;
  auto start = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(outcome.prepared, client.Prepare(target.target, options, ledger, bits));
  outcome.release_ms = MillisecondsSince(start);
  start = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(outcome.response, send(outcome.prepared.request));
  outcome.round_trip_ms = MillisecondsSince(start);
  PM_ASSIGN_OR_RETURN(outcome.result, client.Finish(outcome.prepared.state, outcome.response));
  PM_ASSIGN_OR_RETURN(outcome.ledger, ledger.Show(client.parameters().collection_uuid));
  return outcome;
}

nlohmann::json JsonOf(const Outcome& outcome) {
  nlohmann::json matches = nlohmann::json::array();
  for (const QueryMatch& match : outcome.result.matches) {
    matches.push_back({{"id", match.id},
                       {"label", match.label},
                       {"distance", match.squared_distance},
                       {"payload", match.payload.empty() ? nlohmann::json()
                                                         : nlohmann::json::parse(match.payload)}});
  }
  const QueryState& state = outcome.prepared.state;
  return {{"query", outcome.target.name},
          {"label", outcome.target.target.label},
          {"label_guessed", outcome.target.guessed},
          {"class", outcome.class_name},
          {"matches", matches},
          {"truncated", outcome.result.truncated},
          {"guarantee", ToJson(state.guarantee)},
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
          {"embedding_version", outcome.result.embedding_version}};
}

std::vector<std::string> Facts(const Outcome& outcome) {
  const QueryState& state = outcome.prepared.state;
  const Budget left = outcome.ledger.left();
  return {
      absl::StrFormat("spent epsilon %g, delta %g (%s); left epsilon %g, delta %g",
                      state.guarantee.epsilon, state.guarantee.delta,
                      state.guarantee.proven ? "proven" : "as published, NOT a proven guarantee",
                      left.epsilon, left.delta),
      absl::StrFormat("%d bytes up, %d bytes down", outcome.prepared.request.ByteSizeLong(),
                      outcome.response.ByteSizeLong()),
      absl::StrFormat("features %.1f ms, release %.1f ms, network %.1f ms, server %.1f ms",
                      outcome.target.features_ms, outcome.release_ms, outcome.network_ms(),
                      outcome.server_ms()),
      absl::StrFormat("alignment residual %.3g (0 is a perfect fit, 1 none)",
                      outcome.result.relative_residual)};
}

ReportQuery Describe(const Outcome& outcome, const RetrievalClient& client,
                     const std::optional<LocalGallery>& gallery, int64_t k) {
  ReportQuery report;
  report.query = {outcome.target.image, outcome.target.name, true};
  report.class_name = outcome.class_name;
  report.facts = Facts(outcome);
  report.slot = outcome.prepared.state.slot;
  if (gallery.has_value()) {
    report.non_private_matches =
        gallery->Nearest(outcome.target.target.features, k, outcome.class_name);
  }
  for (const QueryMatch& match : outcome.result.matches) {
    ReportImage image = gallery.has_value() ? gallery->Picture(match.id, outcome.class_name)
                                            : ReportImage{"", match.id, false};
    image.same_class = match.label == outcome.target.target.label;
    report.private_matches.push_back(std::move(image));
  }
  const auto slots = static_cast<Eigen::Index>(client.parameters().slot_labels.size());
  const auto coordinates = ReleasedCoordinates(client, outcome.prepared.request);
  const auto server = FromProto("server_anchors", outcome.response.alignment().server_anchors());
  if (coordinates.ok() && server.ok()) {
    const Matrix aligned = outcome.result.alignment.Apply(*coordinates);
    report.client_slots = coordinates->topRows(slots);
    report.client_anchors = coordinates->bottomRows(coordinates->rows() - slots);
    report.aligned_slots = aligned.topRows(slots);
    report.aligned_anchors = aligned.bottomRows(aligned.rows() - slots);
    report.server_anchors = server->cast<double>();
  }
  return report;
}

void Print(const Outcome& outcome, const ReportQuery& report) {
  std::cout << "\nquery " << outcome.target.name << "   class " << outcome.class_name
            << (outcome.target.guessed ? " (guessed from the anchors)" : "") << "\n";
  const size_t rows = std::max(report.non_private_matches.size(), report.private_matches.size());
  const bool compared = !report.non_private_matches.empty();
  std::cout << (compared ? "      non-private                            private\n"
                         : "      private\n");
  const auto cell = [](const std::vector<ReportImage>& images, size_t i) -> std::string {
    if (i >= images.size()) return "";
    return absl::StrCat(images[i].same_class ? "= " : "  ", images[i].caption);
  };
  for (size_t i = 0; i < rows; ++i) {
    std::cout << std::setw(4) << i + 1 << "  ";
    if (compared)
      std::cout << std::left << std::setw(39) << cell(report.non_private_matches, i) << std::right;
    std::cout << cell(report.private_matches, i) << "\n";
  }
  std::cout << "      (= marks the query's class)\n";
  for (const std::string& fact : report.facts) std::cout << "  " << fact << "\n";
  if (outcome.result.truncated)
    std::cout << "  the gallery holds fewer items than asked for: all are shown\n";
}

absl::Status CheckOptions(const QueryCommandOptions& options) {
  if (options.post_process != "client" && options.post_process != "server") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--post-process must be client or server, but is \"", options.post_process, "\""));
  }
  if (options.dummies_file.empty() != options.dummy_labels_file.empty()) {
    return absl::InvalidArgumentError("give --dummies and --dummy-labels together");
  }
  return absl::OkStatus();
}

absl::Status Query(const Context& context, QueryCommandOptions options) {
  PM_RETURN_IF_ERROR(CheckOptions(options));
  PM_ASSIGN_OR_RETURN(options.query.cost.mechanism, MechanismFromName(options.mechanism));
  if (options.post_process == "server") options.query.post_processing = PostProcessing::kServer;
  options.query.with_alignment = !options.report_file.empty();

  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  v1::GetCollectionResponse collection;
  PM_ASSIGN_OR_RETURN(const RetrievalClient client, Prepare(transport, options, &collection));
  PM_ASSIGN_OR_RETURN(const std::vector<NamedTarget> targets, ReadTargets(options.targets, client));
  PM_ASSIGN_OR_RETURN(const std::optional<LocalGallery> gallery, DescribeGallery(options));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context));

  // What is about to leave is kept first, so that `explain` shows it even when the answer never
  // comes.
  const SendFn send =
      [&](const v1::RetrieveRequest& request) -> absl::StatusOr<v1::RetrieveResponse> {
    PM_RETURN_IF_ERROR(SaveLastRelease(context.state_folder, {request, collection}));
    return transport.Retrieve(request);
  };
  std::vector<ReportQuery> reports;
  for (const NamedTarget& target : targets) {
    PM_ASSIGN_OR_RETURN(const Outcome outcome, Ask(client, send, *ledger, target, options.query));
    reports.push_back(Describe(outcome, client, gallery, options.query.k));
    Answer(context, JsonOf(outcome), [&] { Print(outcome, reports.back()); });
  }
  if (options.report_file.empty()) return absl::OkStatus();
  PM_RETURN_IF_ERROR(WriteReport(options.report_file, reports));
  if (!context.json) {
    std::cout << "\nreport: " << std::filesystem::absolute(options.report_file).string() << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddQueryCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<QueryCommandOptions>();
  CLI::App* query = AddCommand(
      app, "query", "The nearest items to what you hold, without telling the server what it is");
  query->add_option("NAME", options->name)->required();
  AddTargetOptions(query, &options->targets);
  query->add_option("-k", options->query.k, "Matches wanted")->capture_default_str();
  query->add_option("--epsilon", options->query.cost.epsilon, "Spent by each query")->required();
  query->add_option("--delta", options->query.cost.delta,
                    "Spent by each query, where the mechanism has one: the Gaussian ones");
  query
      ->add_option("--mechanism", options->mechanism,
                   MechanismNames() + "; published-... is no proven guarantee")
      ->capture_default_str();
  query->add_option("--radius", options->query.cost.radius,
                    "Inference Privacy (lap-output, gauss-output, gauss-input): hides the features "
                    "among all within this distance, not the class");
  query
      ->add_option("--private-iterations", options->query.cost.private_iterations,
                   "Iterations that see the target, with noise after each")
      ->capture_default_str();
  query
      ->add_option("--post-process", options->post_process,
                   "Where the iterations after the noise run: client or server")
      ->capture_default_str();
  query->add_flag("--payloads", options->query.with_payloads, "Fetch payloads, for every slot");
  query->add_option("--dummies", options->dummies_file,
                    "Vectors of your own to hide among; the anchors if absent");
  query->add_option("--dummy-labels", options->dummy_labels_file, "Their labels");
  query->add_option(
      "--compare-images", options->compare_images,
      "The gallery's pictures on this machine, to show what a search without privacy finds");
  query->add_option("--report", options->report_file,
                    "Write an HTML report with pictures and plots");
  query->callback([&context, options] {
    context.run = [&context, options] { return Query(context, *options); };
  });
}

}  // namespace privatemail::cli
