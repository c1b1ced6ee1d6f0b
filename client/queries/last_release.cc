#include "client/queries/last_release.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <google/protobuf/wrappers.pb.h>

#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/queries/private_file.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

using google::protobuf::util::ParseDelimitedFromZeroCopyStream;
using google::protobuf::util::SerializeDelimitedToOstream;

std::string PathIn(const std::string& state_folder) { return state_folder + "/last_release.pb"; }

// The scheme's name, '\n', then length-delimited messages. Of joint, anchored and cells three.
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
  return SaveChecked("last release", PathIn(state_folder), content.str());
}

absl::Status CheckLastReleaseCanBeSaved(const std::string& state_folder) {
  return PrivateFile::Create("last release", PathIn(state_folder)).status();
}

absl::StatusOr<LastRelease> LoadLastRelease(const std::string& state_folder) {
  const std::string path = PathIn(state_folder);
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

}  // namespace privatemail::client
