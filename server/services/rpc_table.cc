#include "server/services/rpc_table.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace privatemail::server {
namespace {

constexpr Scopes kSearching = kSearchScope | kAdminScope;
constexpr Scopes kWriting = kWriteScope | kAdminScope;
constexpr bool kUsesStore = true;

}  // namespace

const std::vector<Rpc>& Rpcs() {
  static const std::vector<Rpc> all = {
      // Parameters are public to every key of the collection.
      {"GetCollection", kAnyScope, "collection"},
      {"GetAnchors", kSearching, "collection"},
      {"Retrieve", kSearching, "collection"},
      // Sends item vectors; the operator allows that by creating the collection with cells.
      {"RetrieveCells", kSearching, "collection"},
      // Sends ids, labels and norms of all items; the operator allows that by offering the scheme.
      {"SearchEncrypted", kSearching, "collection"},
      {"CreateCollection", kAdminScope, "name", kUsesStore},
      {"ListCollections", kAnyScope, ""},  // filtered by the key's collections
      {"DeleteCollection", kAdminScope, "name", kUsesStore},
      {"UpsertItems", kWriting, "collection", kUsesStore},
      {"BuildEmbedding", kWriting, "collection", kUsesStore},
      // A search key gets only the nearest items of a noisy release: exact vectors, payloads and
      // counts need scope write.
      {"DeleteItems", kWriting, "collection", kUsesStore},
      {"GetItems", kWriting, "collection", kUsesStore},
      {"ScrollItems", kWriting, "collection", kUsesStore},
      {"CountItems", kWriting, "collection", kUsesStore},
      // A snapshot holds the whole collection in the clear; a restore may replace a lost one.
      {"SnapshotCollection", kAdminScope, "collection", kUsesStore},
      {"RestoreCollection", kAdminScope, "collection", kUsesStore},
      {"CreateKey", kAdminScope, "", !kUsesStore, /*all_collections=*/true},
      {"ListKeys", kAdminScope, "", !kUsesStore, /*all_collections=*/true},
      {"RevokeKey", kAdminScope, "", !kUsesStore, /*all_collections=*/true},
      {"Check", 0, ""},  // grpc.health.v1; a collection's health needs a key, see HealthService
  };
  return all;
}

const Rpc& FindRpc(absl::string_view name) {
  for (const Rpc& rpc : Rpcs()) {
    if (name == rpc.name) return rpc;
  }
  std::fprintf(stderr, "rpc_table.cc has no entry for %s\n", std::string(name).c_str());
  std::abort();
}

std::string GetCollectionName(const google::protobuf::Message& request, const Rpc& rpc) {
  if (rpc.collection[0] == '\0') return "";
  const auto* field = request.GetDescriptor()->FindFieldByName(rpc.collection);
  return request.GetReflection()->GetString(request, field);
}

bool UsesStore(const Rpc& rpc, const google::protobuf::Message* request) {
  if (rpc.uses_store || request == nullptr) return rpc.uses_store;
  const auto* counts_changes = request->GetDescriptor()->FindFieldByName("with_changes");
  return counts_changes != nullptr && request->GetReflection()->GetBool(*request, counts_changes);
}

}  // namespace privatemail::server
