#include "client/search/last_search.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <google/protobuf/wrappers.pb.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/search/scheme_table.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::ParseDelimitedFromZeroCopyStream;
using google::protobuf::util::SerializeDelimitedToOstream;

std::string PathIn(const std::string& state_folder, bool can_resend) {
  return state_folder + (can_resend ? "/last_release.pb" : "/last_encrypted.pb");
}

// The scheme's name, '\n', then the collection and the message, length-delimited.
bool Parse(absl::string_view content, LastSearch* last) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(content, absl::MaxSplits('\n', 1));
  const auto scheme = kSchemeNames.find(std::string(parts.first));
  if (scheme == kSchemeNames.end()) return false;
  last->scheme = scheme->second;
  google::protobuf::io::ArrayInputStream bytes(parts.second.data(),
                                               static_cast<int>(parts.second.size()));
  google::protobuf::BytesValue message;
  if (!ParseDelimitedFromZeroCopyStream(&last->collection, &bytes, nullptr) ||
      !ParseDelimitedFromZeroCopyStream(&message, &bytes, nullptr)) {
    return false;
  }
  last->message = message.value();
  return true;
}

absl::StatusOr<LastSearch> Load(const std::string& path, const std::string& collection) {
  const absl::StatusOr<std::string> content = LoadChecked(path);
  if (absl::IsNotFound(content.status())) {
    return absl::NotFoundError(
        absl::StrCat(content.status().message(), ": nothing was released yet"));
  }
  PM_RETURN_IF_ERROR(content.status());
  LastSearch last;
  if (!Parse(*content, &last)) return DamagedFile(path);
  if (collection.empty() || last.collection.name() == collection) return last;
  return absl::FailedPreconditionError(absl::StrCat("the last release was for the collection ",
                                                    Printable(last.collection.name()), ", not for ",
                                                    collection));
}

}  // namespace

absl::Status SaveLastSearch(const std::string& state_folder, const LastSearch& last,
                            std::unique_ptr<PrivateFile> reserved) {
  std::ostringstream content;
  content << NameOf(last.scheme) << "\n";
  google::protobuf::BytesValue message;
  message.set_value(last.message);
  if (!SerializeDelimitedToOstream(last.collection, &content) ||
      !SerializeDelimitedToOstream(message, &content)) {
    return absl::UnavailableError("last release: too large to store");
  }
  const bool can_resend = EntryOf(last.scheme).can_resend;
  const std::string path = PathIn(state_folder, can_resend);
  PM_RETURN_IF_ERROR(SaveChecked("last release", path, content.str(), std::move(reserved)));
  // LoadLastSearch takes the later file, and two saves may share a tick of the file system.
  std::error_code no_other, no_own;
  const auto other = fs::last_write_time(PathIn(state_folder, !can_resend), no_other);
  if (!no_other && fs::last_write_time(path, no_own) <= other && !no_own) {
    fs::last_write_time(path, other + std::chrono::microseconds(1), no_own);
  }
  return absl::OkStatus();
}

absl::StatusOr<LastSearch> LoadLastRelease(const std::string& state_folder,
                                           const std::string& collection) {
  absl::StatusOr<LastSearch> last = Load(PathIn(state_folder, true), collection);
  if (!absl::IsNotFound(last.status()) || !fs::exists(PathIn(state_folder, false))) return last;
  return absl::FailedPreconditionError(
      "the last search was under encryption, which costs nothing, and its ciphertexts are not "
      "saved: search again");
}

absl::StatusOr<LastSearch> LoadLastSearch(const std::string& state_folder,
                                          const std::string& collection) {
  const std::string release = PathIn(state_folder, true), search = PathIn(state_folder, false);
  std::error_code no_release, no_search;
  const auto released = fs::last_write_time(release, no_release);
  const auto searched = fs::last_write_time(search, no_search);
  return Load(no_search || (!no_release && released > searched) ? release : search, collection);
}

absl::StatusOr<std::unique_ptr<PrivateFile>> ReserveLastSearch(const std::string& state_folder,
                                                               const LastSearch& last,
                                                               int64_t message_bytes) {
  constexpr int64_t kRest = 1024;  // digest, lengths, and the other fields of the message
  PM_ASSIGN_OR_RETURN(
      auto file,
      PrivateFile::Create("last release", PathIn(state_folder, EntryOf(last.scheme).can_resend)));
  PM_RETURN_IF_ERROR(
      file->Reserve(static_cast<int64_t>(last.collection.ByteSizeLong()) + message_bytes + kRest));
  return file;
}

}  // namespace privatemail::client
