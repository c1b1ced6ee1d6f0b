#include "client/queries/item_cache.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/queries/folder_lock.h"
#include "client/queries/private_file.h"
#include "common/base/printable.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/wire/parameters_proto.h"

namespace privatemail::client {
namespace {

using google::protobuf::util::ParseDelimitedFromZeroCopyStream;
using google::protobuf::util::SerializeDelimitedToOstream;

// A digest of the name: names come from the server and must not choose the path.
std::string PathOf(const std::string& state_folder, const std::string& collection) {
  return absl::StrCat(state_folder, "/received-", ToHex(Sha256::Of(collection)).substr(0, 32),
                      ".pb");
}

// Length-delimited messages: parameters, anchors if items are coordinates, answers.
absl::StatusOr<CachedItems> Parse(const std::string& path, absl::string_view bytes) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  v1::PublicParameters proto;
  if (!ParseDelimitedFromZeroCopyStream(&proto, &stream, nullptr)) return DamagedFile(path);
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(proto));
  PM_RETURN_IF_ERROR(CheckCellCode(true, parameters.cell_code.has_value()));
  CachedItems cached{.parameters = parameters, .anchors = {}, .items = CellItemCache(parameters)};
  for (int64_t rows = 0; parameters.SendsCoordinates() && rows < parameters.anchor_count;) {
    v1::GetAnchorsResponse& chunk = cached.anchors.emplace_back();
    if (!ParseDelimitedFromZeroCopyStream(&chunk, &stream, nullptr)) return DamagedFile(path);
    if (chunk.labels().empty()) return DamagedFile(path);
    rows += chunk.labels_size();
  }
  bool at_end = false;
  for (v1::RetrieveCellsResponse message;
       ParseDelimitedFromZeroCopyStream(&message, &stream, &at_end); message.Clear()) {
    PM_RETURN_IF_ERROR(cached.items.Add(message));
  }
  if (!at_end) return DamagedFile(path);
  return cached;
}

absl::Status Save(const std::string& path, const CachedItems& cached) {
  v1::PublicParameters proto;
  ToProto(cached.parameters, &proto);
  std::ostringstream messages;
  bool written = SerializeDelimitedToOstream(proto, &messages);
  for (const v1::GetAnchorsResponse& chunk : cached.anchors) {
    written = written && SerializeDelimitedToOstream(chunk, &messages);
  }
  for (const v1::RetrieveCellsResponse& message : cached.items.ToMessages()) {
    written = written && SerializeDelimitedToOstream(message, &messages);
  }
  if (!written) return absl::UnavailableError("received items: too many to store");
  return SaveChecked("received items", path, messages.str());
}

bool AreEqual(const std::vector<v1::GetAnchorsResponse>& some,
              const std::vector<v1::GetAnchorsResponse>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const auto& one, const auto& other) {
                      return one.embedding_version() == other.embedding_version() &&
                             one.coordinates().SerializeAsString() ==
                                 other.coordinates().SerializeAsString();
                    });
}

void RenameDamaged(const std::string& path, const absl::Status& why, const WarnFunction& warn) {
  const std::string aside = path + ".damaged";
  std::error_code failed;
  std::filesystem::rename(path, aside, failed);
  warn(absl::StrCat("items received before are no longer available to `privatemail rank`: ",
                    why.message(), failed ? "" : absl::StrCat("; it is now ", aside)));
}

}  // namespace

absl::Status CacheItems(const std::string& state_folder,
                        const v1::GetCollectionResponse& collection,
                        const std::vector<v1::GetAnchorsResponse>& anchors,
                        const std::vector<v1::RetrieveCellsResponse>& answers,
                        const WarnFunction& warn) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(collection.parameters()));
  if (answers.empty()) return absl::OkStatus();
  FolderLock lock("received items", state_folder);  // so that concurrent writers lose nothing
  PM_RETURN_IF_ERROR(lock.Take());
  const std::string path = PathOf(state_folder, collection.name());
  absl::StatusOr<CachedItems> cached = LoadCachedItems(state_folder, collection.name());
  if (absl::IsDataLoss(cached.status())) {
    RenameDamaged(path, cached.status(), warn);
  } else if (!cached.ok() && !absl::IsNotFound(cached.status())) {
    return cached.status();  // it may be readable later
  }
  const bool other = cached.ok() && Fingerprint(cached->parameters) != collection.fingerprint();
  if (other) {
    warn(absl::StrCat("items received of another collection ", Printable(collection.name()),
                      " are no longer available to `privatemail rank`"));
  }
  if (!cached.ok() || other) {
    cached =
        CachedItems{.parameters = parameters, .anchors = {}, .items = CellItemCache(parameters)};
  }
  // Compared by coordinates: a restored collection repeats embedding versions.
  if (parameters.SendsCoordinates() && !AreEqual(cached->anchors, anchors)) {
    cached->anchors = anchors;
    cached->items = CellItemCache(parameters);
  }
  absl::Status status;
  for (const v1::RetrieveCellsResponse& answer : answers) status.Update(cached->items.Add(answer));
  status.Update(Save(path, *cached));
  return status;
}

AnswerCache::AnswerCache(std::string state_folder, v1::GetCollectionResponse collection,
                         std::vector<v1::GetAnchorsResponse> anchors, WarnFunction warn,
                         Clock::duration every)
    : state_folder_(std::move(state_folder)),
      collection_(std::move(collection)),
      anchors_(std::move(anchors)),
      warn_(std::move(warn)),
      every_(every) {}

void AnswerCache::Add(const std::vector<v1::RetrieveCellsResponse>& answer) {
  unwritten_.insert(unwritten_.end(), answer.begin(), answer.end());
  if (Clock::now() - written_ >= every_) Write();
}

absl::Status AnswerCache::Finish() {
  Write();
  return status_;
}

void AnswerCache::Write() {
  status_.Update(CacheItems(state_folder_, collection_, anchors_, unwritten_, warn_));
  unwritten_.clear();
  written_ = Clock::now();
}

void WarnIfNotCached(const absl::Status& cached, const WarnFunction& warn) {
  if (!cached.ok())
    warn(absl::StrCat("`privatemail rank` will not find these: ", cached.message()));
}

absl::StatusOr<CachedItems> LoadCachedItems(const std::string& state_folder,
                                            const std::string& collection) {
  const std::string path = PathOf(state_folder, collection);
  const absl::StatusOr<std::string> bytes = LoadChecked(path);
  if (absl::IsNotFound(bytes.status())) {
    return absl::NotFoundError(absl::StrCat("nothing was received for cells of collection ",
                                            collection, " yet: `privatemail query ", collection,
                                            " --scheme cells` fetches some"));
  }
  PM_RETURN_IF_ERROR(bytes.status());
  return Parse(path, *bytes);
}

}  // namespace privatemail::client
