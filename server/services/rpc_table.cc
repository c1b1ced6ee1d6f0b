#include "server/services/rpc_table.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace privatemail::server {
namespace {

constexpr Scopes kSearching = kSearchScope | kAdminScope;
constexpr Scopes kWriting = kWriteScope | kAdminScope;

}  // namespace

const std::vector<Rpc>& Rpcs() {
  static const std::vector<Rpc> all = {
      // Whoever may do anything with a collection may know its parameters.
      {"GetCollection", kAnyScope, "collection"},
      {"GetAnchors", kSearching, "collection"},
      {"Retrieve", kSearching, "collection"},
      // Vectors of the gallery, where its operator has given it cells; a noisy choice of them.
      {"RetrieveCells", kSearching, "collection"},
      {"CreateCollection", kAdminScope, "name"},
      {"ListCollections", kAnyScope, ""},  // lists those that the key covers
      {"DeleteCollection", kAdminScope, "name"},
      {"UpsertItems", kWriting, "collection"},
      {"BuildEmbedding", kWriting, "collection"},
      // Who searches gets the nearest items of a noisy release, never those of a choice: vectors,
      // payloads and how many items fit a filter are for whoever put them there.
      {"DeleteItems", kWriting, "collection"},
      {"GetItems", kWriting, "collection"},
      {"ScrollItems", kWriting, "collection"},
      {"CountItems", kWriting, "collection"},
      // A snapshot holds everything, and a restored collection may take the place of a lost one.
      {"SnapshotCollection", kAdminScope, "collection"},
      {"RestoreCollection", kAdminScope, "collection"},
      {"CreateKey", kAdminScope, "", /*all_collections=*/true},
      {"ListKeys", kAdminScope, "", /*all_collections=*/true},
      {"RevokeKey", kAdminScope, "", /*all_collections=*/true},
      {"Check", 0, ""},  // grpc.health.v1; a collection's health takes a key for it
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

}  // namespace privatemail::server
