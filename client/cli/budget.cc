#include <iostream>
#include <limits>

#include "client/cli/command.h"
#include "common/base/status_macros.h"

namespace privatemail::cli {
namespace {

struct BudgetOptions {
  std::string name;
  Budget budget{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
};

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
           std::cout << name << " (" << uuid << ")\n";
           if (entry.granted.has_value()) {
             std::cout << "  granted epsilon " << entry.granted->epsilon << " delta "
                       << entry.granted->delta << "\n";
           } else {
             std::cout << "  no budget is set: releases are refused\n";
           }
           std::cout << "  spent   epsilon " << entry.spent.epsilon << " delta "
                     << entry.spent.delta << " in " << entry.releases
                     << " releases\n  left    epsilon " << entry.left().epsilon << " delta "
                     << entry.left().delta << "\n";
         });
  return absl::OkStatus();
}

// The server is asked for the collection's UUID only: budgets belong to it, not to a name or
// address.
absl::Status Run(const Context& context, const BudgetOptions& options, bool set) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection,
                      transport.GetCollection(options.name));
  const std::string& uuid = collection.parameters().collection_uuid();
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context));
  if (set) PM_RETURN_IF_ERROR(ledger->Grant(uuid, options.budget));
  return Report(context, options.name, uuid, *ledger);
}

}  // namespace

void AddBudgetCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<BudgetOptions>();
  CLI::App* budget = AddCommand(app, "budget", "What may be spent on a collection, and what is");
  budget->require_subcommand(1);
  CLI::App* show = AddCommand(*budget, "show", "Granted, spent and left");
  show->add_option("NAME", options->name)->required();
  show->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options, false); };
  });
  CLI::App* set = AddCommand(*budget, "set", "Grant a total; what is spent stays spent");
  set->add_option("NAME", options->name)->required();
  set->add_option("--epsilon", options->budget.epsilon, "Total epsilon over the collection's life")
      ->required();
  set->add_option("--delta", options->budget.delta, "Total delta over the collection's life")
      ->required();
  set->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options, true); };
  });
}

}  // namespace privatemail::cli
