#include "server/services/two_server_service.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/image/image_header.h"
#include "common/image/score_shares.h"
#include "server/services/rpc_table.h"

namespace privatemail::server {
namespace {

constexpr size_t kPartBytes = 1 << 20;

// Sends `bytes` in messages of a part each.
template <typename Message, typename SetPart>
absl::Status SendParts(absl::string_view bytes, SetPart set_part, Call& call,
                       MessageWriter<Message>& writer) {
  Message message;
  do {
    const absl::string_view part = bytes.substr(0, kPartBytes);
    bytes.remove_prefix(part.size());
    set_part(std::string(part), &message);
    if (writer.Write(message)) continue;
    PM_RETURN_IF_ERROR(call.StreamStatus());
    return absl::CancelledError("the caller stopped reading");
  } while (!bytes.empty());
  return absl::OkStatus();
}

absl::Status CheckBytes(absl::string_view field, const std::string& value, int64_t expected) {
  if (std::ssize(value) == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must have ", expected, " bytes, but has ", value.size()));
}

absl::StatusOr<std::vector<uint32_t>> ReadShare(const v1::ScoreRequest& request, int64_t dim) {
  if (request.share_case() == v1::ScoreRequest::kSeed) {
    PM_RETURN_IF_ERROR(CheckBytes("seed", request.seed(), kScoreSeedBytes));
    return ExpandScoreSeed(request.seed(), dim);
  }
  PM_RETURN_IF_ERROR(
      CheckBytes("values", request.values(), dim * static_cast<int64_t>(sizeof(uint32_t))));
  std::vector<uint32_t> share(static_cast<size_t>(dim));
  std::memcpy(share.data(), request.values().data(), request.values().size());
  return share;
}

}  // namespace

absl::Status TwoServerService::CheckTakesPart() const {
  if (!options_.operator_name.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this server takes no part in searches of two operators: its setting `operator` is empty");
}

absl::StatusOr<TwoServerService::Served> TwoServerService::Find(const std::string& name) const {
  PM_RETURN_IF_ERROR(CheckTakesPart());
  return images_->Find(name);
}

absl::StatusOr<TwoServerService::Served> TwoServerService::Find(const std::string& name,
                                                                const std::string& digest) const {
  PM_ASSIGN_OR_RETURN(Served served, Find(name));
  if (served->image().digest() == digest) return served;
  return absl::FailedPreconditionError(
      absl::StrCat("the image has changed: expected ", absl::BytesToHexString(digest.substr(0, 32)),
                   ", got ", absl::BytesToHexString(served->image().digest()), "; ask again"));
}

void TwoServerService::Describe(const ServedImage& served, v1::GetImageResponse* response) const {
  response->set_header(served.image().header_bytes());
  response->set_operator_name(options_.operator_name);
  response->set_allows_scores(options_.allow_scores);
  response->set_signature(served.origin.signature);
  response->set_signer(served.origin.signer);
}

absl::Status TwoServerService::SendScores(const v1::ScoreRequest& request, Call& call,
                                          MessageWriter<v1::ScoreResponse>& writer) const {
  PM_ASSIGN_OR_RETURN(const Served served, Find(request.collection(), request.digest()));
  if (!options_.allow_scores) {
    return absl::PermissionDeniedError(
        "this operator does not allow scores, from which searchers can compute the vectors "
        "(setting allow_scores)");
  }
  const v1::ImageHeader& header = served->image().header();
  if (!header.has_scores()) {
    return absl::FailedPreconditionError(
        "the image has no scores: it was made without --with-scores");
  }
  PM_ASSIGN_OR_RETURN(const std::vector<uint32_t> share, ReadShare(request, header.feature_dim()));
  PM_RETURN_IF_ERROR(
      call.ReserveSearchMemory(static_cast<int64_t>(header.items() * 2 * kScoreBytes)));
  PM_ASSIGN_OR_RETURN(const std::string scores,
                      served->pass->Scores(share, [&call] { return call.Cancelled(); }));
  call.AddRows(header.items());
  return SendParts(
      scores, [](std::string part, auto* message) { message->set_scores(std::move(part)); }, call,
      writer);
}

absl::Status TwoServerService::SendLists(const v1::FetchListsRequest& request, Call& call,
                                         MessageWriter<v1::FetchListsResponse>& writer) const {
  PM_ASSIGN_OR_RETURN(const Served served, Find(request.collection(), request.digest()));
  const v1::ListGroup* group = FindListGroup(served->image().header(), request.group());
  if (group == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("group must be one of the image's ",
                                                   PayloadGroup(served->image().header()),
                                                   " partitions, or the next for payloads if it "
                                                   "has any, but is ",
                                                   request.group()));
  }
  const int fetches = request.selections_size();
  PM_RETURN_IF_ERROR(CheckIntegerBetween("number of selections", fetches, 1, kMaxFetches));
  const auto bytes = static_cast<int64_t>(group->list_bytes()) * fetches;
  PM_RETURN_IF_ERROR(CheckLimit("memory of this request in bytes", 2 * bytes,
                                call.limits().max_request_memory, "max_request_memory"));
  PM_RETURN_IF_ERROR(call.ReserveSearchMemory(2 * bytes));
  const std::vector<std::string> selections(request.selections().begin(),
                                            request.selections().end());
  PM_ASSIGN_OR_RETURN(
      const std::string lists,
      served->pass->Lists(request.group(), selections, [&call] { return call.Cancelled(); }));
  call.AddRows(static_cast<uint64_t>(fetches));
  return SendParts(
      lists, [](std::string part, auto* message) { message->set_lists(std::move(part)); }, call,
      writer);
}

absl::Status TwoServerService::Install(Call& call, MessageReader<v1::InstallImageRequest>& reader,
                                       v1::GetImageResponse* response) const {
  v1::InstallImageRequest message;
  std::string name;
  ImageParts parts;
  Images::Signature signature;
  v1::ImageHeader header;
  MemoryReservation memory;
  for (int64_t number = 0; reader.Read(&message); ++number) {
    PM_RETURN_IF_ERROR(call.CheckAccess(message));
    if (number == 0) {
      name = message.collection();
      parts.header = message.header();
      signature = {message.signature(), message.signer()};
      PM_RETURN_IF_ERROR(CheckTakesPart());
      PM_ASSIGN_OR_RETURN(header, ReadImageHeader(parts.header));
      PM_RETURN_IF_ERROR(
          CheckImageSignature(ImageDigest(parts.header), signature.signer, signature.signature));
      PM_ASSIGN_OR_RETURN(memory, images_->BeginInstall(name, header, signature.signer));
      // Growing strings would take up to twice what was reserved.
      parts.sections.emplace_back().reserve(header.sections(0).bytes());
    }
    PM_RETURN_IF_ERROR(
        CheckSameCollection(name, message.collection(), number, "nothing is installed"));
    absl::string_view part = message.bytes();
    while (!part.empty()) {
      const size_t section = parts.sections.size() - 1;
      const uint64_t size = header.sections(static_cast<int>(section)).bytes();
      std::string& to = parts.sections.back();
      const absl::string_view taken = part.substr(0, size - to.size());
      to.append(taken.data(), taken.size());
      part.remove_prefix(taken.size());
      if (to.size() < size) continue;
      if (std::ssize(parts.sections) < header.sections_size()) {
        parts.sections.emplace_back().reserve(
            header.sections(static_cast<int>(section) + 1).bytes());
      } else if (!part.empty()) {
        return absl::DataLossError("the image has more bytes than its header says");
      }
    }
  }
  PM_RETURN_IF_ERROR(call.StreamStatus());
  PM_RETURN_IF_ERROR(CheckNotEmpty("collection", name));
  PM_ASSIGN_OR_RETURN(
      const Served served,
      images_->Install(name, std::move(parts), std::move(signature), std::move(memory)));
  call.AddRows(header.items());
  Describe(*served, response);
  return absl::OkStatus();
}

UnaryReactor* TwoServerService::GetImage(RpcContext* context, const Bytes* request,
                                         Bytes* response) {
  return dispatcher_->ServeUnary<v1::GetImageRequest, v1::GetImageResponse>(
      context, "GetImage", request, response,
      [this](Call& /*call*/, const auto& message, auto* answer) -> absl::Status {
        PM_ASSIGN_OR_RETURN(const Served served, Find(message.collection()));
        Describe(*served, answer);
        return absl::OkStatus();
      });
}

WriteReactor* TwoServerService::GetImageSection(RpcContext* context, const Bytes* request) {
  return dispatcher_->ServeServerStream<v1::GetImageSectionRequest, v1::ImageBytes>(
      context, "GetImageSection", request,
      [this](Call& call, const auto& message, auto& writer) -> absl::Status {
        PM_ASSIGN_OR_RETURN(const Served served, Find(message.collection(), message.digest()));
        if (message.section() != v1::IMAGE_SECTION_TABLE &&
            !call.HasScope(kWriteScope | kAdminScope)) {
          return absl::PermissionDeniedError(
              "sections other than ids and labels need a key with scope write or admin");
        }
        if (FindSection(served->image().header(), message.section()) == nullptr) {
          return absl::InvalidArgumentError(
              absl::StrCat("section must be one of the image's, but is ", message.section()));
        }
        const auto send = [&](absl::string_view bytes) {
          return SendParts(
              bytes, [](std::string part, auto* to) { to->set_bytes(std::move(part)); }, call,
              writer);
        };
        // Not copied: any number of searchers may read a table, slowly.
        if (const auto kept = served->image().KeptSection(message.section())) return send(*kept);
        PM_ASSIGN_OR_RETURN(const MemoryReservation memory,
                            images_->ReserveSection(served->image(), message.section()));
        return send(served->image().Section(message.section()));
      });
}

WriteReactor* TwoServerService::Score(RpcContext* context, const Bytes* request) {
  return dispatcher_->ServeServerStream<v1::ScoreRequest, v1::ScoreResponse>(
      context, "Score", request, [this](Call& call, const auto& message, auto& writer) {
        return SendScores(message, call, writer);
      });
}

WriteReactor* TwoServerService::FetchLists(RpcContext* context, const Bytes* request) {
  return dispatcher_->ServeServerStream<v1::FetchListsRequest, v1::FetchListsResponse>(
      context, "FetchLists", request, [this](Call& call, const auto& message, auto& writer) {
        return SendLists(message, call, writer);
      });
}

UnaryReactor* TwoServerService::MakeImage(RpcContext* context, const Bytes* request,
                                          Bytes* response) {
  return dispatcher_->ServeUnary<v1::MakeImageRequest, v1::GetImageResponse>(
      context, "MakeImage", request, response,
      [this](Call& call, const auto& message, auto* answer) -> absl::Status {
        if (options_.operator_name.empty() || (message.with_scores() && !options_.allow_scores)) {
          return absl::FailedPreconditionError(
              options_.operator_name.empty()
                  ? "images need the daemon's setting `operator`, the name that searchers see"
                  : "scores need the daemon's setting allow_scores");
        }
        ImageSettings settings;
        if (message.list_items() != 0) settings.list_items = message.list_items();
        settings.with_scores = message.with_scores();
        static const std::atomic<bool> never = false;  // it is wanted also when the caller is gone
        PM_ASSIGN_OR_RETURN(const Served served,
                            images_->Make(message.collection(), settings, never));
        call.AddRows(served->image().header().items());
        Describe(*served, answer);
        return absl::OkStatus();
      });
}

ReadReactor* TwoServerService::InstallImage(RpcContext* context, Bytes* response) {
  return dispatcher_->ServeClientStream<v1::InstallImageRequest, v1::GetImageResponse>(
      context, "InstallImage", response, [this](Call& call, auto& reader, auto* installed) {
        return Install(call, reader, installed);
      });
}

}  // namespace privatemail::server
