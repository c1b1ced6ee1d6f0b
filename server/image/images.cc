#include "server/image/images.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"
#include "common/image/image_header.h"
#include "server/engine/collection_creation.h"
#include "server/engine/row_file.h"

namespace privatemail::server {
namespace {

// After a failure, before another attempt.
constexpr absl::Duration kPause = absl::Seconds(10);

absl::StatusOr<std::shared_ptr<const CellIndex>> RequireCells(const CollectionView& view) {
  if (view.cells != nullptr) return view.cells;
  const std::string needs = absl::StrCat("the image of collection ", view.published->name,
                                         " needs cells that are ready: ");
  if (!view.has_cells()) {
    return absl::FailedPreconditionError(needs + "create the collection with --cells");
  }
  if (view.retriever == nullptr) {
    return absl::FailedPreconditionError(
        needs + (view.items == 0 ? "it has no items, upload some and build" : "build it"));
  }
  if (!view.cells_problem.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(needs, view.cells_problem.message()));
  }
  return absl::UnavailableError(needs + "they are not yet");
}

std::shared_ptr<const ServedImage> Serve(std::shared_ptr<const Image> image, ImageOrigin origin,
                                         MemoryReservation memory) {
  memory.ReduceTo(image->memory());
  return std::make_shared<const ServedImage>(ServedImage{
      std::move(memory), std::make_shared<SharedPass>(std::move(image)), std::move(origin)});
}

// A signature does not tell when an image was made. Versions of one collection ascend, and items of
// one version are only deleted.
absl::Status CheckNotOlder(const std::string& name, const v1::ImageHeader& installed,
                           const v1::ImageHeader& header) {
  if (header.items_version() > installed.items_version() ||
      (header.items_version() == installed.items_version() &&
       header.items() <= installed.items())) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the image of collection ", name, " must not be older than the one that is installed, of ",
      "items_version ", installed.items_version(), " with ", installed.items(),
      " items, but is of items_version ", header.items_version(), " with ", header.items(),
      ": deleted items would come back. If its operator restored a snapshot, delete the image here "
      "first (privatemail collection delete)"));
}

absl::Status BeingReadError(const std::string& name) {
  return absl::UnavailableError(
      absl::StrCat("the image of collection ", name, " is being read; retry"));
}

std::vector<bool> HiddenInCells(const CollectionView& view) {
  std::vector<bool> hidden;
  if (view.hidden_in_cells != nullptr) hidden = view.hidden_in_cells->hidden;
  hidden.resize(static_cast<size_t>(view.cells->items()), false);
  return hidden;
}

}  // namespace

Images::Images(Catalog* catalog, Sign sign, Warn warn)
    : catalog_(catalog),
      sign_(std::move(sign)),
      warn_(std::move(warn)),
      files_(catalog->directory()),
      loading_(files_.Names()) {
  const std::set<std::string> names = loading_;  // from which the first ones are erased meanwhile
  for (const std::string& name : names) {
    queue_.Add([this, name](const std::atomic<bool>& stopped) {
      if (!stopped) Load(name);
    });
  }
}

void Images::Load(const std::string& name) {
  const absl::StatusOr<Served> loaded = Read(name);
  if (!loaded.ok() && warn_) {
    warn_(absl::StrCat(
        "the image of collection ", name,
        " is not served until it is made or mirrored again: ", loaded.status().message()));
  }
  {
    const std::lock_guard<std::mutex> keeping(keeping_);
    Served served;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      loading_.erase(name);
      if (!loaded.ok()) return;
      served = served_.emplace(name, *loaded).first->second;  // or a later one was made meanwhile
    }
    files_.RemoveOtherOrigins(name, served->image().digest());
    if (served != *loaded) return;
  }
  if (!absl::IsNotFound(CheckCurrent(name, **loaded))) return;
  // The daemon ended between the deletion of the collection and that of its image.
  const absl::Status removed = Remove(name, loaded->get()).status();
  if (!removed.ok() && warn_) warn_(std::string(removed.message()));
}

absl::StatusOr<Images::Served> Images::Read(const std::string& name) const {
  const std::string file = files_.PathOf(name);
  try {
    PM_ASSIGN_OR_RETURN(const v1::ImageHeader header, ReadImageFileHeader(file));
    PM_ASSIGN_OR_RETURN(MemoryReservation memory, Reserve(name, header));
    PM_ASSIGN_OR_RETURN(std::shared_ptr<const Image> image, ReadImageFile(file));
    PM_ASSIGN_OR_RETURN(ImageOrigin origin, files_.ReadOrigin(name, image->digest()));
    PM_RETURN_IF_ERROR(CheckImageSignature(image->digest(), origin.signer, origin.signature));
    return Serve(std::move(image), std::move(origin), std::move(memory));
  } catch (const std::exception& error) {  // out of memory
    return absl::ResourceExhaustedError(error.what());
  }
}

absl::StatusOr<MemoryReservation> Images::Reserve(const std::string& name,
                                                  const v1::ImageHeader& header) const {
  return catalog_->ReserveMemory(absl::StrCat("the image of collection ", name),
                                 Image::MemoryToCreate(header));
}

absl::StatusOr<MemoryReservation> Images::ReserveSection(const Image& image,
                                                         v1::ImageSection section) const {
  return catalog_->ReserveMemory(absl::StrCat("a copy of section ", section, " of an image"),
                                 image.MemoryOfSection(section));
}

std::vector<Images::State> Images::List() const {
  std::map<std::string, Served> all;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    all = served_;
  }
  std::vector<State> states;
  for (const auto& [name, served] : all) {
    states.push_back({name, served->image().memory(), served->image().header().items_version(),
                      CheckCurrent(name, *served).ok()});
  }
  return states;
}

absl::Status Images::CheckCurrent(const std::string& name, const ServedImage& served) const {
  if (!served.origin.made_here) return absl::OkStatus();
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find(name));
  const v1::ImageHeader& header = served.image().header();
  if (view.published->fingerprint != header.fingerprint()) {
    return absl::NotFoundError(
        absl::StrCat("collection ", name, " was created again and has no image yet"));
  }
  const int64_t hidden = view.hidden_in_cells == nullptr ? 0 : view.hidden_in_cells->count;
  if (view.cells != nullptr && view.cells->items() == hidden) {
    return absl::FailedPreconditionError(
        absl::StrCat("the image of collection ", name,
                     " is not served, because all its items are deleted: upload items and build"));
  }
  if (view.cells != nullptr && view.cells->items_version() == header.items_version() &&
      view.cells->items() - hidden == static_cast<int64_t>(header.items())) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("the image of collection ", name, " is of version ", header.items_version(),
                   ", since which items were deleted or built again; a new one is being made"));
}

absl::StatusOr<Images::Served> Images::Find(const std::string& name) {
  Served served;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = served_.find(name);
    if (found == served_.end() && loading_.count(name) != 0) {
      return BeingReadError(name);
    }
    if (found == served_.end()) {
      return absl::NotFoundError(absl::StrCat("collection ", absl::CHexEscape(name.substr(0, 64)),
                                              " has no image here: its operator makes one with "
                                              "privatemail image make, or mirrors it"));
    }
    served = found->second;
  }
  const absl::Status current = CheckCurrent(name, *served);
  if (current.ok()) return served;
  if (absl::IsNotFound(current)) {  // another daemon deleted the collection
    PM_RETURN_IF_ERROR(Remove(name, served.get()).status());
    return current;
  }
  if (absl::IsFailedPrecondition(current)) return current;  // a build brings items
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto failed = failed_.find(name);
  const bool pauses = failed != failed_.end() && absl::Now() < failed->second.ended + kPause;
  if (!pauses && queued_.insert(name).second) {
    queue_.Add([this, name](const std::atomic<bool>& stopped) { MakeAnew(name, stopped); });
  }
  if (failed == failed_.end()) return current;
  return absl::UnavailableError(absl::StrCat(
      current.message(), "; the last attempt failed: ", failed->second.problem.message()));
}

absl::Status Images::MakeCurrent(const std::string& name, const std::atomic<bool>& stopped) {
  const std::lock_guard<std::mutex> making(making_);
  Served served;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = served_.find(name);
    if (found == served_.end()) return absl::OkStatus();  // removed meanwhile
    served = found->second;
  }
  if (CheckCurrent(name, *served).ok()) return absl::OkStatus();  // made meanwhile
  return MakeLocked(name, served->origin.settings, stopped).status();
}

void Images::MakeAnew(const std::string& name, const std::atomic<bool>& stopped) {
  absl::Status outcome;
  try {
    outcome = MakeCurrent(name, stopped);
  } catch (const std::exception& error) {  // out of memory
    outcome = absl::ResourceExhaustedError(error.what());
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  queued_.erase(name);
  if (outcome.ok() || absl::IsNotFound(outcome)) {  // the collection was deleted meanwhile
    failed_.erase(name);
  } else if (!stopped && !absl::IsUnavailable(outcome)) {  // cells that are not ready yet
    failed_[name] = {absl::Now(), outcome};
    if (warn_) {
      warn_(
          absl::StrCat("a new image of collection ", name, " cannot be made: ", outcome.message()));
    }
  }
}

absl::StatusOr<std::unique_ptr<const RowSource>> Images::ReadUnitRows(
    const CollectionView& view, const std::atomic<bool>& stopped,
    std::vector<bool>* left_out) const {
  const CellIndex& cells = *view.cells;
  const Eigen::Index dim = view.published->parameters.feature_dim;
  PM_ASSIGN_OR_RETURN(std::unique_ptr<RowFile> file, RowFile::Create(catalog_->directory(), dim));
  int64_t row = 0;
  const auto skip_to = [&](const std::string* id) -> absl::Status {
    for (; row < cells.items() && (id == nullptr || cells.IdOf(row) < *id); ++row) {
      (*left_out)[static_cast<size_t>(row)] = true;  // it was deleted just now
      PM_RETURN_IF_ERROR(file->Append(FloatMatrix::Zero(1, dim)));
    }
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(
      catalog_->ReadGallery(view, [&](int64_t /*items*/, Gallery part) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
        const FloatMatrix units = CellIndex::UnitItems(std::exchange(part.features, {}));
        for (size_t i = 0; i < part.ids.size(); ++i) {
          PM_RETURN_IF_ERROR(skip_to(&part.ids[i]));
          if (row == cells.items() || cells.IdOf(row) != part.ids[i]) continue;  // a later item
          PM_RETURN_IF_ERROR(file->Append(units.row(static_cast<Eigen::Index>(i))));
          ++row;
        }
        return absl::OkStatus();
      }));
  PM_RETURN_IF_ERROR(skip_to(nullptr));
  return file;
}

absl::StatusOr<Images::Served> Images::Make(const std::string& name, const ImageSettings& settings,
                                            const std::atomic<bool>& stopped) {
  const std::unique_lock<std::mutex> making(making_, std::try_to_lock);
  if (!making.owns_lock()) return absl::AbortedError("another image is being made; retry later");
  PM_ASSIGN_OR_RETURN(Served made, MakeLocked(name, settings, stopped));
  const std::lock_guard<std::mutex> guard(mutex_);
  failed_.erase(name);
  return made;
}

absl::StatusOr<Images::Served> Images::MakeLocked(const std::string& name,
                                                  const ImageSettings& settings,
                                                  const std::atomic<bool>& stopped) {
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find(name));
  PM_RETURN_IF_ERROR(CheckHasClasses(name, view.published->parameters));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const CellIndex> cells, RequireCells(view));
  std::vector<bool> left_out = HiddenInCells(view);
  ImageOptions options;
  options.list_items = settings.list_items;
  MemoryReservation memory;
  options.check_memory = [&](const v1::ImageHeader& header) -> absl::Status {
    PM_ASSIGN_OR_RETURN(memory, Reserve(name, header));
    return absl::OkStatus();
  };
  std::unique_ptr<const RowSource> rows;
  if (settings.with_scores) {
    PM_ASSIGN_OR_RETURN(rows, ReadUnitRows(view, stopped, &left_out));
    options.unit_rows = rows.get();
  }
  PM_ASSIGN_OR_RETURN(ImageParts parts, MakeImage(view.published->parameters, cells->contents(),
                                                  &left_out, options, stopped));
  PM_ASSIGN_OR_RETURN(const Signature signature, sign_(ImageDigest(parts.header)));
  Served made;
  {
    const std::lock_guard<std::mutex> keeping(keeping_);
    PM_ASSIGN_OR_RETURN(
        made, Keep(name, std::move(parts), {true, settings, signature.signature, signature.signer},
                   std::move(memory)));
  }
  const absl::Status current = CheckCurrent(name, *made);
  if (absl::IsNotFound(current)) {  // deleted, or created again, meanwhile
    PM_RETURN_IF_ERROR(Remove(name, made.get()).status());
    return current;
  }
  return made;
}

absl::Status Images::CheckMayInstall(const std::string& name, const v1::ImageHeader& header,
                                     const std::string& signer) const {
  PM_RETURN_IF_ERROR(CheckCollectionName(name));
  const std::lock_guard<std::mutex> guard(mutex_);
  if (loading_.count(name) != 0) return BeingReadError(name);
  const auto found = served_.find(name);
  if (found == served_.end()) return absl::OkStatus();
  if (found->second->origin.made_here) {
    return absl::FailedPreconditionError(
        absl::StrCat("the image of collection ", name, " is made here, not mirrored"));
  }
  const v1::ImageHeader& installed = found->second->image().header();
  // Otherwise one of whoever, then an older one: neither of which would be older than that before.
  if (header.fingerprint() != installed.fingerprint() || signer != found->second->origin.signer) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the image of collection ", name,
        header.fingerprint() != installed.fingerprint()
            ? " must be of the collection that is installed, but is of another of this name"
            : " must be signed by the key of the installed one, but is signed by another",
        ": delete the image here first (privatemail collection delete)"));
  }
  return CheckNotOlder(name, installed, header);
}

absl::StatusOr<MemoryReservation> Images::BeginInstall(const std::string& name,
                                                       const v1::ImageHeader& header,
                                                       const std::string& signer) const {
  PM_RETURN_IF_ERROR(CheckMayInstall(name, header, signer));
  return Reserve(name, header);
}

absl::StatusOr<Images::Served> Images::Install(const std::string& name, ImageParts parts,
                                               Signature signature, MemoryReservation memory) {
  PM_ASSIGN_OR_RETURN(const v1::ImageHeader header, ReadImageHeader(parts.header));
  PM_RETURN_IF_ERROR(
      CheckImageSignature(ImageDigest(parts.header), signature.signer, signature.signature));
  const std::lock_guard<std::mutex> keeping(keeping_);
  // Another may have been installed meanwhile.
  PM_RETURN_IF_ERROR(CheckMayInstall(name, header, signature.signer));
  return Keep(name, std::move(parts),
              {false, {}, std::move(signature.signature), std::move(signature.signer)},
              std::move(memory));
}

absl::StatusOr<bool> Images::Remove(const std::string& name, const ServedImage* only) {
  const std::lock_guard<std::mutex> keeping(keeping_);
  Served removed;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (loading_.count(name) != 0) {
      return BeingReadError(name);
    }
    const auto found = served_.find(name);
    if (only != nullptr && (found == served_.end() || found->second.get() != only)) return false;
    if (found != served_.end()) {
      removed = std::move(found->second);
      served_.erase(found);
    }
    failed_.erase(name);
  }
  return files_.Remove(name);
}

absl::StatusOr<Images::Served> Images::Keep(const std::string& name, ImageParts parts,
                                            ImageOrigin origin, MemoryReservation memory) {
  PM_ASSIGN_OR_RETURN(std::shared_ptr<const Image> image, Image::Create(std::move(parts)));
  PM_RETURN_IF_ERROR(files_.WriteOrigin(name, image->digest(), origin));
  Served served = Serve(std::move(image), std::move(origin), std::move(memory));
  const absl::Status written = WriteImageFile(served->image(), files_.PathOf(name));
  const absl::string_view digest = served->image().digest();
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto before = served_.find(name);
    if (written.ok()) {
      served_[name] = served;
    } else if (before == served_.end() || before->second->image().digest() != digest) {
      files_.RemoveOrigin(name, digest);
    }
  }
  PM_RETURN_IF_ERROR(written);
  files_.RemoveOtherOrigins(name, digest);
  return served;
}

}  // namespace privatemail::server
