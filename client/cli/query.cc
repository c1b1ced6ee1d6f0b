#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/images.h"
#include "client/cli/plan_file.h"
#include "client/cli/query_cells.h"
#include "client/cli/query_slots.h"
#include "client/flags/names.h"
#include "client/queries/filter_json.h"
#include "client/queries/scheme.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

constexpr char kFilterHelp[] =
    "Only items whose payload matches. SENT IN CLEAR: the server learns the filter, and epsilon "
    "does not cover it; it must not depend on the target: ";

// Options of the joint scheme that the anchored one does not have.
constexpr const char* kIterationFlags[] = {"--private-iterations", "--post-process"};

// Options that the cells scheme does not have. Whether it takes labels depends on the collection.
constexpr const char* kSlotFlags[] = {
    "--delta",          "--mechanism", "--radius",  "--private-iterations",
    "--post-process",   "--filter",    "--dummies", "--dummy-labels",
    "--compare-images", "--report",    "--classes", "--features-folder"};

// Options that a plan replaces.
constexpr const char* kPlannedFlags[] = {"--scheme", "--epsilon"};

struct QueryCommandOptions {
  Scheme scheme = Scheme::kJoint;
  std::string foreign;  // a given option of another scheme; empty: none
  bool gives_k = false;
  SlotsQuery slots;  // with the options of all schemes
  CellsOptions cells;
  std::string plan_file;  // empty: none
};

absl::Status CheckScheme(const QueryCommandOptions& options) {
  if (options.foreign.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(options.foreign, " is of no use with ",
                   options.plan_file.empty() ? "--scheme " + NameOf(options.scheme) : "--plan",
                   ": expected none"));
}

absl::Status QueryAsPlanned(const Context& context, const QueryCommandOptions& options) {
  PM_ASSIGN_OR_RETURN(const PlannedQuery plan, ReadPlan(options.plan_file));
  if (plan.collection != options.slots.collection) {
    return absl::InvalidArgumentError(
        absl::StrCat("--plan ", options.plan_file, " must be for collection ",
                     options.slots.collection, ", but is for ", plan.collection));
  }
  return QueryCells(context, {.collection = plan.collection,
                              .fingerprint = plan.fingerprint,
                              .targets = options.slots.targets,
                              .cells = {.partition = plan.cost.partition,
                                        .ask = plan.cost.ask,
                                        .focus = plan.cost.focus,
                                        .items = plan.items},
                              .epsilon = plan.cost.epsilon,
                              .k = options.gives_k ? options.slots.query.k : plan.k,
                              .with_payloads = options.slots.query.with_payloads,
                              .accept_misalignment = options.slots.accept_misalignment});
}

absl::Status Query(const Context& context, const QueryCommandOptions& options) {
  PM_RETURN_IF_ERROR(CheckScheme(options));
  if (!options.plan_file.empty()) return QueryAsPlanned(context, options);
  SlotsQuery slots = options.slots;
  slots.scheme = options.scheme;
  if (options.scheme != Scheme::kCells) return QuerySlots(context, std::move(slots));
  return QueryCells(context, {.collection = slots.collection,
                              .targets = slots.targets,
                              .cells = options.cells,
                              .epsilon = slots.query.cost.epsilon,
                              .k = slots.query.k,
                              .with_payloads = slots.query.with_payloads,
                              .accept_misalignment = slots.accept_misalignment});
}

// The first given option that the scheme or the plan does not take; empty: none.
std::string FindForeignOption(const CLI::App& query, const QueryCommandOptions& options) {
  const auto first = [&](std::initializer_list<absl::Span<const char* const>> groups) {
    for (const absl::Span<const char* const> flags : groups) {
      if (std::string foreign = FirstGiven(query, flags); !foreign.empty()) return foreign;
    }
    return std::string();
  };
  if (!options.plan_file.empty()) {
    return first({kPlannedFlags, kCellsFlags, kSlotFlags});
  }
  switch (options.scheme) {
    case Scheme::kEncrypted:
      break;
    case Scheme::kCells:
      return first({kSlotFlags});
    case Scheme::kAnchored:
      return first({kCellsFlags, kIterationFlags});
    case Scheme::kJoint:
      return first({kCellsFlags});
  }
  return "";
}

// Mechanism and privacy cost.
void AddReleaseOptions(CLI::App* query, SlotsQuery* slots) {
  query->add_option("--epsilon", slots->query.cost.epsilon,
                    "Spent by each query; required without --plan");
  query->add_option("--delta", slots->delta, "Spent by each query, for the Gaussian mechanisms");
  query
      ->add_option(
          "--mechanism", slots->mechanism,
          absl::StrCat(MechanismNames(), "; published-... is no proven guarantee. Anchored: ",
                       AnchoredMechanismNames()))
      ->capture_default_str();
  query->add_option("--radius", slots->radius,
                    "Inference Privacy (lap-output, gauss-output, gauss-input): hides the features "
                    "among all within this distance, not the class. The answer says how many pairs "
                    "of anchors are within it");
  query
      ->add_option("--private-iterations", slots->query.cost.private_iterations,
                   "Joint: number of iterations on the target, with noise after each")
      ->capture_default_str();
  query
      ->add_option("--post-process", slots->post_process,
                   "Joint: the party that runs the iterations after the noise, client or server")
      ->capture_default_str();
  query->add_option(
      "--dummies", slots->dummies_file,
      "Public vectors of your own to draw dummies from; the anchors if absent. Epsilon "
      "protects the target, not these; not with gauss-input");
  query->add_option("--dummy-labels", slots->dummy_labels_file, "Their labels");
}

void AddReportOptions(CLI::App* query, SlotsQuery* slots) {
  query->add_option(
      "--compare-images", slots->compare_images,
      "The gallery's pictures on this machine, to show the matches of a search without privacy");
  AddFeaturesFolderOption(query, &slots->targets.extractor);
  query->add_option("--report", slots->report_file, "Write an HTML report with pictures and plots");
}

}  // namespace

void AddQueryCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<QueryCommandOptions>();
  SlotsQuery& slots = options->slots;
  CLI::App* query = AddCommand(
      app, "query", "Find the items nearest to a private target, which the server does not learn");
  query->add_option("NAME", slots.collection, "The collection")->required();
  AddChoice(
      query, "--scheme", &options->scheme, kSchemeNames,
      "How the target is hidden. joint: noise on an embedding; finds the class. anchored: noise on "
      "one row per class, and the anchors' exact coordinates; finds the class. cells: a noisy "
      "choice of cells, whose items are ranked locally; needs a collection with cells");
  AddTargetOptions(query, &slots.targets);
  query->add_option("-k", slots.query.k, "Number of matches")->capture_default_str();
  query
      ->add_option(
          "--classes", slots.classes,
          "Joint and anchored, without --label: the number of classes whose matches fill "
          "-k, those that fit the anchors best. auto takes one class if it is sure, more if "
          "not. The server sends matches of every class anyway, so this costs nothing and "
          "it learns nothing")
      ->capture_default_str()
      ->excludes("--label")
      ->excludes("--labels");
  AddReleaseOptions(query, &slots);
  query->add_option(
      "--plan", options->plan_file,
      "File of `privatemail plan --out`: scheme cells with the plan's settings, epsilon "
      "and, unless given, -k");
  query->add_flag("--payloads", slots.query.with_payloads, "Fetch payloads of every slot or item");
  AddCellsOptions(query, &options->cells);
  AddOwnAnchorsOption(query, &slots.targets);
  query->add_flag(kAcceptMisalignmentFlag, slots.accept_misalignment,
                  "Query although public data alone shows that the answer will hardly be of the "
                  "target's class");
  query->add_option("--filter", slots.filter, absl::StrCat(kFilterHelp, kFilterForm));
  AddReportOptions(query, &slots);
  query->footer(absl::StrCat(
      "Choose -k, --scheme, --epsilon, --delta, --mechanism, --radius and the number of cells or "
      "items without regard to the target, as --filter: the server sees them, or can tell them "
      "from the noise.\n",
      "Joint and anchored find items of a class, in no useful order: their distances are of the "
      "server's embedding and compare within one answer only. Cells find the nearest.\n",
      "In JSON, `squared_distance` of a match is the squared Euclidean distance; `distance` is its "
      "older name.\n",
      query->get_footer()));
  query->callback([&context, options, query] {
    if (options->plan_file.empty() && query->get_option("--epsilon")->empty()) {
      throw CLI::RequiredError("--epsilon");
    }
    options->foreign = FindForeignOption(*query, *options);
    options->gives_k = !query->get_option("-k")->empty();
    context.run = [&context, options] { return Query(context, *options); };
  });
}

}  // namespace privatemail::client::cli
