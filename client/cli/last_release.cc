#include "client/cli/last_release.h"

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::cli {
namespace {

constexpr char kRequestFile[] = "/last_request.pb";
constexpr char kCollectionFile[] = "/last_collection.pb";

template <typename Message>
absl::Status Save(const std::string& path, const Message& message) {
  const std::string draft = path + ".new";
  std::ofstream file(draft, std::ios::binary | std::ios::trunc);
  if (!message.SerializeToOstream(&file) || !file.flush() ||
      std::rename(draft.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  }
  return absl::OkStatus();
}

template <typename Message>
absl::Status Load(const std::string& path, Message* message) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return absl::NotFoundError(absl::StrCat(path, " is not there: nothing was released yet"));
  if (!message->ParseFromIstream(&file))
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  return absl::OkStatus();
}

}  // namespace

absl::Status SaveLastRelease(const std::string& state_folder, const LastRelease& last) {
  PM_RETURN_IF_ERROR(Save(state_folder + kRequestFile, last.request));
  return Save(state_folder + kCollectionFile, last.collection);
}

absl::StatusOr<LastRelease> LoadLastRelease(const std::string& state_folder) {
  LastRelease last;
  PM_RETURN_IF_ERROR(Load(state_folder + kRequestFile, &last.request));
  PM_RETURN_IF_ERROR(Load(state_folder + kCollectionFile, &last.collection));
  return last;
}

}  // namespace privatemail::cli
