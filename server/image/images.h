// The images that a daemon serves together with another operator (PRIVACY.md section 9).
#ifndef PRIVATEMAIL_SERVER_IMAGE_IMAGES_H_
#define PRIVATEMAIL_SERVER_IMAGE_IMAGES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/background_queue.h"
#include "server/engine/catalog.h"
#include "server/image/image.h"
#include "server/image/image_files.h"
#include "server/image/shared_pass.h"

namespace privatemail::server {

// An image and its concurrent searches. Immutable, thread-safe.
struct ServedImage {
  MemoryReservation memory;  // first: ends after the image
  std::shared_ptr<SharedPass> pass;
  ImageOrigin origin;

  const Image& image() const { return pass->image(); }
};

// Images by collection, each in a file of the data directory and in memory. One that was made here
// is served while its collection has the cells, and the deletions, that it was made of; otherwise a
// new one is made in the background. One of another operator is served until a new one is
// installed. Thread-safe.
class Images {
 public:
  using Warn = std::function<void(const std::string& message)>;

  // Signs an image's digest.
  struct Signature {
    std::string signature;
    std::string signer;  // public key
  };
  using Sign = std::function<absl::StatusOr<Signature>(absl::string_view digest)>;

  // Reads the images of catalog->directory() in the background; `warn` (may be empty) is told which
  // are damaged. The catalog must outlive it.
  Images(Catalog* catalog, Sign sign, Warn warn);

  // NOT_FOUND: no image of this collection. UNAVAILABLE: it is being read; or its items were
  // deleted or built again, and a new one is being made, or why it could not be made.
  // FAILED_PRECONDITION: all its items were deleted; or its collection was, and its files stay.
  absl::StatusOr<std::shared_ptr<const ServedImage>> Find(const std::string& name);

  // Makes the image of a collection's cells, replacing the one before. One at a time.
  // NOT_FOUND. FAILED_PRECONDITION: the collection has no cells. UNAVAILABLE: they are not ready.
  // ABORTED: another image is being made.
  // RESOURCE_EXHAUSTED: max_resident_memory or disk. Errors of MakeImage.
  absl::StatusOr<std::shared_ptr<const ServedImage>> Make(const std::string& name,
                                                          const ImageSettings& settings,
                                                          const std::atomic<bool>& stopped);

  // For Install, before the parts arrive: memory of an image with this checked header, and of its
  // parts. Errors of Install that the header shows.
  absl::StatusOr<MemoryReservation> BeginInstall(const std::string& name,
                                                 const v1::ImageHeader& header,
                                                 const std::string& signer) const;
  // Serves an image of another operator. memory: of BeginInstall.
  // - DATA_LOSS: damaged, or the signature is not the signer's
  // - FAILED_PRECONDITION: the image of this collection is made here; or the installed one is of
  //   another collection of this name, signed by another key, of a later version, or of this one
  //   with fewer items (deleted items would come back)
  // - INVALID_ARGUMENT: the name
  // - RESOURCE_EXHAUSTED: max_resident_memory or disk
  // - UNAVAILABLE: the image from before is being read
  absl::StatusOr<std::shared_ptr<const ServedImage>> Install(const std::string& name,
                                                             ImageParts parts, Signature signature,
                                                             MemoryReservation memory);
  // For the copy that Image::Section makes. RESOURCE_EXHAUSTED: max_resident_memory.
  absl::StatusOr<MemoryReservation> ReserveSection(const Image& image,
                                                   v1::ImageSection section) const;
  // Deletes a collection's image here; false: there was none, or another than `only`, if that is
  // given. FAILED_PRECONDITION: its files stay. UNAVAILABLE: it is being read.
  absl::StatusOr<bool> Remove(const std::string& name, const ServedImage* only = nullptr);

  // Of the metrics.
  struct State {
    std::string name;
    int64_t bytes = 0;  // in memory
    uint64_t items_version = 0;
    bool is_current = false;  // served, not waiting for a new one
  };
  std::vector<State> List() const;  // by name

 private:
  using Served = std::shared_ptr<const ServedImage>;

  void Load(const std::string& name);
  absl::StatusOr<Served> Read(const std::string& name) const;
  // Memory to create an image with this header. The image that is served counts, too.
  absl::StatusOr<MemoryReservation> Reserve(const std::string& name,
                                            const v1::ImageHeader& header) const;
  absl::Status CheckMayInstall(const std::string& name, const v1::ImageHeader& header,
                               const std::string& signer) const;
  // Requires keeping_.
  absl::StatusOr<Served> Keep(const std::string& name, ImageParts parts, ImageOrigin origin,
                              MemoryReservation memory);
  // Unit rows of the items of `cells`, zero for those that are gone, which `left_out` gets.
  absl::StatusOr<std::unique_ptr<const RowSource>> ReadUnitRows(const CollectionView& view,
                                                                const std::atomic<bool>& stopped,
                                                                std::vector<bool>* left_out) const;
  // Requires making_.
  absl::StatusOr<Served> MakeLocked(const std::string& name, const ImageSettings& settings,
                                    const std::atomic<bool>& stopped);
  // Why the image may not be served; OK if it may.
  absl::Status CheckCurrent(const std::string& name, const ServedImage& served) const;
  // Makes the served image again, by its settings, unless it may be served.
  absl::Status MakeCurrent(const std::string& name, const std::atomic<bool>& stopped);
  void MakeAnew(const std::string& name, const std::atomic<bool>& stopped);

  Catalog* const catalog_;
  const Sign sign_;
  const Warn warn_;
  const ImageFiles files_;
  std::mutex making_;         // held while an image is made
  std::mutex keeping_;        // held while one is expanded and its files are written
  mutable std::mutex mutex_;  // guards the following
  std::map<std::string, Served> served_;
  std::set<std::string> loading_;
  std::set<std::string> queued_;  // made anew
  // The last attempt to make one anew, if it failed.
  struct Attempt {
    absl::Time ended;
    absl::Status problem;
  };
  std::map<std::string, Attempt> failed_;
  BackgroundQueue queue_;  // last: its jobs use the other members
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_IMAGE_IMAGES_H_
