#include "client/cli/last_release.h"

#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/cli/private_file.h"
#include "common/base/status_macros.h"

namespace privatemail::cli {
namespace {

using google::protobuf::util::ParseDelimitedFromZeroCopyStream;
using google::protobuf::util::SerializeDelimitedToOstream;

std::string PathIn(const std::string& state_folder) { return state_folder + "/last_release.pb"; }

}  // namespace

absl::Status SaveLastRelease(const std::string& state_folder, const LastRelease& last) {
  absl::StatusOr<PrivateFile> file = PrivateFile::Create("last release", PathIn(state_folder));
  if (!file.ok()) return absl::UnavailableError(file.status().message());
  std::ostringstream bytes;
  if (!SerializeDelimitedToOstream(last.request, &bytes) ||
      !SerializeDelimitedToOstream(last.collection, &bytes) ||
      (last.cells && !SerializeDelimitedToOstream(*last.cells, &bytes))) {
    return absl::UnavailableError("last release: is too large to be kept");
  }
  return file->Commit(bytes.str());
}

absl::StatusOr<LastRelease> LoadLastRelease(const std::string& state_folder) {
  const std::string path = PathIn(state_folder);
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return absl::NotFoundError(absl::StrCat(path, " is not there: nothing was released yet"));
  google::protobuf::io::IstreamInputStream bytes(&file);
  LastRelease last;
  bool at_end = false;
  bool whole = ParseDelimitedFromZeroCopyStream(&last.request, &bytes, nullptr) &&
               ParseDelimitedFromZeroCopyStream(&last.collection, &bytes, nullptr);
  if (whole && !ParseDelimitedFromZeroCopyStream(&last.cells.emplace(), &bytes, &at_end)) {
    last.cells.reset();
    whole = at_end;
  }
  if (!whole) return absl::DataLossError(absl::StrCat(path, " is damaged"));
  return last;
}

}  // namespace privatemail::cli
