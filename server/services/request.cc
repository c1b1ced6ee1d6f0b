#include "server/services/request.h"

#include "absl/strings/str_cat.h"
#include "common/protocol/public_parameters.h"

namespace privatemail {

std::string CollectionNamedIn(const google::protobuf::Message& request, const Rpc& rpc) {
  if (rpc.collection[0] == '\0') return "";
  const auto* field = request.GetDescriptor()->FindFieldByName(rpc.collection);
  return request.GetReflection()->GetString(request, field);
}

absl::Status CheckGiven(absl::string_view field, absl::string_view value) {
  if (!value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " must be named, but is empty"));
}

void ToProto(const CollectionView& view, v1::GetCollectionResponse* proto) {
  ToProto(view.published->parameters, proto->mutable_parameters());
  proto->set_fingerprint(view.published->fingerprint);
  proto->set_items(view.items);
  if (view.retriever != nullptr) {
    proto->set_embedded_items(view.embedded_items());
    proto->set_embedding_version(view.retriever->version());
  }
  proto->set_name(view.published->name);
  proto->set_changes_since_embedding(view.changes_since_embedding());
}

}  // namespace privatemail
