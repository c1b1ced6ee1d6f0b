#include "server/image/images.h"

#include <openssl/evp.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/image/image_header.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/engine/catalog_fixture.h"
#include "tests/unit/server/image/image_scene.h"

namespace privatemail::testing {
namespace {

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

// An operator's key.
class Signer {
 public:
  absl::StatusOr<Images::Signature> Sign(absl::string_view digest) const {
    const std::string text = ImageSignatureText(digest);
    Images::Signature signature{std::string(kSignatureBytes, 0), std::string(kSignerBytes, 0)};
    size_t size = kSignatureBytes, key_size = kSignerBytes;
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EXPECT_EQ(EVP_DigestSignInit(context, nullptr, nullptr, nullptr, key_.get()), 1);
    EXPECT_EQ(
        EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.signature.data()), &size,
                       reinterpret_cast<const unsigned char*>(text.data()), text.size()),
        1);
    EVP_MD_CTX_free(context);
    EXPECT_EQ(EVP_PKEY_get_raw_public_key(
                  key_.get(), reinterpret_cast<unsigned char*>(signature.signer.data()), &key_size),
              1);
    return signature;
  }

 private:
  const std::shared_ptr<EVP_PKEY> key_{EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"),
                                       EVP_PKEY_free};
};

class ImagesTest : public CatalogTest {
 protected:
  static constexpr int kItems = 20;

  ImagesTest() {
    NewCollection fruit = Fruit();
    fruit.cells = {3, 4};
    fruit.cell_code = CellCode::kScalar8;
    EXPECT_THAT(catalog_->Upsert(*catalog_->Create(fruit), MakeItems(kItems, 1)), IsOk());
    Build();
    Start();
  }

  void Build() {
    EXPECT_THAT(catalog_->Build("fruit", nullptr), IsOk());
    AwaitCells();
  }

  void AwaitCells() {
    EXPECT_TRUE(WaitUntil([&] {
      const CollectionView view = *catalog_->Find("fruit");
      return view.cells != nullptr && view.cells->embedding_version() == view.retriever->version();
    }));
  }

  void Start() {
    images_ = std::make_unique<Images>(
        catalog_.get(),
        [this](absl::string_view digest) {
          if (before_signing_) before_signing_();
          return signer_.Sign(digest);
        },
        [this](const std::string& warning) {
          const std::lock_guard<std::mutex> guard(mutex_);
          warnings_.push_back(warning);
        });
  }

  void Restart() {
    images_.reset();
    Reopen();
    AwaitCells();
    Start();
  }

  std::string Warning() {
    EXPECT_TRUE(WaitUntil([&] {
      const std::lock_guard<std::mutex> guard(mutex_);
      return !warnings_.empty();
    }));
    const std::lock_guard<std::mutex> guard(mutex_);
    return warnings_.empty() ? "" : warnings_.front();
  }

  absl::StatusOr<std::shared_ptr<const ServedImage>> Make(bool with_scores = false) {
    return images_->Make("fruit", {.list_items = 5, .with_scores = with_scores}, stopped_);
  }

  absl::StatusOr<std::shared_ptr<const ServedImage>> Install(const std::string& name,
                                                             ImageParts parts,
                                                             Images::Signature signature) {
    PM_ASSIGN_OR_RETURN(const v1::ImageHeader header, ReadImageHeader(parts.header));
    PM_ASSIGN_OR_RETURN(MemoryReservation memory,
                        images_->BeginInstall(name, header, signature.signer));
    return images_->Install(name, std::move(parts), std::move(signature), std::move(memory));
  }

  // An image with its signature, as the first operator serves it.
  struct Signed {
    ImageParts parts;
    Images::Signature signature;
  };
  static Signed SignedOf(const ServedImage& served) {
    return {PartsOf(served.image()), {served.origin.signature, served.origin.signer}};
  }
  auto InstallCopy(const Signed& image) { return Install("copy", image.parts, image.signature); }

  // Asks until the image is neither read nor made.
  absl::StatusOr<std::shared_ptr<const ServedImage>> FindReady() {
    absl::StatusOr<std::shared_ptr<const ServedImage>> found;
    EXPECT_TRUE(WaitUntil([&] {
      found = images_->Find("fruit");
      return !absl::IsUnavailable(found.status());
    })) << found.status();
    return found;
  }

  static ImageParts PartsOf(const Image& image) {
    ImageParts parts{image.header_bytes(), {}};
    for (const v1::ImageSectionHeader& section : image.header().sections()) {
      parts.sections.push_back(image.Section(section.section()));
    }
    return parts;
  }

  std::string FileOf(const std::string& name) const { return directory_ / ("images/" + name); }

  const std::atomic<bool> stopped_ = false;
  std::function<void()> before_signing_;
  const Signer signer_;
  std::mutex mutex_;  // guards warnings_
  std::vector<std::string> warnings_;
  std::unique_ptr<Images> images_;
};

TEST_F(ImagesTest, MadeImageIsServedAlsoAfterARestart) {
  EXPECT_THAT(images_->Find("fruit"), FailsWith(kNotFound, "collection fruit has no image"));
  ASSERT_OK_AND_ASSIGN(const auto made, Make(/*with_scores=*/true));
  EXPECT_EQ(made->image().header().items(), uint64_t{kItems});
  EXPECT_TRUE(made->image().header().has_scores());
  ASSERT_OK_AND_ASSIGN(const auto found, images_->Find("fruit"));
  EXPECT_EQ(found, made);
  Restart();
  ASSERT_OK_AND_ASSIGN(const auto read, FindReady());
  EXPECT_EQ(read->image().digest(), made->image().digest());
  EXPECT_EQ(read->origin.signature, made->origin.signature);
  EXPECT_TRUE(read->origin.made_here);
}

// Rows of the items' features times 2^14, computed here.
TEST_F(ImagesTest, ScoresAreOfTheStoredFeatures) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make(/*with_scores=*/true));
  const std::vector<Item> items = MakeItems(kItems, 1);
  ASSERT_OK_AND_ASSIGN(const v1::ImageTable table,
                       ReadImageTable(made->image().header(), made->image().table()));
  const auto dim = static_cast<int>(made->image().header().feature_dim());
  for (int row = 0; row < kItems; ++row) {
    const auto item = std::find_if(items.begin(), items.end(),
                                   [&](const Item& one) { return one.id == table.ids(row); });
    ASSERT_NE(item, items.end());
    double squares = 0;
    for (const float value : item->features) squares += double{value} * value;
    for (int i = 0; i < dim; ++i) {
      EXPECT_NEAR(made->image().scores()[row * dim + i],
                  16384 * item->features[static_cast<size_t>(i)] / std::sqrt(squares), .51);
    }
  }
}

TEST_F(ImagesTest, DeletionRefusesTheImageAtOnceAndMakesANewOne) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make());
  const std::string gone = catalog_->Find("fruit")->cells->IdOf(3);
  DeleteItems({gone});
  EXPECT_THAT(images_->Find("fruit"), FailsWith(kUnavailable, "the image of collection fruit"));
  ASSERT_OK_AND_ASSIGN(const auto anew, FindReady());
  EXPECT_NE(anew->image().digest(), made->image().digest());
  EXPECT_EQ(anew->image().header().items(), uint64_t{kItems - 1});
  ASSERT_OK_AND_ASSIGN(const v1::ImageTable table,
                       ReadImageTable(anew->image().header(), anew->image().table()));
  EXPECT_EQ(std::count(table.ids().begin(), table.ids().end(), gone), 0);
  EXPECT_EQ(anew->origin.settings.list_items, 5u);
}

// The daemon ends after the deletion and before a new image: what it reads is not served.
TEST_F(ImagesTest, ImageOfADeletedItemIsNotServedAfterARestart) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make());
  DeleteItems({catalog_->Find("fruit")->cells->IdOf(0)});
  Restart();
  ASSERT_OK_AND_ASSIGN(const auto anew, FindReady());
  EXPECT_EQ(anew->image().header().items(), uint64_t{kItems - 1});
}

TEST_F(ImagesTest, BuildMakesANewImage) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make());
  EXPECT_THAT(catalog_->Upsert(*catalog_->Find("fruit"), MakeItems(kItems + 5, 1)), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto same, images_->Find("fruit"));
  EXPECT_EQ(same, made) << "items that are not built do not matter";
  Build();
  ASSERT_OK_AND_ASSIGN(const auto anew, FindReady());
  EXPECT_EQ(anew->image().header().items(), uint64_t{kItems + 5});
}

TEST_F(ImagesTest, RecreatedCollectionHasNoImage) {
  ASSERT_THAT(Make(), IsOk());
  ASSERT_THAT(catalog_->Delete("fruit"), IsOk());
  EXPECT_THAT(images_->Find("fruit"), FailsWith(kNotFound, "fruit"));
  EXPECT_TRUE(std::filesystem::is_empty(FileOf(""))) << "no vector is left on the disk";
  CreateFruit(kItems);
  EXPECT_THAT(images_->Find("fruit"), FailsWith(kNotFound, "fruit"));
  EXPECT_THAT(Make(), FailsWith(kFailedPrecondition, "the image of collection fruit needs cells"));
}

// UNAVAILABLE would mean that they come: it is tried again at once, and no one is warned.
TEST_F(ImagesTest, FailedCellsAreNoReasonToTryAgain) {
  catalog_->SetOptions({.index = {}, .cells_memory = 1000});
  NewCollection limes = Fruit();
  limes.name = "limes";
  limes.cells = {3, 4};
  limes.cell_code = CellCode::kScalar8;
  ASSERT_THAT(catalog_->Upsert(*catalog_->Create(limes), MakeItems(kItems, 1)), IsOk());
  ASSERT_THAT(catalog_->Build("limes", nullptr), IsOk());
  ASSERT_TRUE(WaitUntil([&] { return !catalog_->Find("limes")->cells_problem.ok(); }));
  EXPECT_THAT(images_->Make("limes", {.list_items = 5}, stopped_),
              FailsWith(kFailedPrecondition, "the image of collection limes needs cells"));
}

TEST_F(ImagesTest, InstalledImageIsThatOfItsSigner) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make());
  const ImageParts parts = PartsOf(made->image());
  const Images::Signature signature{made->origin.signature, made->origin.signer};
  EXPECT_THAT(Install("fruit", parts, signature), FailsWith(kFailedPrecondition, "is made here"));
  ASSERT_OK_AND_ASSIGN(const auto installed, Install("copy", parts, signature));
  EXPECT_EQ(installed->image().digest(), made->image().digest());
  EXPECT_EQ(images_->Find("copy").value(), installed);

  Images::Signature other = *Signer().Sign(made->image().digest());
  other.signer = signature.signer;
  EXPECT_THAT(Install("copy", parts, other), FailsWith(kDataLoss, "not that of its sign"));
  ImageParts damaged = parts;
  damaged.sections[1][7] ^= 1;
  EXPECT_THAT(Install("copy", damaged, signature), FailsWith(kDataLoss, ""));
  EXPECT_THAT(Install("../copy", parts, signature),
              FailsWith(absl::StatusCode::kInvalidArgument, "name must be"));
  EXPECT_EQ(images_->Find("copy").value(), installed) << "the earlier image stays";
}

TEST_F(ImagesTest, RemovedImageIsGoneAlsoFromTheDisk) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make());
  ASSERT_THAT(
      Install("copy", PartsOf(made->image()), {made->origin.signature, made->origin.signer}),
      IsOk());
  EXPECT_EQ(images_->Remove("copy").value(), true);
  EXPECT_THAT(images_->Find("copy"), FailsWith(kNotFound, "copy"));
  EXPECT_EQ(images_->Remove("copy").value(), false);
  EXPECT_THAT(images_->Find("fruit"), IsOk());
  Restart();
  ASSERT_THAT(FindReady(), IsOk());
  EXPECT_THAT(images_->Find("copy"), FailsWith(kNotFound, "copy"));
}

TEST_F(ImagesTest, DamagedImageIsRemovedFromTheDiskToo) {
  ASSERT_THAT(Make(), IsOk());
  images_.reset();
  std::filesystem::resize_file(FileOf("fruit.image"), 1000);
  Start();
  EXPECT_THAT(Warning(), ::testing::HasSubstr("the image of collection fruit is not served"));
  EXPECT_EQ(images_->Remove("fruit").value(), true);
  EXPECT_TRUE(std::filesystem::is_empty(FileOf("")));
  EXPECT_EQ(images_->Remove("fruit").value(), false);
}

// A daemon that is killed while it writes an image, or between the deletions of a collection and of
// its image.
TEST_F(ImagesTest, StartRemovesWhatACrashLeft) {
  ASSERT_THAT(Make(), IsOk());
  images_.reset();
  std::ofstream(FileOf("fish.image.new")) << "vectors";
  ASSERT_THAT(catalog_->Delete("fruit"), IsOk());
  Start();
  EXPECT_TRUE(WaitUntil([&] { return std::filesystem::is_empty(FileOf("")); }));
}

TEST_F(ImagesTest, DamagedFileIsToldAndNotServed) {
  ASSERT_THAT(Make(), IsOk());
  images_.reset();
  {
    std::fstream file(FileOf("fruit.image"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('x');
  }
  Start();
  EXPECT_THAT(Warning(), ::testing::HasSubstr("the image of collection fruit is not served"));
  EXPECT_THAT(FindReady(), FailsWith(kNotFound, "fruit"));
  ASSERT_THAT(Make(), IsOk());
  EXPECT_THAT(images_->Find("fruit"), IsOk());
}

// A daemon that is killed while it keeps an image leaves two origins, of which one is read.
TEST_F(ImagesTest, StartRemovesTheOriginsOfOtherImages) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make());
  ASSERT_THAT(InstallCopy(SignedOf(*made)), IsOk());
  images_.reset();
  const std::string digest = absl::BytesToHexString(made->image().digest());
  for (const std::string other : {"fruit.", "copy."}) {
    std::ofstream(FileOf(other + std::string(64, '0') + ".json")) << "{}";
  }
  Start();
  std::set<std::string> files;
  EXPECT_TRUE(WaitUntil([&] {
    files.clear();
    for (const auto& file : std::filesystem::directory_iterator(FileOf(""))) {
      files.insert(file.path().filename());
    }
    return files.size() <= 4;
  }));
  EXPECT_THAT(files, ::testing::UnorderedElementsAre("fruit.image", "fruit." + digest + ".json",
                                                     "copy.image", "copy." + digest + ".json"));
}

// A daemon that ends between the two files of a new image has those of the one before.
TEST_F(ImagesTest, EachImageHasItsOwnOrigin) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make());
  const std::string file = FileOf("fruit.image");
  std::filesystem::copy_file(file, file + ".old");
  const std::string origin =
      FileOf("fruit." + absl::BytesToHexString(made->image().digest()) + ".json");
  std::filesystem::copy_file(origin, origin + ".old");
  DeleteItems({catalog_->Find("fruit")->cells->IdOf(0)});
  ASSERT_THAT(FindReady(), IsOk());
  EXPECT_FALSE(std::filesystem::exists(origin)) << "of an image that is gone";
  images_.reset();
  std::filesystem::rename(file + ".old", file);
  std::filesystem::rename(origin + ".old", origin);
  Start();
  ASSERT_OK_AND_ASSIGN(const auto anew, FindReady());
  EXPECT_EQ(anew->image().header().items(), uint64_t{kItems - 1});
  images_.reset();
  std::filesystem::remove(
      FileOf("fruit." + absl::BytesToHexString(anew->image().digest()) + ".json"));
  Start();
  EXPECT_THAT(Warning(), ::testing::HasSubstr("no such file"));
}

TEST_F(ImagesTest, MemoryOfImagesIsLimited) {
  catalog_->SetOptions({.resident_memory = 1});
  EXPECT_THAT(Make(), FailsWith(absl::StatusCode::kResourceExhausted, "max_resident_memory"));
}

TEST_F(ImagesTest, MemoryOfImagesInstalledAtOnceIsLimited) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make());
  const Image& image = made->image();
  // Suffices for one more image, but not for two.
  catalog_->SetOptions({.resident_memory = catalog_->Find("fruit")->resident_memory() +
                                           image.memory() * 3 / 2 +
                                           Image::MemoryToCreate(image.header())});
  constexpr int kCallers = 8;
  std::barrier together(kCallers);
  std::atomic<int> installed = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      together.arrive_and_wait();
      const auto served = Install(absl::StrCat("copy", i), PartsOf(image),
                                  {made->origin.signature, made->origin.signer});
      if (served.ok()) ++installed;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(installed, 1);
}

// Bytes that arrive are memory before they are an image.
TEST_F(ImagesTest, ImagesThatArriveCountForTheLimit) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make());
  const v1::ImageHeader header = made->image().header();
  catalog_->SetOptions({.resident_memory = catalog_->Find("fruit")->resident_memory() +
                                           made->image().memory() +
                                           Image::MemoryToCreate(header) * 3 / 2});
  const std::string& maker = made->origin.signer;
  {
    ASSERT_OK_AND_ASSIGN(const MemoryReservation arriving,
                         images_->BeginInstall("copy", header, maker));
    const absl::Status other = images_->BeginInstall("other", header, maker).status();
    EXPECT_THAT(other, FailsWith(kExhausted, "the image of collection other"));
    EXPECT_THAT(other, FailsWith(kExhausted, "max_resident_memory"));
  }
  EXPECT_THAT(images_->BeginInstall("other", header, maker), IsOk())
      << "the upload of `copy` has ended";
}

TEST_F(ImagesTest, CollectionsAreRefusedBesideImages) {
  NewCollection fish = Fruit();
  fish.name = "fish";
  const int64_t fish_bytes = MemoryOf(catalog_->Create(fish)->published->parameters);
  ASSERT_THAT(catalog_->Delete("fish"), IsOk());
  int64_t image_bytes = 0;
  {
    ASSERT_OK_AND_ASSIGN(const auto made, Make());
    image_bytes = made->image().memory();
  }
  const int64_t all = catalog_->Find("fruit")->resident_memory() + image_bytes + fish_bytes;
  catalog_->SetOptions({.resident_memory = all - 1});
  EXPECT_THAT(catalog_->Create(fish), FailsWith(kExhausted, "max_resident_memory"));
  catalog_->SetOptions({.resident_memory = all});
  ASSERT_THAT(catalog_->Create(fish), IsOk());
  ASSERT_THAT(catalog_->Delete("fish"), IsOk());
  ASSERT_EQ(images_->Remove("fruit").value(), true);
  catalog_->SetOptions({.resident_memory = all - image_bytes});
  EXPECT_THAT(catalog_->Create(fish), IsOk()) << "memory of a removed image is free";
}

// A signature stays valid for ever: without this, whoever may install could bring deleted items
// back.
TEST_F(ImagesTest, OlderImageIsNotInstalled) {
  ASSERT_OK_AND_ASSIGN(const auto first, Make());
  const Signed with_all = SignedOf(*first);
  DeleteItems({catalog_->Find("fruit")->cells->IdOf(0)});
  ASSERT_OK_AND_ASSIGN(const auto second, FindReady());
  const Signed with_fewer = SignedOf(*second);
  const uint64_t version = first->image().header().items_version();
  ASSERT_EQ(second->image().header().items_version(), version) << "a deletion makes no version";
  ASSERT_THAT(InstallCopy(with_all), IsOk());
  ASSERT_THAT(InstallCopy(with_all), IsOk()) << "the same one again";
  ASSERT_THAT(InstallCopy(with_fewer), IsOk());
  EXPECT_THAT(InstallCopy(with_all),
              FailsWith(kFailedPrecondition,
                        absl::StrCat("of items_version ", version, " with 19 items, ",
                                     "but is of items_version ", version, " with 20")));
  Build();
  ASSERT_OK_AND_ASSIGN(const auto third, FindReady());
  ASSERT_GT(third->image().header().items_version(), version);
  ASSERT_THAT(InstallCopy(SignedOf(*third)), IsOk());
  EXPECT_THAT(InstallCopy(with_fewer),
              FailsWith(kFailedPrecondition,
                        absl::StrCat("of items_version ", third->image().header().items_version(),
                                     " with 19 items, but is of items_version ", version)));
  EXPECT_EQ(images_->Find("copy").value()->image().digest(), third->image().digest());
  EXPECT_EQ(images_->Remove("copy").value(), true);
  EXPECT_THAT(InstallCopy(with_all), IsOk()) << "after its deletion here";
}

// Two uploads that both were allowed to begin.
TEST_F(ImagesTest, OlderOfTwoConcurrentUploadsIsRefused) {
  ASSERT_OK_AND_ASSIGN(const auto first, Make());
  Signed older = SignedOf(*first);
  ASSERT_OK_AND_ASSIGN(
      MemoryReservation memory,
      images_->BeginInstall("copy", first->image().header(), first->origin.signer));
  DeleteItems({catalog_->Find("fruit")->cells->IdOf(0)});
  ASSERT_OK_AND_ASSIGN(const auto second, FindReady());
  ASSERT_THAT(InstallCopy(SignedOf(*second)), IsOk());
  EXPECT_THAT(images_->Install("copy", std::move(older.parts), older.signature, std::move(memory)),
              FailsWith(kFailedPrecondition, "deleted items would come back"));
}

// Otherwise an image of whoever, which is not older, and then an older one would be installed.
TEST_F(ImagesTest, ImageOfAnotherCollectionOrMakerIsInstalledAfterDeletion) {
  ASSERT_OK_AND_ASSIGN(const auto made, Make());
  const Signed image = SignedOf(*made);
  const auto install = [&](const ImageParts& parts, const Signer& signer) {
    return Install("copy", parts, *signer.Sign(ImageDigest(parts.header)));
  };
  const ImageParts other = *TwoServerScene(60).Make();
  const Signer stranger;
  ASSERT_THAT(InstallCopy(image), IsOk());
  EXPECT_THAT(install(other, signer_),
              FailsWith(kFailedPrecondition, "is of another of this name"));
  EXPECT_THAT(install(image.parts, stranger),
              FailsWith(kFailedPrecondition, "is signed by another: delete the image here first"));
  EXPECT_EQ(images_->Find("copy").value()->image().digest(), made->image().digest());
  ASSERT_EQ(images_->Remove("copy").value(), true);
  EXPECT_THAT(install(other, stranger), IsOk());
}

// A job that waits for it must not make another by the settings of before.
TEST_F(ImagesTest, ImageMadeByTheOperatorStaysAsTheyWanted) {
  ASSERT_THAT(Make(/*with_scores=*/true), IsOk());
  DeleteItems({catalog_->Find("fruit")->cells->IdOf(0)});
  std::promise<void> begun, queued;
  std::atomic<bool> is_first = true;
  before_signing_ = [&] {
    if (!is_first.exchange(false)) return;
    begun.set_value();
    queued.get_future().wait();
  };
  std::thread operator_makes([&] { EXPECT_THAT(Make(/*with_scores=*/false), IsOk()); });
  begun.get_future().wait();
  EXPECT_THAT(images_->Find("fruit"), FailsWith(kUnavailable));
  queued.set_value();
  operator_makes.join();
  EXPECT_THAT(images_->Find("fruit"), IsOk());
  DeleteItems({catalog_->Find("fruit")->cells->IdOf(1)});
  ASSERT_OK_AND_ASSIGN(const auto later, FindReady());  // its job runs after the one that waited
  EXPECT_FALSE(later->image().header().has_scores());
}

TEST_F(ImagesTest, CollectionWithoutItemsHasNoImage) {
  ASSERT_THAT(Make(), IsOk());
  std::vector<std::string> all;
  for (const Item& item : MakeItems(kItems, 1)) all.push_back(item.id);
  DeleteItems(all);
  EXPECT_THAT(images_->Find("fruit"), FailsWith(kFailedPrecondition, "all its items are deleted"));
  EXPECT_THAT(Make(), FailsWith(kFailedPrecondition, "all that were built are deleted"));
  EXPECT_THAT(catalog_->Upsert(*catalog_->Find("fruit"), MakeItems(7, 1)), IsOk());
  Build();
  ASSERT_OK_AND_ASSIGN(const auto anew, FindReady());
  EXPECT_EQ(anew->image().header().items(), 7u);
}

TEST_F(ImagesTest, CollectionThatWasNotBuiltHasNoImage) {
  NewCollection fish = Fruit();
  fish.name = "fish";
  fish.cells = {3, 4};
  fish.cell_code = CellCode::kScalar8;
  ASSERT_THAT(catalog_->Create(fish), IsOk());
  EXPECT_THAT(images_->Make("fish", {}, stopped_),
              FailsWith(kFailedPrecondition, "it has no items, upload some and build"));
  ASSERT_THAT(catalog_->Upsert(*catalog_->Find("fish"), MakeItems(3, 1)), IsOk());
  EXPECT_THAT(images_->Make("fish", {}, stopped_), FailsWith(kFailedPrecondition, "build it"));
}

}  // namespace
}  // namespace privatemail::testing
