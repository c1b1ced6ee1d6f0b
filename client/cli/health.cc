#include <iostream>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

absl::Status Health(Context& context, const std::string& collection) {
  const absl::StatusOr<Transport> transport = Transport::Create(context.connection);
  if (!transport.ok()) {
    // Nobody was asked: told as failure, it would make a supervisor restart a server that is well.
    TellError(context, transport.status());
    context.exit_code = kExitUsage;
    return absl::OkStatus();
  }
  PM_ASSIGN_OR_RETURN(const bool serving, transport->IsServing(collection));
  if (!serving) {
    return absl::UnavailableError(
        collection.empty()
            ? "the server is not serving: it is ending"
            : absl::StrCat("collection ", collection,
                           " is not serving: it is not built, or the server is ending"));
  }
  Answer(context, {{"status", "SERVING"}}, [] { std::cout << "SERVING\n"; });
  return absl::OkStatus();
}

}  // namespace

void AddHealthCommand(CLI::App& app, Context& context) {
  auto collection = std::make_shared<std::string>();
  CLI::App* health = AddCommand(
      app, "health",
      "Exit with 0 if the server serves, with 1 if not, with 2 if it could not be asked because a "
      "file or a flag is wrong; for probes. Needs no key");
  health->add_option("--collection", *collection,
                     "Ask whether this collection is built; needs a key for it");
  health->callback([&context, collection] {
    context.run = [&context, collection] { return Health(context, *collection); };
  });
}

}  // namespace privatemail::client::cli
