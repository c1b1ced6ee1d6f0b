#include <iostream>
#include <limits>

#include "client/cli/command.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::cli {
namespace {

struct BudgetOptions {
  std::string name;
  Budget budget{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
};

nlohmann::json RowOf(const LedgerChange& change) {
  const bool grant = change.kind == LedgerChange::Kind::kGrant;
  nlohmann::json json = {{"at", change.made_at},
                         {"kind", grant ? "grant" : "charge"},
                         {"epsilon", change.epsilon},
                         {"delta", change.delta}};
  if (!grant) {
    json["neighbours"] = change.neighbours;
    json["proven"] = change.proven;
    json["source"] = change.source;
  }
  return json;
}

absl::Status Report(const Context& context, const std::string& name, const std::string& uuid,
                    Ledger& ledger) {
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger.Show(uuid));
  nlohmann::json granted;
  if (entry.granted.has_value()) granted = ToJson(*entry.granted);
  Answer(context,
         {{"collection", name},
          {"uuid", uuid},
          {"granted", granted},
          {"spent", ToJson(entry.spent)},
          {"left", ToJson(entry.left())},
          {"releases", entry.releases}},
         [&] {
           std::cout << name << " (" << Printable(uuid) << ")\n";
           if (entry.granted.has_value()) {
             std::cout << "  granted epsilon " << entry.granted->epsilon << " delta "
                       << entry.granted->delta << "\n";
           } else {
             std::cout << "  no budget is set: releases are refused until privatemail budget set "
                       << name << " --epsilon E --delta D\n";
           }
           std::cout << "  spent   epsilon " << entry.spent.epsilon << " delta "
                     << entry.spent.delta << " in "
                     << Counted(static_cast<uint64_t>(entry.releases), "release") << "\n  left    "
                     << LeftOf(entry) << "\n";
         });
  return absl::OkStatus();
}

// The server is asked for the collection's UUID only: budgets belong to it, not to a name or
// address.
absl::StatusOr<std::string> UuidOf(const Context& context, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection, transport.GetCollection(name));
  return collection.parameters().collection_uuid();
}

absl::Status Show(const Context& context, const BudgetOptions& options) {
  PM_ASSIGN_OR_RETURN(const std::string uuid, UuidOf(context, options.name));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context));
  return Report(context, options.name, uuid, *ledger);
}

absl::Status Set(const Context& context, const BudgetOptions& options) {
  PM_ASSIGN_OR_RETURN(const std::string uuid, UuidOf(context, options.name));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context));
  PM_RETURN_IF_ERROR(ledger->Grant(uuid, options.budget));
  return Report(context, options.name, uuid, *ledger);
}

absl::Status History(const Context& context, const BudgetOptions& options) {
  PM_ASSIGN_OR_RETURN(const std::string uuid, UuidOf(context, options.name));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context));
  PM_ASSIGN_OR_RETURN(const std::vector<LedgerChange> changes, ledger->History(uuid));
  nlohmann::json rows = nlohmann::json::array();
  for (const LedgerChange& change : changes) rows.push_back(RowOf(change));
  Answer(context, {{"collection", options.name}, {"uuid", uuid}, {"changes", rows}}, [&] {
    std::cout << options.name << " (" << Printable(uuid) << "), oldest first\n";
    for (const LedgerChange& change : changes) {
      const bool grant = change.kind == LedgerChange::Kind::kGrant;
      std::cout << "  " << change.made_at << (grant ? "  granted " : "  spent   ") << "epsilon "
                << change.epsilon << " delta " << change.delta;
      if (!grant)
        std::cout << "  " << (change.proven ? "proven: " : "NOT PROVEN: ") << change.source;
      std::cout << "\n";
    }
  });
  return absl::OkStatus();
}

}  // namespace

void AddBudgetCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<BudgetOptions>();
  CLI::App* budget = AddCommand(app, "budget", "What may be spent on a collection, and what is");
  budget->require_subcommand(1);
  CLI::App* show = AddCommand(*budget, "show", "Granted, spent and left");
  show->add_option("NAME", options->name, "The collection")->required();
  show->callback([&context, options] {
    context.run = [&context, options] { return Show(context, *options); };
  });
  CLI::App* history = AddCommand(*budget, "history", "Every grant and every release, oldest first");
  history->add_option("NAME", options->name, "The collection")->required();
  history->callback([&context, options] {
    context.run = [&context, options] { return History(context, *options); };
  });
  CLI::App* set = AddCommand(*budget, "set", "Grant a total; what is spent stays spent");
  set->add_option("NAME", options->name, "The collection")->required();
  set->add_option("--epsilon", options->budget.epsilon, "Total epsilon over the collection's life")
      ->required();
  set->add_option("--delta", options->budget.delta, "Total delta over the collection's life")
      ->required();
  set->callback([&context, options] {
    context.run = [&context, options] { return Set(context, *options); };
  });
}

}  // namespace privatemail::cli
