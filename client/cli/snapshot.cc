#include "common/wire/snapshot.h"

#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/private_file.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

struct SnapshotOptions {
  std::string name;
  std::string out;
  bool force = false;
};

absl::StatusOr<PrivateFile> OpenFile(const SnapshotOptions& options) {
  const auto existing =
      options.force ? PrivateFile::Existing::kReplace : PrivateFile::Existing::kKeep;
  absl::StatusOr<PrivateFile> file = PrivateFile::Create("--out", options.out, existing);
  if (!absl::IsAlreadyExists(file.status())) return file;
  return absl::AlreadyExistsError(
      absl::StrCat(file.status().message(), ": --force replaces it by the snapshot"));
}

absl::Status Snapshot(const Context& context, const SnapshotOptions& options) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(PrivateFile file, OpenFile(options));
  // What could not be restored is not kept: found now, it can be fetched again.
  uint64_t version = 0;
  SnapshotReader check({[&](const v1::SnapshotCollection& head) {
                          version = head.latest_version();
                          return absl::OkStatus();
                        },
                        {},
                        {}});
  const auto checked = [&](const absl::Status& status) -> absl::Status {
    if (status.ok()) return status;
    return absl::DataLossError(absl::StrCat("what the server sent for --out ", options.out,
                                            " is damaged: ", status.message()));
  };
  ProgressBar bar("snapshot");
  uint64_t bytes = 0;
  PM_RETURN_IF_ERROR(
      transport.SnapshotCollection(options.name, [&](absl::string_view piece) -> absl::Status {
        PM_RETURN_IF_ERROR(checked(check.Read(piece)));
        bytes += piece.size();
        bar.Show(static_cast<int64_t>(check.items()),
                 static_cast<int64_t>(check.announced_items()));
        return file.Append(piece);
      }));
  PM_RETURN_IF_ERROR(checked(check.Finish()));
  PM_RETURN_IF_ERROR(file.Commit(""));
  Answer(context,
         {{"file", options.out},
          {"items", check.items()},
          {"anchors", check.anchors()},
          {"latest_version", version},
          {"bytes", bytes}},
         [&] {
           std::cout << Counted(check.items(), "item") << " and "
                     << Counted(check.anchors(), "anchor") << " in " << options.out << " (" << bytes
                     << " bytes)\n`privatemail restore NAME --in " << options.out
                     << "` makes a collection of it\n";
         });
  return absl::OkStatus();
}

}  // namespace

void AddSnapshotCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<SnapshotOptions>();
  CLI::App* snapshot = AddCommand(
      app, "snapshot",
      "Save a collection, as it is at one moment, to a file; searches and uploads go on meanwhile");
  snapshot->add_option("NAME", options->name, "The collection")->required();
  snapshot
      ->add_option("--out", options->out,
                   "The file, for you alone (mode 0600): it holds every vector, label and payload "
                   "in the clear")
      ->required();
  snapshot->add_flag("--force", options->force, "Replace a file that is there");
  snapshot->footer(absl::StrCat(
      "The file holds anchors, parameters and items, not the embedding, which restore computes "
      "again, nor keys. It is checked while it is written; if anything fails, a file that was "
      "there stays. Takes a key with scope admin.\n",
      snapshot->get_footer()));
  snapshot->callback([&context, options] {
    context.run = [&context, options] { return Snapshot(context, *options); };
  });
}

}  // namespace privatemail::client::cli
