#include "server/services/request.h"

#include <exception>
#include <new>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/protocol/public_parameters.h"
#include "common/rpc/status.h"
#include "server/services/log.h"

namespace privatemail {
namespace {

// A peer may send a name of any length and content; escaped, it cannot pass for another field.
constexpr size_t kLoggedNameBytes = 64;
constexpr size_t kLoggedMessageBytes = 300;

absl::Status RunGuarded(const std::function<absl::Status()>& handler) {
  try {
    return handler();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the server has not enough memory for this request");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("unexpected: ", error.what()));
  }
}

}  // namespace

grpc::Status Serve(absl::string_view rpc, const std::string& collection,
                   const std::function<absl::Status()>& handler) {
  const absl::Time start = absl::Now();
  const absl::Status status = RunGuarded(handler);
  const double milliseconds = absl::ToDoubleMilliseconds(absl::Now() - start);
  const bool faulty = absl::IsInternal(status) || absl::IsDataLoss(status);
  Log(faulty ? LogLevel::kError : LogLevel::kInfo,
      absl::StrFormat("rpc=%s collection=\"%s\" code=%s ms=%.1f%s%s", rpc,
                      absl::CHexEscape(collection.substr(0, kLoggedNameBytes)),
                      absl::StatusCodeToString(status.code()), milliseconds, status.ok() ? "" : " ",
                      status.message().substr(0, kLoggedMessageBytes)));
  return ToGrpc(status);
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
}

}  // namespace privatemail
