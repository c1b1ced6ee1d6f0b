#include "client/cli/build.h"

#include <iostream>

#include "client/cli/command.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {

absl::StatusOr<v1::BuildEmbeddingResponse> BuildWithProgress(const Transport& transport,
                                                             const std::string& name) {
  ProgressBar bar("embedding");
  return transport.BuildEmbedding(name, [&](const v1::BuildEmbeddingResponse& message) {
    const auto rows = static_cast<int64_t>(message.rows());
    bar.Show(static_cast<int64_t>(message.share() * static_cast<double>(rows)), rows);
  });
}

namespace {

absl::Status Build(const Context& context, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::BuildEmbeddingResponse done, BuildWithProgress(transport, name));
  const v1::GetCollectionResponse& c = done.collection();
  Answer(context,
         {{"embedded", c.embedded_items()},
          {"version", c.embedding_version()},
          {"seconds", done.elapsed_seconds()},
          {"objective", done.objective()},
          {"plan", done.plan()}},
         [&] {
           std::cout << "embedded " << c.embedded_items() << " items as version "
                     << c.embedding_version() << " in " << done.elapsed_seconds()
                     << " s, objective " << done.objective() << "\naffinities " << done.plan()
                     << "\n";
         });
  return absl::OkStatus();
}

}  // namespace

void AddBuildCommand(CLI::App& app, Context& context) {
  auto name = std::make_shared<std::string>();
  CLI::App* build =
      AddCommand(app, "build", "Embed gallery and anchors, so that searches are answered");
  build->add_option("NAME", *name, "The collection")->required();
  build->callback(
      [&context, name] { context.run = [&context, name] { return Build(context, *name); }; });
}

}  // namespace privatemail::client::cli
