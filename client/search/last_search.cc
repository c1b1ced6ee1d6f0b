#include "client/search/last_search.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/files/private_file.h"
#include "client/search/row_tables.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/lattice/scores.h"

namespace privatemail::client {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::ParseDelimitedFromZeroCopyStream;
using google::protobuf::util::SerializeDelimitedToOstream;

// Searches under encryption cost nothing and must not replace a release that was paid for.
std::string PathIn(const std::string& state_folder, bool is_encrypted) {
  return state_folder + (is_encrypted ? "/last_encrypted.pb" : "/last_release.pb");
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

absl::Status SaveLastSearch(const std::string& state_folder, const LastSearch& last) {
  std::ostringstream content;
  content << NameOf(last.scheme) << "\n";
  google::protobuf::BytesValue message;
  message.set_value(last.message);
  if (!SerializeDelimitedToOstream(last.collection, &content) ||
      !SerializeDelimitedToOstream(message, &content)) {
    return absl::UnavailableError("last release: too large to store");
  }
  return SaveChecked("last release", PathIn(state_folder, last.scheme == Scheme::kEncrypted),
                     content.str());
}

absl::StatusOr<LastSearch> LoadLastRelease(const std::string& state_folder,
                                           const std::string& collection) {
  absl::StatusOr<LastSearch> last = Load(PathIn(state_folder, false), collection);
  if (!absl::IsNotFound(last.status()) || !fs::exists(PathIn(state_folder, true))) return last;
  return absl::FailedPreconditionError(
      "the last search was under encryption, which costs nothing, and its ciphertexts are not "
      "saved: search again");
}

absl::StatusOr<LastSearch> LoadLastSearch(const std::string& state_folder,
                                          const std::string& collection) {
  const std::string release = PathIn(state_folder, false), search = PathIn(state_folder, true);
  std::error_code no_release, no_search;
  const auto released = fs::last_write_time(release, no_release);
  const auto searched = fs::last_write_time(search, no_search);
  return Load(no_search || (!no_release && released > searched) ? release : search, collection);
}

absl::Status SearchRecord::CheckWritable() const {
  return PrivateFile::Create("last release",
                             PathIn(state_folder_, last_.scheme == Scheme::kEncrypted))
      .status();
}

absl::Status SearchRecord::SaveMessage(const google::protobuf::Message& message) {
  if (last_.scheme != Scheme::kEncrypted) {
    last_.message = message.SerializeAsString();
    PM_RETURN_IF_ERROR(SaveLastSearch(state_folder_, last_));
    can_resend_ = true;
    return absl::OkStatus();
  }
  const auto& encrypted = static_cast<const v1::SearchEncryptedRequest&>(message);
  if (messages_++ == 0) {
    first_ = encrypted;
    first_.clear_queries();
  }
  queries_ += static_cast<uint64_t>(encrypted.queries_size());
  bytes_ += encrypted.ByteSizeLong();
  return SaveView();
}

absl::Status SearchRecord::SaveAnswer(const SearchAnswer& answer) {
  if (last_.scheme != Scheme::kEncrypted) return absl::OkStatus();
  const std::string digest =
      RootDigest(std::any_cast<const EncryptedExchange&>(answer.value).answer.header());
  if (std::find(tables_.begin(), tables_.end(), digest) != tables_.end()) return absl::OkStatus();
  tables_.push_back(digest);
  return SaveView();
}

// Names everything that the server sees, but not the ciphertexts, and nothing that was decrypted.
absl::Status SearchRecord::SaveView() {
  nlohmann::json tables = nlohmann::json::array();
  for (const std::string& digest : tables_) tables.push_back(ToHex(digest));
  last_.message =
      nlohmann::json({{"delta", first_.delta()},
                      {"queries", queries_},
                      {"messages", messages_},
                      {"bytes", bytes_},
                      {"keys_digest", ToHex(first_.keys_digest())},
                      {"keys_bytes", lattice::KeysBytes(static_cast<int>(first_.delta()))},
                      {"known_blocks", first_.known_blocks_size()},
                      {"with_payloads", first_.with_payloads()},
                      {"known_payload_blocks", first_.known_payload_blocks_size()},
                      {"tables", tables}})
          .dump();
  return SaveLastSearch(state_folder_, last_);
}

}  // namespace privatemail::client
