#include "common/wire/snapshot.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/collection.h"
#include "client/cli/command.h"
#include "client/flags/numbers.h"
#include "client/queries/private_file.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

struct SnapshotOptions {
  std::string name;
  std::string out;
  bool force = false;
  int64_t max_bytes = 0;  // 0: see DefaultMaxBytes
};

// Bytes of the file.
struct SizeLimit {
  int64_t bytes = 0;
  std::string reason;
};

// - Twice the size of the announced anchors and items, with kTextBytes for the id, label and
// payload
//   of each.
// - At most half of what is free where the file is written: the server announces what it likes.
SizeLimit DefaultMaxBytes(const v1::GetCollectionResponse& collection, const std::string& out) {
  constexpr double kTextBytes = 1000;
  constexpr double kHeadBytes = 1'000'000;  // parameters and framing
  const v1::PublicParameters& parameters = collection.parameters();
  const double rows =
      static_cast<double>(collection.items()) + static_cast<double>(parameters.anchor_count());
  const double row = sizeof(float) * static_cast<double>(parameters.feature_dim()) + kTextBytes;
  const double expected =
      2 * (kHeadBytes + static_cast<double>(parameters.ByteSizeLong()) + rows * row);
  std::error_code error;
  const auto space =
      std::filesystem::space(std::filesystem::absolute(out, error).parent_path(), error);
  const double half_free = error ? 0 : static_cast<double>(space.available) / 2;
  if (expected <= half_free) {
    return {static_cast<int64_t>(expected), "twice what the collection's counts suggest"};
  }
  return {static_cast<int64_t>(half_free), "half of the free space there"};
}

absl::StatusOr<SizeLimit> SizeLimitOf(const Transport& transport, const SnapshotOptions& options) {
  if (options.max_bytes > 0) return SizeLimit{options.max_bytes, "--max-bytes"};
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection,
                      transport.GetCollection(options.name));
  return DefaultMaxBytes(collection, options.out);
}

absl::Status CheckSize(int64_t bytes, const SizeLimit& limit) {
  if (bytes <= limit.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the snapshot must have at most ", limit.bytes, " bytes (", limit.reason,
                   "), but the server sent ", bytes, " and more: --max-bytes sets another limit"));
}

absl::StatusOr<PrivateFile> OpenFile(const SnapshotOptions& options) {
  const auto existing =
      options.force ? PrivateFile::Existing::kReplace : PrivateFile::Existing::kKeep;
  absl::StatusOr<PrivateFile> file = PrivateFile::Create("--out", options.out, existing);
  if (!absl::IsAlreadyExists(file.status())) return file;
  return absl::AlreadyExistsError(
      absl::StrCat(file.status().message(), ": replace it with --force"));
}

absl::StatusOr<Result> Snapshot(const Context& context, const SnapshotOptions& options) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(PrivateFile file, OpenFile(options));
  PM_ASSIGN_OR_RETURN(const SizeLimit limit, SizeLimitOf(transport, options));
  // Detects a damaged snapshot while it can be fetched again.
  uint64_t version = 0;
  SnapshotReader check({[&](const v1::SnapshotCollection& head) {
                          version = head.latest_version();
                          return absl::OkStatus();
                        },
                        {},
                        {}});
  const auto checked = [&](const absl::Status& status) -> absl::Status {
    if (status.ok()) return status;
    return absl::DataLossError(absl::StrCat("the snapshot that the server sent for --out ",
                                            options.out, " is damaged: ", status.message()));
  };
  ProgressBar bar("snapshot");
  int64_t bytes = 0;
  PM_RETURN_IF_ERROR(
      transport.SnapshotCollection(options.name, [&](absl::string_view piece) -> absl::Status {
        bytes += std::ssize(piece);
        PM_RETURN_IF_ERROR(CheckSize(bytes, limit));
        PM_RETURN_IF_ERROR(checked(check.Read(piece)));
        bar.Show(static_cast<int64_t>(check.items()),
                 static_cast<int64_t>(check.announced_items()));
        return file.Append(piece);
      }));
  PM_RETURN_IF_ERROR(checked(check.Finish()));
  PM_RETURN_IF_ERROR(file.Commit(""));
  return Result{.json = {{"file", options.out},
                         {"items", check.items()},
                         {"anchors", check.anchors()},
                         {"latest_version", version},
                         {"bytes", bytes}},
                .text = absl::StrCat(Counted(check.items(), "item"), " and ",
                                     Counted(check.anchors(), "anchor"), " in ", options.out, " (",
                                     bytes, " bytes)\n`privatemail restore NAME --in ", options.out,
                                     "` creates a collection from it\n")};
}

struct RestoreOptions {
  std::string name;
  std::string in;
  bool no_build = false;
};

// A snapshot file to read from its beginning, twice: to verify and to send.
class SnapshotFile {
 public:
  static absl::StatusOr<SnapshotFile> Open(const std::string& path) {
    SnapshotFile opened(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (opened.file_ >= 0) opened.size_ = ::lseek(opened.file_, 0, SEEK_END);
    if (opened.size_ < 0) return opened.Unreadable();
    PM_RETURN_IF_ERROR(opened.Rewind());
    return opened;
  }
  ~SnapshotFile() {
    if (file_ >= 0) ::close(file_);
  }
  SnapshotFile(SnapshotFile&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}
  SnapshotFile& operator=(SnapshotFile&&) = delete;

  absl::Status Rewind() {
    return ::lseek(file_, 0, SEEK_SET) == 0 ? absl::OkStatus() : Unreadable();
  }

  // Reads at most kSnapshotPieceBytes; false at the end.
  absl::StatusOr<bool> Next(std::string* piece) {
    piece->resize(kSnapshotPieceBytes);
    const ssize_t bytes = ::read(file_, piece->data(), piece->size());
    if (bytes < 0) return Unreadable();
    piece->resize(static_cast<size_t>(bytes));
    return bytes > 0;
  }

  int64_t size() const { return size_; }

 private:
  SnapshotFile(std::string path, int file) : path_(std::move(path)), file_(file) {}

  absl::Status Unreadable() const {
    return absl::InvalidArgumentError(
        absl::StrCat("--in ", path_, " cannot be read: ", std::strerror(errno)));
  }

  std::string path_;
  int file_;
  int64_t size_ = -1;
};

// Checks the whole file; returns its first block.
absl::StatusOr<v1::SnapshotCollection> Verify(const std::string& path, SnapshotFile* file) {
  v1::SnapshotCollection head;
  SnapshotReader reader({[&](v1::SnapshotCollection found) {
                           head = std::move(found);
                           return absl::OkStatus();
                         },
                         {},
                         {}});
  ProgressBar bar("verify");
  std::string piece;
  int64_t done = 0;
  absl::Status status;
  while (status.ok()) {
    PM_ASSIGN_OR_RETURN(const bool more, file->Next(&piece));
    if (!more) break;
    status = reader.Read(piece);
    done += static_cast<int64_t>(piece.size());
    bar.Show(done, file->size());
  }
  if (status.ok()) status = reader.Finish();
  if (status.ok()) return head;
  return absl::Status(status.code(), absl::StrCat("--in ", path, ": ", status.message()));
}

absl::StatusOr<v1::GetCollectionResponse> Send(const Transport& transport, const std::string& name,
                                               SnapshotFile* file) {
  PM_RETURN_IF_ERROR(file->Rewind());
  ProgressBar bar("restore");
  int64_t done = 0;
  PM_ASSIGN_OR_RETURN(const v1::RestoreCollectionResponse response,
                      transport.RestoreCollection(name, [&](std::string* piece) {
                        const absl::StatusOr<bool> more = file->Next(piece);
                        done += static_cast<int64_t>(piece->size());
                        bar.Show(done, file->size());
                        return more;
                      }));
  return response.collection();
}

absl::StatusOr<bool> BuildRestored(const Transport& transport, const RestoreOptions& options,
                                   const v1::GetCollectionResponse& collection) {
  if (options.no_build || collection.items() == 0) return false;
  const absl::Status built =
      BuildWithProgress(transport, options.name, /*accept_misalignment=*/true).status();
  if (built.ok()) return true;
  return absl::Status(built.code(), absl::StrCat("collection ", options.name,
                                                 " is restored, but not built: ", built.message()));
}

absl::StatusOr<Result> Restore(const Context& context, const RestoreOptions& options) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(SnapshotFile file, SnapshotFile::Open(options.in));
  PM_ASSIGN_OR_RETURN(const v1::SnapshotCollection head, Verify(options.in, &file));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection,
                      Send(transport, options.name, &file));
  const bool same_digest =
      collection.parameters().collection_uuid() == head.parameters().collection_uuid();
  PM_ASSIGN_OR_RETURN(const bool built, BuildRestored(transport, options, collection));
  std::string text = absl::StrCat(
      "restored ", Counted(collection.items(), "item"), " of the collection ",
      Printable(head.name()), " as ", options.name,
      same_digest ? ", with its former digest: budgets granted for it stay valid\n"
                  : ", with a new digest, because the server has a collection with the snapshot's: "
                    "clients see another collection\n");
  if (!built) {
    absl::StrAppend(&text, "run `privatemail build ", options.name,
                    "` to make it answer searches\n");
  }
  return Result{.json = {{"collection", options.name},
                         {"snapshot_of", head.name()},
                         {"items", collection.items()},
                         {"digest", ToHex(collection.fingerprint())},
                         {"same_digest", same_digest},
                         {"built", built}},
                .text = text};
}

void AddSnapshot(CLI::App& app, Context& context) {
  auto options = std::make_shared<SnapshotOptions>();
  CLI::App* snapshot = AddCommand(
      app, "snapshot",
      "Save a consistent copy of a collection to a file while searches and uploads continue");
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
  SetRun(snapshot, context, options, &Snapshot);
}

void AddRestore(CLI::App& app, Context& context) {
  auto options = std::make_shared<RestoreOptions>();
  CLI::App* restore = AddCommand(
      app, "restore", "Create a collection from a file that `privatemail snapshot` wrote");
  restore->add_option("NAME", options->name, "Name of the new collection")->required();
  restore->add_option("--in", options->in, "The file")->required();
  restore->add_flag("--no-build", options->no_build, "Do not build the collection");
  restore->footer(absl::StrCat(
      "The whole file is verified before anything is sent, and stored completely or not at all. "
      "The "
      "new collection keeps the snapshot's digest, so that clients' budgets and anchors stay "
      "valid, "
      "unless the server has a collection with it; then it gets a new one. Needs a key with scope "
      "admin.\n",
      restore->get_footer()));
  SetRun(restore, context, options, &Restore);
}

}  // namespace

void AddSnapshotCommands(CLI::App& app, Context& context) {
  AddSnapshot(app, context);
  AddRestore(app, context);
}

}  // namespace privatemail::client::cli
