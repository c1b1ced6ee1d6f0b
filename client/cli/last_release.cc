#include "client/cli/last_release.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/private_file.h"
#include "common/base/status_macros.h"
#include "common/protocol/sha256.h"

namespace privatemail::cli {
namespace {

using google::protobuf::util::ParseDelimitedFromZeroCopyStream;
using google::protobuf::util::SerializeDelimitedToOstream;

// The file: the SHA-256 of what follows, then the messages, each behind its length: both of a joint
// release, a third for cells, which is never empty but where the rows are of the anchored scheme.
constexpr size_t kDigestBytes = 32;

std::string PathIn(const std::string& state_folder) { return state_folder + "/last_release.pb"; }

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
  absl::StatusOr<PrivateFile> file = PrivateFile::Create("last release", PathIn(state_folder));
  if (!file.ok()) return absl::UnavailableError(file.status().message());
  std::ostringstream messages;
  if (!SerializeDelimitedToOstream(last.request, &messages) ||
      !SerializeDelimitedToOstream(last.collection, &messages) ||
      (last.cells && !SerializeDelimitedToOstream(*last.cells, &messages)) ||
      (last.anchored && !SerializeDelimitedToOstream(v1::RetrieveCellsRequest(), &messages))) {
    return absl::UnavailableError("last release: is too large to be kept");
  }
  return file->Commit(Sha256::Of(messages.str()) + messages.str());
}

absl::StatusOr<LastRelease> LoadLastRelease(const std::string& state_folder) {
  const std::string path = PathIn(state_folder);
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return absl::NotFoundError(absl::StrCat(path, " is not there: nothing was released yet"));
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const absl::string_view messages =
      absl::string_view(bytes).substr(std::min(bytes.size(), kDigestBytes));
  LastRelease last;
  if (absl::string_view(bytes).substr(0, kDigestBytes) == Sha256::Of(messages) &&
      Parse(messages, &last)) {
    return last;
  }
  return absl::DataLossError(absl::StrCat(path, " is damaged, or of another version"));
}

}  // namespace privatemail::cli
