#include "server/services/request.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/embedding/public_parameters.h"
#include "common/wire/parameters_proto.h"
#include "server/services/collection_state.h"

namespace privatemail::server {

std::string CollectionNamedIn(const google::protobuf::Message& request, const Rpc& rpc) {
  if (rpc.collection[0] == '\0') return "";
  const auto* field = request.GetDescriptor()->FindFieldByName(rpc.collection);
  return request.GetReflection()->GetString(request, field);
}

absl::StatusOr<CollectionView> FindMatching(const Catalog& catalog, const std::string& name,
                                            const std::string& fingerprint) {
  PM_ASSIGN_OR_RETURN(CollectionView view, catalog.Find(name));
  PM_RETURN_IF_ERROR(CheckFingerprint(view.published->fingerprint, fingerprint));
  return view;
}

absl::Status CheckGiven(absl::string_view field, absl::string_view value) {
  if (!value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " must be named, but is empty"));
}

absl::Status AnswerTooLarge(int64_t max_bytes, absl::string_view remedy) {
  return absl::ResourceExhaustedError(absl::StrCat("the response would exceed the limit of ",
                                                   max_bytes,
                                                   " bytes (max_message_bytes): ", remedy));
}

absl::Status CheckAnchorMemory(absl::string_view whose, int64_t anchors, int64_t dims,
                               const Limits& limits) {
  // As they come, and scaled to length 1 while they are checked; growing takes twice the former.
  constexpr int64_t kValueBytes = sizeof(float) + sizeof(double);
  return CheckLimit(absl::StrCat(whose, " in bytes"), anchors * dims * kValueBytes,
                    limits.max_request_memory, "max_request_memory");
}

void ToProto(const CollectionView& view, v1::GetCollectionResponse* proto) {
  ToProto(view.published->parameters, proto->mutable_parameters());
  proto->set_fingerprint(view.published->fingerprint);
  proto->set_items(view.items);
  if (view.retriever != nullptr) {
    proto->set_embedded_items(view.embedded_items());
    proto->set_embedding_version(view.retriever->version());
    proto->set_index(view.retriever->index_description());
  }
  proto->set_name(view.published->name);
  proto->set_changes_since_embedding(view.changes_since_embedding());
  proto->set_cells(DescribeCells(view));
  proto->set_cells_ready(RequireCells(view).ok());
}

}  // namespace privatemail::server
