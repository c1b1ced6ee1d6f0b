#include "server/image/image_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

constexpr absl::string_view kImageSuffix = ".image";

std::string ToJson(const ImageOrigin& origin) {
  return nlohmann::json({{"made_here", origin.made_here},
                         {"list_items", origin.settings.list_items},
                         {"with_scores", origin.settings.with_scores},
                         {"signature", absl::BytesToHexString(origin.signature)},
                         {"signer", absl::BytesToHexString(origin.signer)}})
             .dump(1) +
         "\n";
}

// Of any image of this collection.
bool IsOriginOf(const std::string& name, const std::string& file) {
  constexpr size_t kOriginBytes = 1 + 64 + 5;  // ".", digest, ".json"
  return file.size() == name.size() + kOriginBytes && absl::StartsWith(file, name + ".") &&
         absl::EndsWith(file, ".json");
}

}  // namespace

ImageFiles::ImageFiles(const std::string& data_directory)
    : folder_(absl::StrCat(data_directory, "/images/")) {
  std::error_code ignored;  // of a folder that is not there
  for (const auto& file : std::filesystem::directory_iterator(folder_, ignored)) {
    if (file.path().extension() == ".new") std::filesystem::remove(file.path(), ignored);
  }
}

std::set<std::string> ImageFiles::Names() const {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::string path = file.path().filename();
    absl::string_view name = path;
    if (absl::ConsumeSuffix(&name, kImageSuffix)) names.emplace(name);
  }
  return names;
}

std::string ImageFiles::PathOf(const std::string& name) const {
  return absl::StrCat(folder_, name, kImageSuffix);
}

std::string ImageFiles::OriginPath(const std::string& name, absl::string_view digest) const {
  return absl::StrCat(folder_, name, ".", absl::BytesToHexString(digest), ".json");
}

absl::StatusOr<ImageOrigin> ImageFiles::ReadOrigin(const std::string& name,
                                                   absl::string_view digest) const {
  const std::string path = OriginPath(name, digest);
  PM_ASSIGN_OR_RETURN(const std::string text, ReadFileBytes(path, kSmallFileBytes));
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    ImageOrigin origin;
    origin.made_here = json.at("made_here");
    origin.settings.list_items = json.at("list_items");
    origin.settings.with_scores = json.at("with_scores");
    origin.signature = absl::HexStringToBytes(json.at("signature").get<std::string>());
    origin.signer = absl::HexStringToBytes(json.at("signer").get<std::string>());
    return origin;
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: ", error.what()));
  }
}

absl::Status ImageFiles::WriteOrigin(const std::string& name, absl::string_view digest,
                                     const ImageOrigin& origin) const {
  std::error_code ignored;  // shows again when the file is written
  std::filesystem::create_directories(folder_, ignored);
  return WriteFileAtomically(OriginPath(name, digest), ToJson(origin), 0600);
}

void ImageFiles::RemoveOrigin(const std::string& name, absl::string_view digest) const {
  std::error_code ignored;
  std::filesystem::remove(OriginPath(name, digest), ignored);
}

void ImageFiles::RemoveOtherOrigins(const std::string& name, absl::string_view digest) const {
  const std::filesystem::path kept = OriginPath(name, digest);
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::filesystem::path one = file.path().filename();
    if (one != kept.filename() && IsOriginOf(name, one)) {
      std::filesystem::remove(file.path(), ignored);
    }
  }
}

absl::StatusOr<bool> ImageFiles::Remove(const std::string& name) const {
  bool had_image = false;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder_, error)) {
    const std::string one = file.path().filename();
    const bool is_image = one == absl::StrCat(name, kImageSuffix);
    if (!is_image && !IsOriginOf(name, one)) continue;
    std::filesystem::remove(file.path(), error);
    if (error) {
      return absl::FailedPreconditionError(absl::StrCat("the image's file ", file.path().string(),
                                                        " cannot be deleted: ", error.message()));
    }
    had_image |= is_image;
  }
  return had_image;
}

}  // namespace privatemail::server
