// privatemail rank: the nearest of what came back for cells, at no cost.
#include <iomanip>
#include <iostream>
#include <memory>

#include "privatemail/cell_client.h"
#include "client/cli/command.h"
#include "client/cli/kept_items.h"
#include "client/cli/query_cells.h"
#include "client/cli/query_outcome.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/wire/codec.h"

namespace privatemail::client::cli {
namespace {

struct RankOptions {
  std::string name;
  TargetOptions targets;
  int64_t k = 8;
};

absl::Status Rank(const Context& context, const RankOptions& options) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", options.k, 1, kMaxNeighbors));
  PM_ASSIGN_OR_RETURN(const KeptItems kept, LoadKeptItems(context.state_folder, options.name));
  PM_RETURN_IF_ERROR(CheckLabelsOfUse(options.targets, kept.parameters, "`privatemail rank`"));
  PM_ASSIGN_OR_RETURN(const std::vector<NamedTarget> targets,
                      ReadLabelled(options.targets, kept.parameters));
  PM_ASSIGN_OR_RETURN(const auto own_anchors, ReadOwnAnchors(options.targets));
  PM_ASSIGN_OR_RETURN(const CellTargetFactory places,
                      CellTargetFactory::Create(kept.parameters, kept.anchors, own_anchors));
  for (const NamedTarget& target : targets) {
    PM_ASSIGN_OR_RETURN(const CellTarget place,
                        places.Make(target.target.features, options.k, LabelOf(target)));
    PM_ASSIGN_OR_RETURN(const CellQueryResult result, kept.items.FindNearest(place));
    nlohmann::json answer = {{"query", target.name},
                             {"matches", ToJson(result.matches)},
                             {"candidates", result.candidates},
                             {"spent", ToJson(Budget{})},
                             {"items_version", result.items_version}};
    AddPlace(place, target.guessed, &answer);
    Answer(context, answer, [&] {
      std::cout << "query " << Printable(target.name) << "\n";
      PrintMatches(result, kept.parameters);
      PrintPlace(place, target.guessed, kept.parameters);
      std::cout << "  the nearest of " << Counted(result.candidates, "item")
                << " that came back so far, as they were then; nothing was sent or spent\n";
    });
  }
  return absl::OkStatus();
}

}  // namespace

void AddRankCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<RankOptions>();
  CLI::App* rank = AddCommand(
      app, "rank",
      "The nearest of all items that came back for cells so far, without a network and at no cost");
  rank->add_option("NAME", options->name, "The collection, as it was called then")->required();
  AddTargetOptions(rank, &options->targets);
  AddOwnAnchorsOption(rank, &options->targets);
  rank->add_option("-k", options->k, "Matches wanted")->capture_default_str();
  rank->footer(
      "Whether you ask the server after a look at this is seen by the server: to hide what you "
      "hold, do not let it depend on what you find. `privatemail query --scheme cells` keeps what "
      "comes back in the folder of --state, 64 MiB a collection at most, and where items are "
      "coordinates (--cell-code none) those of the last build that answered, with the anchors. "
      "Items may have changed or been deleted since they came. "
      "Labels are for such collections alone.");
  rank->callback([&context, options] {
    context.run = [&context, options] { return Rank(context, *options); };
  });
}

}  // namespace privatemail::client::cli
