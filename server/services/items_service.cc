// What CollectionsService does with single items.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/rpc/status.h"
#include "server/services/collections_service.h"
#include "server/services/request.h"

namespace privatemail {
namespace {

constexpr int64_t kMaxDeletedIds = 10000;
constexpr int64_t kMaxFetchedItems = 1000;

absl::StatusOr<CollectionView> FindCollection(const Catalog& catalog, const std::string& name) {
  PM_RETURN_IF_ERROR(CheckGiven("collection", name));
  return catalog.Find(name);
}

absl::Status CheckCount(int64_t ids, int64_t most) {
  if (ids >= 1 && ids <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ids must be 1 to ", most, " in one call, but are ", ids));
}

template <typename Request>
absl::StatusOr<std::optional<PayloadFilter>> FilterOf(const Request& request) {
  if (!request.has_filter()) return std::nullopt;
  return PayloadFilter::FromProto("filter", request.filter());
}

void ToProto(Item item, v1::Item* proto) {
  proto->set_id(std::move(item.id));
  proto->set_label(item.label);
  proto->mutable_features()->Assign(item.features.begin(), item.features.end());
  proto->set_payload(std::move(item.payload));
  proto->set_version(item.version);
}

}  // namespace

grpc::Status CollectionsService::DeleteItems(grpc::ServerContext* /*context*/,
                                             const v1::DeleteItemsRequest* request,
                                             v1::DeleteItemsResponse* response) {
  return Serve("DeleteItems", request->collection(), [&]() -> absl::Status {
    PM_RETURN_IF_ERROR(CheckCount(request->ids_size(), kMaxDeletedIds));
    PM_ASSIGN_OR_RETURN(const CollectionView view,
                        FindCollection(*catalog_, request->collection()));
    const std::vector<std::string> ids(request->ids().begin(), request->ids().end());
    PM_ASSIGN_OR_RETURN(const DeleteResult result, catalog_->DeleteItems(view, ids));
    response->set_deleted(result.deleted);
    return absl::OkStatus();
  });
}

grpc::Status CollectionsService::GetItems(grpc::ServerContext* /*context*/,
                                          const v1::GetItemsRequest* request,
                                          v1::GetItemsResponse* response) {
  return Serve("GetItems", request->collection(), [&]() -> absl::Status {
    PM_RETURN_IF_ERROR(CheckCount(request->ids_size(), kMaxFetchedItems));
    PM_ASSIGN_OR_RETURN(const CollectionView view,
                        FindCollection(*catalog_, request->collection()));
    const std::vector<std::string> ids(request->ids().begin(), request->ids().end());
    PM_ASSIGN_OR_RETURN(std::vector<Item> items, catalog_->GetItems(view, ids));
    for (Item& item : items) ToProto(std::move(item), response->add_items());
    if (response->ByteSizeLong() <= static_cast<size_t>(kMaxMessageBytes)) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat("the response would exceed the limit of ",
                                                     kMaxMessageBytes,
                                                     " bytes: ask for fewer ids at once"));
  });
}

grpc::Status CollectionsService::ScrollItems(grpc::ServerContext* /*context*/,
                                             const v1::ScrollItemsRequest* request,
                                             v1::ScrollItemsResponse* response) {
  return Serve("ScrollItems", request->collection(), [&]() -> absl::Status {
    PM_RETURN_IF_ERROR(CheckIntegerBetween("limit", request->limit(), 1, kMaxFetchedItems));
    PM_ASSIGN_OR_RETURN(const std::optional<PayloadFilter> filter, FilterOf(*request));
    PM_ASSIGN_OR_RETURN(const CollectionView view,
                        FindCollection(*catalog_, request->collection()));
    PM_ASSIGN_OR_RETURN(ItemPage page,
                        catalog_->ScrollItems(view, filter, request->cursor(), request->limit()));
    for (Item& item : page.items) ToProto(std::move(item), response->add_items());
    response->set_next_cursor(page.next.value_or(""));
    return absl::OkStatus();
  });
}

grpc::Status CollectionsService::CountItems(grpc::ServerContext* /*context*/,
                                            const v1::CountItemsRequest* request,
                                            v1::CountItemsResponse* response) {
  return Serve("CountItems", request->collection(), [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(const std::optional<PayloadFilter> filter, FilterOf(*request));
    PM_ASSIGN_OR_RETURN(const CollectionView view,
                        FindCollection(*catalog_, request->collection()));
    PM_ASSIGN_OR_RETURN(const uint64_t items, catalog_->CountItems(view, filter));
    response->set_items(items);
    return absl::OkStatus();
  });
}

}  // namespace privatemail
