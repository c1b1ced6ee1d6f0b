#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/collection.h"
#include "client/cli/command.h"
#include "client/cli/flags.h"
#include "client/transport/snapshot_file.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"

// `privatemail snapshot` and `restore`.

namespace privatemail::client::cli {
namespace {

struct SnapshotOptions {
  std::string name;
  std::string out;
  bool force = false;
  int64_t max_bytes = 0;  // 0: see DefaultMaxBytes
};

// A bar for calls that report their progress.
SnapshotProgress On(ProgressBar& bar) {
  return [&bar](int64_t done, int64_t total) { bar.Show(done, total); };
}

absl::StatusOr<Result> Snapshot(const Context& context, const SnapshotOptions& options) {
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  ProgressBar bar("snapshot");
  const absl::StatusOr<SavedSnapshot> saved =
      SaveSnapshot(admin, options.name, options.out,
                   options.force ? PrivateFile::Existing::kReplace : PrivateFile::Existing::kKeep,
                   options.max_bytes, On(bar));
  if (absl::IsAlreadyExists(saved.status())) {
    return WithNote(saved.status(), ": replace it with --force");
  }
  PM_RETURN_IF_ERROR(saved.status());
  return Result{.json = {{"file", options.out},
                         {"items", saved->items},
                         {"anchors", saved->anchors},
                         {"latest_version", saved->latest_version},
                         {"bytes", saved->bytes}},
                .hint = absl::StrCat("`privatemail restore NAME --in ", options.out,
                                     "` creates a collection from it")};
}

struct RestoreOptions {
  std::string name;
  std::string in;
  bool no_build = false;
};

absl::StatusOr<bool> BuildRestored(const AdminClient& admin, const RestoreOptions& options,
                                   const v1::GetCollectionResponse& collection) {
  if (options.no_build || collection.items() == 0 || collection.parameters().anchor_count() == 0) {
    return false;
  }
  const absl::Status built =
      BuildWithProgress(admin, options.name, /*accept_misalignment=*/true).status();
  if (built.ok()) return true;
  return absl::Status(built.code(), absl::StrCat("collection ", options.name,
                                                 " is restored, but not built: ", built.message()));
}

absl::StatusOr<Result> Restore(const Context& context, const RestoreOptions& options) {
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  ProgressBar verify("verify"), restore("restore");
  PM_ASSIGN_OR_RETURN(const RestoredCollection restored,
                      RestoreSnapshot(admin, options.name, options.in, On(verify), On(restore)));
  const v1::GetCollectionResponse& collection = restored.collection;
  PM_ASSIGN_OR_RETURN(const bool built, BuildRestored(admin, options, collection));
  return Result{.json = {{"collection", options.name},
                         {"snapshot_of", restored.snapshot_of},
                         {"items", collection.items()},
                         {"digest", ToHex(collection.fingerprint())},
                         {"same_digest", restored.same_digest},
                         {"built", built}},
                .hint = built ? "" : BuildHint(collection)};
}

}  // namespace

void AddSnapshotCommand(CLI::App& app, Context& context) {
  const auto [snapshot, options] = AddCommand(
      app, context, "snapshot",
      "Save a consistent copy of a collection to a file while searches and uploads continue",
      &Snapshot);
  snapshot->add_option("NAME", options->name, "The collection")->required();
  snapshot
      ->add_option("--out", options->out,
                   "The file (mode 0600): it holds every vector, label and payload in the clear")
      ->required();
  snapshot->add_flag("--force", options->force, "Replace an existing file");
  AddBytes(
      snapshot, "--max-bytes", &options->max_bytes,
      "Maximum size of the file: bytes, or with K, M or G; if absent twice what the collection's "
      "counts suggest, with 1,000 bytes for id and payload of an item, and at most half of "
      "the free space");
  snapshot->footer(absl::StrCat(
      "The file holds anchors, parameters and items; no keys, and not the embedding, which restore "
      "recomputes. It is verified while it is written; on failure an existing file stays. Needs a "
      "key with scope admin.\n",
      snapshot->get_footer()));
}

void AddRestoreCommand(CLI::App& app, Context& context) {
  const auto [restore, options] =
      AddCommand(app, context, "restore",
                 "Create a collection from a file that `privatemail snapshot` wrote", &Restore);
  restore->add_option("NAME", options->name, "Name of the new collection")->required();
  restore->add_option("--in", options->in, "The file")->required();
  restore->add_flag("--no-build", options->no_build, "Do not build the collection");
  restore->footer(absl::StrCat(
      "The whole file is verified before anything is sent, and stored completely or not at all. "
      "The new collection keeps the snapshot's digest, so that clients' budgets and anchors stay "
      "valid, unless the server has a collection with it; then it gets a new one. Needs a key with "
      "scope admin.\n",
      restore->get_footer()));
}

}  // namespace privatemail::client::cli
