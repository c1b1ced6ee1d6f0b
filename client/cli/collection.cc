#include <iostream>

#include "client/cli/collection_words.h"
#include "client/cli/command.h"
#include "client/cli/create_collection.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

absl::Status List(const Context& context) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::ListCollectionsResponse response, transport.ListCollections());
  nlohmann::json all = nlohmann::json::array();
  for (const v1::GetCollectionResponse& c : response.collections()) all.push_back(ToJson(c));
  Answer(context, all, [&] {
    for (const v1::GetCollectionResponse& c : response.collections()) Print(c);
    if (response.collections().empty()) std::cout << "no collections\n";
  });
  return absl::OkStatus();
}

absl::Status Info(const Context& context, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse c,
                      transport.GetCollection(name, /*with_changes=*/true));
  nlohmann::json answer = ToJson(c);
  if (c.has_changes())
    answer["changes"] = {{"inserted", c.changes().inserted()},
                         {"updated", c.changes().updated()},
                         {"deleted", c.changes().deleted()}};
  Answer(context, answer, [&] { Print(c); });
  return absl::OkStatus();
}

absl::Status Delete(const Context& context, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::DeleteCollectionResponse response,
                      transport.DeleteCollection(name));
  Answer(context, {{"deleted_items", response.deleted_items()}}, [&] {
    std::cout << "deleted " << name << " with " << Counted(response.deleted_items(), "item")
              << "\n";
  });
  return absl::OkStatus();
}

}  // namespace

void AddCollectionCommand(CLI::App& app, Context& context) {
  CLI::App* collection = AddCommand(app, "collection", "Create, list, show and delete collections");
  collection->require_subcommand(1);
  AddCreateCollectionCommand(*collection, context);
  AddCommand(*collection, "list", "All collections")->callback([&context] {
    context.run = [&context] { return List(context); };
  });
  auto name = std::make_shared<std::string>();
  for (const auto& [verb, description, run] :
       {std::tuple{"info", "Public parameters and counts", &Info},
        std::tuple{"delete", "Delete a collection and its items", &Delete}}) {
    CLI::App* command = AddCommand(*collection, verb, description);
    command->add_option("NAME", *name, "The collection")->required();
    command->callback([&context, name, run = run] {
      context.run = [&context, name, run] { return run(context, *name); };
    });
  }
}

}  // namespace privatemail::client::cli
