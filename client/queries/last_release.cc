#include "client/queries/last_release.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <google/protobuf/wrappers.pb.h>

#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/queries/private_file.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::ParseDelimitedFromZeroCopyStream;
using google::protobuf::util::SerializeDelimitedToOstream;

// Searches under encryption cost nothing and must not replace a release that was paid for.
std::string PathIn(const std::string& state_folder, bool is_encrypted) {
  return state_folder + (is_encrypted ? "/last_encrypted.pb" : "/last_release.pb");
}

// The scheme's name, '\n', then length-delimited messages. Of joint and cells three.
bool Parse(absl::string_view content, LastRelease* last) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(content, absl::MaxSplits('\n', 1));
  const auto scheme = kSchemeNames.find(std::string(parts.first));
  if (scheme == kSchemeNames.end()) return false;
  last->scheme = scheme->second;
  google::protobuf::io::ArrayInputStream bytes(parts.second.data(),
                                               static_cast<int>(parts.second.size()));
  if (!ParseDelimitedFromZeroCopyStream(&last->collection, &bytes, nullptr) ||
      !ParseDelimitedFromZeroCopyStream(&last->request, &bytes, nullptr) ||
      !ParseDelimitedFromZeroCopyStream(&last->cells, &bytes, nullptr)) {
    return false;
  }
  if (last->scheme != Scheme::kEncrypted) return true;
  google::protobuf::StringValue view;
  if (!ParseDelimitedFromZeroCopyStream(&view, &bytes, nullptr)) return false;
  last->view = view.value();
  return true;
}

absl::StatusOr<LastRelease> Load(const std::string& path) {
  const absl::StatusOr<std::string> content = LoadChecked(path);
  if (absl::IsNotFound(content.status())) {
    return absl::NotFoundError(
        absl::StrCat(content.status().message(), ": nothing was released yet"));
  }
  PM_RETURN_IF_ERROR(content.status());
  LastRelease last;
  if (!Parse(*content, &last)) return DamagedFile(path);
  return last;
}

}  // namespace

absl::Status SaveLastRelease(const std::string& state_folder, const LastRelease& last) {
  std::ostringstream content;
  content << NameOf(last.scheme) << "\n";
  if (!SerializeDelimitedToOstream(last.collection, &content) ||
      !SerializeDelimitedToOstream(last.request, &content) ||
      !SerializeDelimitedToOstream(last.cells, &content)) {
    return absl::UnavailableError("last release: too large to store");
  }
  if (last.scheme == Scheme::kEncrypted) {
    google::protobuf::StringValue view;
    view.set_value(last.view);
    SerializeDelimitedToOstream(view, &content);
  }
  return SaveChecked("last release", PathIn(state_folder, last.scheme == Scheme::kEncrypted),
                     content.str());
}

absl::Status CheckLastReleaseCanBeSaved(const std::string& state_folder) {
  return PrivateFile::Create("last release", PathIn(state_folder, false)).status();
}

absl::StatusOr<LastRelease> LoadLastRelease(const std::string& state_folder) {
  absl::StatusOr<LastRelease> last = Load(PathIn(state_folder, false));
  if (!absl::IsNotFound(last.status()) || !fs::exists(PathIn(state_folder, true))) return last;
  return absl::FailedPreconditionError(
      "the last search was under encryption, which costs nothing, and its ciphertexts are not "
      "saved: search again");
}

absl::StatusOr<LastRelease> LoadLastSearch(const std::string& state_folder) {
  const std::string release = PathIn(state_folder, false), search = PathIn(state_folder, true);
  std::error_code no_release, no_search;
  const auto released = fs::last_write_time(release, no_release);
  const auto searched = fs::last_write_time(search, no_search);
  return Load(no_search || (!no_release && released > searched) ? release : search);
}

}  // namespace privatemail::client
