#include "client/cli/budget.h"

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/flags.h"
#include "client/search/batch.h"
#include "client/search/charge_text.h"
#include "client/search/result_json.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client::cli {
namespace {

struct BudgetOptions {
  std::string name;
  std::string operator_name;             // of `set`: instead of a collection
  std::optional<Accounting> accounting;  // absent: unchanged
  double epsilon = 0;
  std::optional<double> delta;  // absent: unchanged

  Budget After(const LedgerEntry& former) const {
    return {epsilon, delta.value_or(former.granted.value_or(Budget()).delta)};
  }
};

const std::map<std::string, Accounting> kAccountingNames = {{"basic", Accounting::kBasic},
                                                            {"gaussian", Accounting::kGaussian}};

const std::map<std::string, LedgerChange::Kind> kKindNames = {
    {"grant", LedgerChange::Kind::kGrant},
    {"charge", LedgerChange::Kind::kCharge},
    {"operator-grant", LedgerChange::Kind::kOperatorGrant}};

// The accounting with the smaller epsilon at the granted delta, among those that a grant may choose
// now; both hold if all charges do.
Accounting CheaperAccounting(const LedgerEntry& entry) {
  if (entry.pure_releases > 0) return entry.accounting;  // Ledger::Grant refuses another
  return entry.granted.has_value() && entry.SpentBy(Accounting::kGaussian).epsilon <
                                          entry.SpentBy(Accounting::kBasic).epsilon
             ? Accounting::kGaussian
             : Accounting::kBasic;
}

}  // namespace

nlohmann::json ToJson(const LedgerChange& change) {
  nlohmann::json json = {{"at", change.made_at},
                         {"kind", NameIn(kKindNames, change.kind)},
                         {"epsilon", change.epsilon},
                         {"delta", change.delta}};
  if (!change.server.empty()) json["server"] = change.server;
  if (change.kind == LedgerChange::Kind::kOperatorGrant) json["operator"] = change.collection;
  if (change.kind != LedgerChange::Kind::kCharge) {
    json["accounting"] = NameIn(kAccountingNames, change.accounting);
  } else {
    json["gaussian_mu"] = OrNull(change.gaussian_mu.has_value(), change.gaussian_mu.value_or(0));
    json["neighbours"] = change.neighbours;
    json["proven"] = change.proven;
    json["source"] = change.source;
  }
  return json;
}

namespace {

nlohmann::json EntryToJson(const LedgerEntry& entry) {
  return {{"granted", OrNull(entry.granted.has_value(), ToJson(entry.granted.value_or(Budget())))},
          {"accounting", NameIn(kAccountingNames, entry.accounting)},
          {"spent", ToJson(entry.spent())},
          {"spent_basic", ToJson(entry.SpentBy(Accounting::kBasic))},
          {"spent_gaussian", ToJson(entry.SpentBy(Accounting::kGaussian))},
          {"cheaper", NameIn(kAccountingNames, CheaperAccounting(entry))},
          {"all_proven", entry.all_proven},
          {"same_neighbours", entry.same_neighbours},
          {"neighbours", OrNull(!entry.neighbours.empty(), entry.neighbours)},
          {"left", ToJson(entry.left())},
          {"releases", entry.releases}};
}

nlohmann::json OperatorToJson(const OperatorEntry& entry) {
  nlohmann::json json = EntryToJson(entry.sum);
  json["operator"] = entry.name;
  return json;
}

void AddOperators(const std::vector<OperatorEntry>& operators, Result* result) {
  nlohmann::json& rows = result->json["operators"] = nlohmann::json::array();
  for (const OperatorEntry& one : operators) rows.push_back(OperatorToJson(one));
  result->columns["operators"] = {"operator", "granted", "spent", "left", "accounting", "releases"};
  result->brief.push_back("operators");
}

}  // namespace

absl::StatusOr<Result> BudgetReport(const v1::GetCollectionResponse& collection,
                                    const std::string& server, Ledger& ledger) {
  const std::string& uuid = collection.parameters().collection_uuid();
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger.Show(uuid));
  PM_ASSIGN_OR_RETURN(const std::vector<OperatorEntry> operators,
                      ledger.ShowOperators(uuid, server));
  Result result{.json = EntryToJson(entry), .brief = {"granted", "spent", "left", "releases"}};
  result.json["collection"] = collection.name();
  result.json["uuid"] = uuid;
  AddOperators(operators, &result);
  if (!entry.granted.has_value()) {
    const bool is_encrypted = OfferedSchemes(collection.parameters()) ==
                              std::vector<std::string>{NameOf(Scheme::kEncrypted)};
    result.hint = is_encrypted
                      ? "the searches of this collection are encrypted and need no budget"
                      : absl::StrCat("every release is refused: run `privatemail budget set ",
                                     collection.name(), " --epsilon E --delta D`");
  }
  return result;
}

namespace {

// Budgets belong to the UUID of a collection, not to a name or address.
absl::StatusOr<v1::GetCollectionResponse> CollectionOf(const Context& context,
                                                       const std::string& name) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  return transport.GetCollection(name);
}

void WarnIfNothingIsLeft(const LedgerEntry& entry) {
  const bool has_epsilon = entry.left().epsilon > 0;
  if (has_epsilon && (entry.accounting == Accounting::kGaussian || entry.Affords({}))) return;
  Warn(absl::StrCat("nothing is left of this budget: ",
                    has_epsilon ? absl::StrCat("delta ", entry.spent().delta)
                                : absl::StrCat("epsilon ", entry.spent().epsilon),
                    " is spent already, so every release is refused until more is granted"));
}

void WarnIfLarge(double epsilon) {
  if (const std::string text = GrantText(epsilon); !text.empty()) Warn(text);
}

// Needs no answer of the server, which is known as it is trusted.
absl::StatusOr<Result> SetOperator(const Context& context, const BudgetOptions& options) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  const std::string server = transport.identity();
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context.state_folder));
  const std::string& name = options.operator_name;
  PM_ASSIGN_OR_RETURN(const OperatorEntry former, ledger->ShowOperator(name));
  PM_RETURN_IF_ERROR(ledger->GrantOperator(name, server, options.After(former.sum),
                                           options.accounting.value_or(former.sum.accounting)));
  PM_ASSIGN_OR_RETURN(const OperatorEntry entry, ledger->ShowOperator(name));
  WarnIfNothingIsLeft(entry.sum);
  WarnIfLarge(options.epsilon);
  Result result{.json = OperatorToJson(entry),
                .brief = {"operator", "server", "granted", "spent", "left", "releases"}};
  result.json["server"] = server;
  return result;
}

// Every collection and operator of the ledger, which knows collections by their UUIDs alone and
// needs no server.
absl::StatusOr<Result> ShowAll(const Context& context) {
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context.state_folder));
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> uuids, ledger->Collections());
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& uuid : uuids) {
    PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger->Show(uuid));
    PM_ASSIGN_OR_RETURN(const std::vector<LedgerChange> changes, ledger->History(uuid));
    nlohmann::json& row = rows.emplace_back(EntryToJson(entry));
    row["uuid"] = uuid;
    row["server"] = changes.back().server;
    row["latest"] = changes.back().made_at;
  }
  PM_ASSIGN_OR_RETURN(const std::vector<OperatorEntry> operators, ledger->ShowOperators("", ""));
  const bool is_empty = rows.empty() && operators.empty();
  Result result{
      .json = {{"collections", rows}},
      .text = is_empty ? absl::StrCat("the ledger of ", context.state_folder, " is empty\n") : "",
      .hint = rows.empty() ? "" : "`privatemail collection info NAME -v` shows the uuid of a name",
      .columns = {{"collections", {"uuid", "left", "spent", "releases", "latest"}}},
      .brief = {"collections"}};
  AddOperators(operators, &result);
  return result;
}

absl::StatusOr<Result> Show(const Context& context, const BudgetOptions& options) {
  if (options.name.empty()) return ShowAll(context);
  const auto found = CollectionOf(context, options.name);
  if (absl::IsUnavailable(found.status()) || absl::IsDeadlineExceeded(found.status())) {
    return WithNote(found.status(),
                    "; only the server knows the uuid of a name: without NAME this command shows "
                    "all collections of the ledger, by uuid");
  }
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection, found);
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context.state_folder));
  PM_ASSIGN_OR_RETURN(Result report,
                      BudgetReport(collection, ServerIdentity(context.connection), *ledger));
  if (report.json["granted"].is_null()) {
    Warn(absl::StrCat("this is the ledger of ", context.state_folder,
                      ", as --state or PRIVATEMAIL_STATE names it"));
  }
  return report;
}

absl::StatusOr<Result> Set(const Context& context, const BudgetOptions& options) {
  if (!options.operator_name.empty()) return SetOperator(context, options);
  PM_ASSIGN_OR_RETURN(const auto collection, CollectionOf(context, options.name));
  const std::string& uuid = collection.parameters().collection_uuid();
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context.state_folder));
  PM_ASSIGN_OR_RETURN(const LedgerEntry former, ledger->Show(uuid));
  const std::string server = ServerIdentity(context.connection);
  PM_RETURN_IF_ERROR(ledger->Grant(uuid, options.After(former),
                                   options.accounting.value_or(former.accounting), server));
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger->Show(uuid));
  WarnIfNothingIsLeft(entry);
  WarnIfLarge(options.epsilon);
  PM_ASSIGN_OR_RETURN(Result report, BudgetReport(collection, server, *ledger));
  if (report.json["operators"].empty()) PM_RETURN_IF_ERROR(WarnIfUncounted(*ledger, Warn));
  return report;
}

absl::StatusOr<Result> History(const Context& context, const BudgetOptions& options) {
  PM_ASSIGN_OR_RETURN(const auto collection, CollectionOf(context, options.name));
  const std::string& uuid = collection.parameters().collection_uuid();
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context.state_folder));
  PM_ASSIGN_OR_RETURN(const std::vector<LedgerChange> changes, ledger->History(uuid));
  nlohmann::json rows = nlohmann::json::array();
  for (const LedgerChange& change : changes) rows.push_back(ToJson(change));
  return Result{.json = {{"collection", options.name}, {"uuid", uuid}, {"changes", rows}},
                .columns = {{"changes",
                             {"at", "kind", "operator", "server", "epsilon", "delta", "proven",
                              "neighbours", "source"}}}};
}

}  // namespace

void AddBudgetCommand(CLI::App& app, Context& context) {
  CLI::App* budget = AddCommand(app, "budget", "Show and set the privacy budget of a collection");
  budget->require_subcommand(1);
  const auto add = [&](const char* verb, const char* description, auto run) {
    const auto command = AddCommand(*budget, context, verb, description, run);
    return command.first->add_option("NAME", command.second->name, "The collection");
  };
  add("show",
      "Granted, spent and left. Without NAME of all collections and operators, without the server",
      &Show);
  add("history", "Every grant and every release, oldest first", &History)->required();
  const auto [set, options] =
      AddCommand(*budget, context, "set", "Set the total budget; charges stay", &Set);
  CLI::App* whose = set->add_option_group("whose", "Exactly one of these");
  whose->add_option("NAME", options->name, "The collection");
  whose->add_option("--operator", options->operator_name,
                    "A name of yours for the operator of this server: the budget is the total over "
                    "all collections of all servers that were added so");
  whose->require_option(1);
  set->add_option("--epsilon", options->epsilon, "Total epsilon over the life of the collection")
      ->required();
  set->add_option(
      "--delta", options->delta,
      "Total delta over the life of the collection; if absent as before, at first 0, which pays "
      "for releases without delta only, such as cells");
  AddChoice(
      set, "--accounting", &options->accounting, kAccountingNames,
      "How charges add up: by sums, or by mu, for many releases; if absent as before, at first "
      "basic. Cannot change after releases with delta 0");
}

}  // namespace privatemail::client::cli
