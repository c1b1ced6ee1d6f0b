#include "client/cli/last_release.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/checked_file.h"
#include "common/base/status_macros.h"

namespace privatemail::cli {
namespace {

using google::protobuf::util::ParseDelimitedFromZeroCopyStream;
using google::protobuf::util::SerializeDelimitedToOstream;

std::string PathIn(const std::string& state_folder) { return state_folder + "/last_release.pb"; }

// The messages, each behind its length: both of a joint release, a third for cells, which is never
// empty but where the rows are of the anchored scheme.
bool Parse(absl::string_view messages, LastRelease* last) {
  google::protobuf::io::ArrayInputStream bytes(messages.data(), static_cast<int>(messages.size()));
  if (!ParseDelimitedFromZeroCopyStream(&last->request, &bytes, nullptr) ||
      !ParseDelimitedFromZeroCopyStream(&last->collection, &bytes, nullptr)) {
    return false;
  }
  bool at_end = false;
  v1::RetrieveCellsRequest cells;
  if (!ParseDelimitedFromZeroCopyStream(&cells, &bytes, &at_end)) return at_end;
  last->anchored = cells.ByteSizeLong() == 0;
  if (!last->anchored) last->cells = std::move(cells);
  return true;
}

}  // namespace

absl::Status SaveLastRelease(const std::string& state_folder, const LastRelease& last) {
  std::ostringstream messages;
  if (!SerializeDelimitedToOstream(last.request, &messages) ||
      !SerializeDelimitedToOstream(last.collection, &messages) ||
      (last.cells && !SerializeDelimitedToOstream(*last.cells, &messages)) ||
      (last.anchored && !SerializeDelimitedToOstream(v1::RetrieveCellsRequest(), &messages))) {
    return absl::UnavailableError("last release: is too large to be kept");
  }
  return SaveChecked("last release", PathIn(state_folder), messages.str());
}

absl::StatusOr<LastRelease> LoadLastRelease(const std::string& state_folder) {
  const std::string path = PathIn(state_folder);
  const absl::StatusOr<std::string> messages = LoadChecked(path);
  if (absl::IsNotFound(messages.status())) {
    return absl::NotFoundError(
        absl::StrCat(messages.status().message(), ": nothing was released yet"));
  }
  PM_RETURN_IF_ERROR(messages.status());
  LastRelease last;
  if (!Parse(*messages, &last)) return DamagedFile(path);
  return last;
}

}  // namespace privatemail::cli
