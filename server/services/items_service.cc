// CollectionsService: single items.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/wire/proto_conversions.h"
#include "server/services/collections_service.h"

namespace privatemail::server {
namespace {

constexpr int64_t kMaxIdsToDelete = 10000;
constexpr int64_t kMaxItemsToGet = 1000;

absl::Status CheckCount(int64_t ids, int64_t max) {
  if (ids >= 1 && ids <= max) return absl::OkStatus();
  return InvalidField("ids", absl::StrCat("must be 1 to ", max, " in one call, but are ", ids));
}

template <typename Request>
absl::StatusOr<std::optional<PayloadFilter>> ParseFilter(const Request& request) {
  if (request.filter().empty()) return std::nullopt;
  return PayloadFilter::Parse(request.filter());
}

void ItemToProto(Item item, v1::Item* proto) {
  proto->set_id(std::move(item.id));
  LabelToProto(item.label, proto);
  proto->mutable_features()->Assign(item.features.begin(), item.features.end());
  proto->set_payload(std::move(item.payload));
  proto->set_version(item.version);
}

// In batches, so that a response that is too large fails before all of it is in memory.
absl::Status Fetch(const Catalog& catalog, const CollectionView& view,
                   const google::protobuf::RepeatedPtrField<std::string>& wanted, Call& call,
                   v1::GetItemsResponse* response) {
  constexpr size_t kBatch = 16;
  const std::vector<std::string> ids(wanted.begin(), wanted.end());
  const absl::Span<const std::string> all = ids;
  for (size_t first = 0; first < all.size(); first += kBatch) {
    PM_ASSIGN_OR_RETURN(std::vector<Item> items,
                        catalog.GetItems(view, all.subspan(first, kBatch)));
    for (Item& item : items) ItemToProto(std::move(item), response->add_items());
    PM_RETURN_IF_ERROR(call.CheckAnswerSize(response->ByteSizeLong(), "ask for fewer ids at once"));
  }
  call.AddRows(static_cast<uint64_t>(response->items_size()));
  return absl::OkStatus();
}

// Moves items into the response while they fit into a message, so a page may be short.
absl::Status FillPage(ItemPage page, const Call& call, v1::ScrollItemsResponse* response) {
  // Upper bounds of the tag and length of an item, and of the cursor field.
  constexpr size_t kItemOverhead = 16;
  constexpr size_t kCursorBytes = kMaxItemIdBytes + 16;
  size_t bytes = kCursorBytes;
  std::string last;
  for (Item& item : page.items) {
    v1::Item message;
    ItemToProto(std::move(item), &message);
    bytes += message.ByteSizeLong() + kItemOverhead;
    if (const absl::Status fits = call.CheckAnswerSize(bytes, "one item alone does"); !fits.ok()) {
      response->set_next_cursor(last);
      return last.empty() ? fits : absl::OkStatus();
    }
    last = message.id();
    *response->add_items() = std::move(message);
  }
  response->set_next_cursor(page.next.value_or(""));
  return absl::OkStatus();
}

}  // namespace

void CollectionsService::ServeItems(Dispatcher* dispatcher) {
  dispatcher->ServeUnary<v1::DeleteItemsRequest, v1::DeleteItemsResponse>(
      "DeleteItems", [this](Call& call, const auto& request, auto* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckCount(request.ids_size(), kMaxIdsToDelete));
        PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find(request.collection()));
        const std::vector<std::string> ids(request.ids().begin(), request.ids().end());
        PM_ASSIGN_OR_RETURN(const DeleteResult result, catalog_->DeleteItems(view, ids));
        call.AddRows(result.deleted);
        answer->set_deleted(result.deleted);
        answer->mutable_first_missing()->Assign(result.first_missing.begin(),
                                                result.first_missing.end());
        return absl::OkStatus();
      });
  dispatcher->ServeUnary<v1::GetItemsRequest, v1::GetItemsResponse>(
      "GetItems", [this](Call& call, const auto& request, auto* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckCount(request.ids_size(), kMaxItemsToGet));
        PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find(request.collection()));
        return Fetch(*catalog_, view, request.ids(), call, answer);
      });
  dispatcher->ServeUnary<v1::ScrollItemsRequest, v1::ScrollItemsResponse>(
      "ScrollItems", [this](Call& call, const auto& request, auto* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckIntegerBetween("limit", request.limit(), 1, kMaxItemsToGet));
        PM_ASSIGN_OR_RETURN(const std::optional<PayloadFilter> filter, ParseFilter(request));
        PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find(request.collection()));
        PM_ASSIGN_OR_RETURN(ItemPage page,
                            catalog_->ScrollItems(view, filter, request.cursor(), request.limit()));
        PM_RETURN_IF_ERROR(FillPage(std::move(page), call, answer));
        call.AddRows(static_cast<uint64_t>(answer->items_size()));
        return absl::OkStatus();
      });
  dispatcher->ServeUnary<v1::CountItemsRequest, v1::CountItemsResponse>(
      "CountItems", [this](Call& call, const auto& request, auto* answer) -> absl::Status {
        PM_ASSIGN_OR_RETURN(const std::optional<PayloadFilter> filter, ParseFilter(request));
        PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find(request.collection()));
        PM_ASSIGN_OR_RETURN(const uint64_t items,
                            catalog_->CountItems(view, filter, [&] { return call.Cancelled(); }));
        call.AddRows(items);
        answer->set_items(items);
        return absl::OkStatus();
      });
}

}  // namespace privatemail::server
