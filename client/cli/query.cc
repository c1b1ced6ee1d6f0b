#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/images.h"
#include "client/cli/plan_file.h"
#include "client/cli/query_cells.h"
#include "client/cli/query_encrypted.h"
#include "client/cli/query_joint.h"
#include "client/flags/names.h"
#include "client/queries/filter_json.h"
#include "client/queries/scheme.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"
#include "common/wire/parameters_proto.h"

namespace privatemail::client::cli {
namespace {

constexpr char kFilterHelp[] =
    "Only items whose payload matches. Encrypted: applied on this machine, the server does not see "
    "it. Joint: SENT IN CLEAR, the server learns the filter, and epsilon does not "
    "cover it; it must not depend on the target: ";

// Options that the cells scheme does not have. Whether it takes labels depends on the collection.
constexpr const char* kJointFlags[] = {
    "--delta",          "--mechanism", "--radius",  "--private-iterations",
    "--post-process",   "--filter",    "--dummies", "--dummy-labels",
    "--compare-images", "--report",    "--classes", "--features-folder"};

// Options that searches under encryption do not have.
constexpr const char* kNotEncryptedFlags[] = {"--epsilon",
                                              "--delta",
                                              "--mechanism",
                                              "--radius",
                                              "--private-iterations",
                                              "--post-process",
                                              "--dummies",
                                              "--dummy-labels",
                                              "--report",
                                              "--compare-images",
                                              "--classes",
                                              "--features-folder",
                                              "--labels",
                                              kAcceptMisalignmentFlag};

// Options of noise. Given without --scheme, they could be meant for any scheme that takes them.
constexpr const char* kNoiseFlags[] = {"--epsilon", "--delta", "--mechanism"};

// Options that a plan replaces.
constexpr const char* kPlannedFlags[] = {"--scheme", "--epsilon"};

struct QueryCommandOptions {
  std::optional<Scheme> scheme = std::nullopt;  // of --scheme
  const CLI::App* command = nullptr;
  bool gives_k = false;
  bool gives_epsilon = false;
  JointQuery joint;  // with the options of all schemes
  CellsOptions cells;
  std::string plan_file;  // empty: none
};

absl::Status QueryAsPlanned(const Context& context, const QueryCommandOptions& options) {
  PM_ASSIGN_OR_RETURN(const PlannedQuery plan, ReadPlan(options.plan_file));
  if (plan.collection != options.joint.collection) {
    return absl::InvalidArgumentError(
        absl::StrCat("--plan ", options.plan_file, " must be for collection ",
                     options.joint.collection, ", but is for ", plan.collection));
  }
  return QueryCells(context, {.collection = plan.collection,
                              .fingerprint = plan.fingerprint,
                              .targets = options.joint.targets,
                              .cells = {.partition = plan.cost.partition,
                                        .ask = plan.cost.ask,
                                        .focus = plan.cost.focus,
                                        .items = plan.items},
                              .epsilon = plan.cost.epsilon,
                              .k = options.gives_k ? options.joint.query.k : plan.k,
                              .with_payloads = options.joint.query.with_payloads,
                              .accept_misalignment = options.joint.accept_misalignment});
}

// The first given option that the scheme or the plan does not take; empty: none.
std::string FindForeignOption(const QueryCommandOptions& options, Scheme scheme) {
  const CLI::App& query = *options.command;
  const auto first = [&](std::initializer_list<absl::Span<const char* const>> groups) {
    for (const absl::Span<const char* const> flags : groups) {
      if (std::string foreign = FirstGiven(query, flags); !foreign.empty()) return foreign;
    }
    return std::string();
  };
  if (!options.plan_file.empty()) {
    return first({kPlannedFlags, kCellsFlags, kJointFlags});
  }
  switch (scheme) {
    case Scheme::kEncrypted:
      return first({kNotEncryptedFlags, kCellsFlags});
    case Scheme::kCells:
      return first({kJointFlags});
    case Scheme::kJoint:
      return first({kCellsFlags});
  }
  return "";
}

absl::Status CheckNoForeignOption(const QueryCommandOptions& options, Scheme scheme) {
  const std::string foreign = FindForeignOption(options, scheme);
  if (foreign.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      foreign, " is of no use with ",
      options.plan_file.empty() ? "--scheme " + NameOf(scheme) : "--plan", ": expected none"));
}

// Nobody changes the scheme unknowingly: commands that were written for another default are
// refused.
absl::Status CheckNoNoiseOption(const QueryCommandOptions& options,
                                const PublicParameters& parameters) {
  const std::string given = FirstGiven(*options.command, kNoiseFlags);
  if (given.empty()) return absl::OkStatus();
  std::vector<std::string> takers;
  for (const std::string& scheme : OfferedSchemes(parameters)) {
    const bool takes = given == "--epsilon" ? scheme != NameOf(Scheme::kEncrypted)
                                            : scheme == NameOf(Scheme::kJoint);
    if (takes) takers.push_back(scheme);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      given, " cannot be given without --scheme: collection ", Printable(options.joint.collection),
      " is searched by encrypted, which takes none; ",
      takers.empty() ? "the collection offers no scheme that does"
                     : absl::StrCat("schemes that do: ", absl::StrJoin(takers, ", "))));
}

// The default scheme of the collection, which the server is asked for.
absl::StatusOr<Scheme> FetchDefaultScheme(const Context& context,
                                          const QueryCommandOptions& options) {
  // What no collection accepts is refused before any call.
  const TargetOptions& targets = options.joint.targets;
  if (targets.vectors_file.empty() || !targets.rows.empty()) {
    const bool encrypted = FirstGiven(*options.command, kNoiseFlags).empty();
    PM_RETURN_IF_ERROR(ReadRows(targets, encrypted ? Metric::kDot : Metric::kCosine).status());
  }
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection,
                      transport.GetCollection(options.joint.collection));
  const absl::StatusOr<PublicParameters> parameters = FromProto(collection.parameters());
  if (!parameters.ok()) return absl::DataLossError(parameters.status().message());
  const Scheme scheme = DefaultScheme(OfferedSchemes(*parameters));
  if (scheme == Scheme::kEncrypted) {
    PM_RETURN_IF_ERROR(CheckNoNoiseOption(options, *parameters));
  }
  return scheme;
}

absl::Status CheckHasEpsilon(const QueryCommandOptions& options, Scheme scheme) {
  if (options.gives_epsilon || scheme == Scheme::kEncrypted) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--epsilon is required with scheme ", NameOf(scheme)));
}

absl::Status Query(const Context& context, const QueryCommandOptions& options) {
  if (!options.plan_file.empty()) {
    PM_RETURN_IF_ERROR(CheckNoForeignOption(options, Scheme::kCells));
    return QueryAsPlanned(context, options);
  }
  Scheme scheme = options.scheme.value_or(Scheme::kJoint);
  if (!options.scheme.has_value()) {
    PM_ASSIGN_OR_RETURN(scheme, FetchDefaultScheme(context, options));
  }
  PM_RETURN_IF_ERROR(CheckNoForeignOption(options, scheme));
  PM_RETURN_IF_ERROR(CheckHasEpsilon(options, scheme));
  const JointQuery& joint = options.joint;
  switch (scheme) {
    case Scheme::kEncrypted:
      return QueryEncrypted(context, {.collection = joint.collection,
                                      .targets = joint.targets,
                                      .k = joint.query.k,
                                      .with_payloads = joint.query.with_payloads,
                                      .filter = joint.filter});
    case Scheme::kCells:
      return QueryCells(context, {.collection = joint.collection,
                                  .targets = joint.targets,
                                  .cells = options.cells,
                                  .epsilon = joint.query.cost.epsilon,
                                  .k = joint.query.k,
                                  .with_payloads = joint.query.with_payloads,
                                  .accept_misalignment = joint.accept_misalignment});
    case Scheme::kJoint:
      break;
  }
  return QueryJoint(context, joint);
}

void AddScheme(CLI::App* query, std::optional<Scheme>* scheme) {
  // The option refers to it.
  static const std::map<std::string, std::optional<Scheme>> names(kSchemeNames.begin(),
                                                                  kSchemeNames.end());
  AddChoice(
      query, "--scheme", scheme, names,
      "How the target is hidden; by default the first of encrypted, joint and cells that the "
      "collection offers. encrypted: exact, the server computes on ciphertexts and learns nothing; "
      "without noise or budget. joint: noise on an embedding; finds the class. cells: a noisy "
      "choice of cells, whose items are ranked locally; needs a collection with cells");
}

// Mechanism and privacy cost.
void AddReleaseOptions(CLI::App* query, JointQuery* joint) {
  query->add_option("--epsilon", joint->query.cost.epsilon,
                    "Spent by each query; required for joint and cells without --plan. Not for "
                    "encrypted");
  query->add_option("--delta", joint->delta, "Spent by each query, for the Gaussian mechanisms");
  query
      ->add_option("--mechanism", joint->mechanism,
                   absl::StrCat(MechanismNames(), "; published-... is no proven guarantee"))
      ->capture_default_str();
  query->add_option("--radius", joint->radius,
                    "Inference Privacy (lap-output, gauss-output, gauss-input): hides the features "
                    "among all within this distance, not the class. The answer says how many pairs "
                    "of anchors are within it");
  query
      ->add_option("--private-iterations", joint->query.cost.private_iterations,
                   "Joint: number of iterations on the target, with noise after each")
      ->capture_default_str();
  query
      ->add_option("--post-process", joint->post_process,
                   "Joint: the party that runs the iterations after the noise, client or server")
      ->capture_default_str();
  query->add_option(
      "--dummies", joint->dummies_file,
      "Public vectors of your own to draw dummies from; the anchors if absent. Epsilon "
      "protects the target, not these; not with gauss-input");
  query->add_option("--dummy-labels", joint->dummy_labels_file, "Their labels");
}

void AddReportOptions(CLI::App* query, JointQuery* joint) {
  query->add_option(
      "--compare-images", joint->compare_images,
      "The gallery's pictures on this machine, to show the matches of a search without privacy");
  AddFeaturesFolderOption(query, &joint->targets.extractor);
  query->add_option("--report", joint->report_file, "Write an HTML report with pictures and plots");
}

}  // namespace

void AddQueryCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<QueryCommandOptions>();
  JointQuery& joint = options->joint;
  CLI::App* query = AddCommand(
      app, "query", "Find the items nearest to a private target, which the server does not learn");
  query->add_option("NAME", joint.collection, "The collection")->required();
  AddScheme(query, &options->scheme);
  AddTargetOptions(query, &joint.targets);
  query->add_option("-k", joint.query.k, "Number of matches")->capture_default_str();
  query
      ->add_option(
          "--classes", joint.classes,
          "Joint, without --label: the number of classes whose matches fill "
          "-k, those that fit the anchors best. auto takes one class if it is sure, more if "
          "not. The server sends matches of every class anyway, so this costs nothing and "
          "it learns nothing")
      ->capture_default_str()
      ->excludes("--label")
      ->excludes("--labels");
  AddReleaseOptions(query, &joint);
  query->add_option(
      "--plan", options->plan_file,
      "File of `privatemail plan --out`: scheme cells with the plan's settings, epsilon "
      "and, unless given, -k");
  query->add_flag("--payloads", joint.query.with_payloads, "Fetch payloads of every slot or item");
  AddCellsOptions(query, &options->cells);
  AddOwnAnchorsOption(query, &joint.targets);
  query->add_flag(kAcceptMisalignmentFlag, joint.accept_misalignment,
                  "Query although public data alone shows that the answer will hardly be of the "
                  "target's class");
  query->add_option("--filter", joint.filter, absl::StrCat(kFilterHelp, kFilterForm));
  AddReportOptions(query, &joint);
  query->footer(absl::StrCat(
      "Choose -k, --scheme, --epsilon, --delta, --mechanism, --radius and the number of cells or "
      "items without regard to the target, as --filter: the server sees them, or can tell them "
      "from the noise.\n",
      "Joint finds items of a class, in no useful order: their distances are of the server's "
      "embedding and compare within one answer only. Encrypted and cells find the nearest.\n",
      "Encrypted: --label and --filter choose among the matches on this machine, and the server "
      "does not see them. Without --row all rows of --vectors are searched for. What you do with a "
      "match, such as opening it at the operator's site, is seen by whoever serves it.\n",
      "In JSON, `squared_distance` of a match is the squared Euclidean distance; `distance` is its "
      "older name.\n",
      query->get_footer()));
  query->callback([&context, options, query] {
    options->gives_epsilon = !query->get_option("--epsilon")->empty();
    options->command = query;
    options->gives_k = !query->get_option("-k")->empty();
    context.run = [&context, options] { return Query(context, *options); };
  });
}

}  // namespace privatemail::client::cli
