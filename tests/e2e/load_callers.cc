#include "tests/e2e/load_callers.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/wire/snapshot.h"
#include "tests/e2e/service.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

constexpr uint32_t kNearest = 10;

// A searcher with its connection. Not thread-safe.
class Searcher {
 public:
  Searcher(Scene* scene, const AdminClient& transport, v1::GetCollectionResponse things)
      : scene_(*scene), transport_(transport), things_(std::move(things)) {
    request_ = RandomSearch(things_);
    request_.set_k(kNearest);
  }

  void Retrieve(int call) {
    request_.set_post_processing_steps(call % 4 == 1 ? things_.parameters().settings().steps() : 0);
    request_.set_with_payloads(call % 4 == 2);
    request_.clear_filter();
    if (call % 4 == 3) {
      request_.mutable_filter()->mutable_range()->set_path("write");
      request_.mutable_filter()->mutable_range()->set_lt(2 + call % 5);
    }
    const auto answer = transport_.Retrieve(request_);
    if (!scene_.outcomes().Count("Retrieve", answer.status())) return Scene::Pause();
    Check(*answer);
    // No later search is answered from an earlier embedding.
    request_.set_embedding_version(answer->embedding_version());
  }

  void AskBefore() {
    const auto things = transport_.GetCollection("things");
    if (scene_.outcomes().Count("GetCollection", things.status()) &&
        things->embedding_version() < request_.embedding_version()) {
      scene_.outcomes().AddFault(absl::StrCat("version ", things->embedding_version(), " after ",
                                              request_.embedding_version()));
    }
    const auto anchors = transport_.GetAnchors("things", things_.fingerprint());
    scene_.outcomes().Count("GetAnchors", anchors.status());
    scene_.outcomes().Count("ListCollections", transport_.ListCollections().status());
    const auto serving = transport_.IsServing("things");
    if (scene_.outcomes().Count("Check", serving.status()) && !*serving) {
      scene_.outcomes().AddFault("things is not served");
    }
  }

 private:
  // The base items fit every filter, so that every slot is full.
  void Check(const v1::RetrieveResponse& answer) {
    bool full = answer.slots_size() == kClasses && !answer.truncated();
    for (const v1::SlotMatches& slot : answer.slots()) {
      full = full && slot.matches_size() == static_cast<int>(kNearest);
      full = full && std::is_sorted(slot.matches().begin(), slot.matches().end(),
                                    [](const v1::Match& one, const v1::Match& two) {
                                      return one.squared_distance() < two.squared_distance();
                                    });
    }
    if (!full) scene_.outcomes().AddFault("an answer is not complete or not in order");
    if (answer.embedding_version() < request_.embedding_version()) {
      scene_.outcomes().AddFault("an answer came from an earlier embedding");
    }
  }

  Scene& scene_;
  const AdminClient& transport_;
  const v1::GetCollectionResponse things_;
  v1::RetrieveRequest request_;
};

// Reads single items, pages and counts.
void ReadItems(Scene* scene, const AdminClient& transport, int call) {
  v1::GetItemsRequest ids;
  ids.set_collection("things");
  for (int i = 0; i < 10; ++i) {
    ids.add_ids(absl::StrFormat("base-%04d", (call * 10 + i) % Scene::kBaseItems));
  }
  const auto items = transport.GetItems(ids);
  if (scene->outcomes().Count("GetItems", items.status())) {
    bool whole = items->items_size() == ids.ids_size();
    for (const v1::Item& item : items->items()) whole = whole && IsOfWrite(item, 1);
    if (!whole) scene->outcomes().AddFault("items that nobody changed are not what they were");
  }
  v1::ScrollItemsRequest page;
  page.set_collection("things");
  page.set_limit(100);
  scene->outcomes().Count("ScrollItems", transport.ScrollItems(page).status());
  v1::CountItemsRequest count;
  count.set_collection("things");
  count.mutable_filter()->mutable_range()->set_path("write");
  count.mutable_filter()->mutable_range()->set_gte(2);
  scene->outcomes().Count("CountItems", transport.CountItems(count).status());
}

// The connection stands before the first change, which is not repeated: the daemon ends some of
// the new connections of one address if many come at once and handshakes are slow.
absl::StatusOr<AdminClient> ConnectAs(Scene* scene, const std::string& name, v1::KeyScope scope) {
  const auto key = scene->MakeKey(name, scope);
  if (!key.ok()) return key.status();
  absl::StatusOr<AdminClient> transport = scene->Connect(key->file);
  if (!transport.ok()) return transport;
  PM_RETURN_IF_ERROR(
      scene->Persist("GetCollection", [&] { return transport->GetCollection("things").status(); }));
  return transport;
}

// The copy has at least the items that stay, and is gone in the end.
void RestoreAndDelete(Scene* scene, const std::string& snapshot, Achievements* achievements) {
  const AdminClient& admin = scene->admin();
  absl::StatusOr<v1::RestoreCollectionResponse> restored;
  const absl::Status status = scene->Persist("RestoreCollection", [&] {
    size_t sent = 0;
    restored = admin.RestoreCollection("copy", [&](std::string* piece) -> absl::StatusOr<bool> {
      *piece = snapshot.substr(sent, kSnapshotPieceBytes);
      sent += piece->size();
      return !piece->empty();
    });
    return restored.status();
  });
  if (!status.ok()) return;
  const uint64_t items = restored->collection().items();
  if (items < Scene::kBaseItems) scene->outcomes().AddFault("items are missing in a copy");
  const absl::Status deleted = scene->Persist("DeleteCollection", [&] {
    const auto response = admin.DeleteCollection("copy");
    if (response.ok() && response->deleted_items() != items) {
      scene->outcomes().AddFault("the copy was deleted with another number of items");
    }
    return response.status();
  });
  if (deleted.ok()) ++achievements->snapshots;
}

constexpr auto kMaxReloadTime = std::chrono::seconds(20);

// Calls with a key until it is refused, and sets `called` after the first call. `revoking` is set
// before RevokeKey is sent, `revoked` after its answer.
void CallUntilRefused(Scene* scene, const AdminClient& transport, const std::atomic<bool>& revoking,
                      const std::atomic<bool>& revoked, std::atomic<bool>* called) {
  while (true) {
    const bool was_revoked = revoked;
    const absl::Status status = transport.GetCollection("things").status();
    const KeyState key = was_revoked ? KeyState::kRevoked
                         : revoking  ? KeyState::kBeingRevoked
                                     : KeyState::kValid;
    scene->outcomes().Count("GetCollection", status, key);
    *called = true;
    if (absl::IsUnauthenticated(status) || was_revoked) return;
    if (!status.ok()) Scene::Pause();
  }
}

// Calls on the former connection and on a new one.
void ExpectRefused(Scene* scene, const Scene::Key& key, const AdminClient& former) {
  const auto transport = scene->Connect(key.file);
  for (const AdminClient* one : {&former, &*transport}) {
    scene->outcomes().Count("ListCollections", one->ListCollections().status(), KeyState::kRevoked);
  }
}

bool Shows(const Scene& scene, const std::string& fingerprint) {
  return scene.ConnectPinned(fingerprint)->IsServing("").ok();
}

}  // namespace

void Search(Scene* scene, int number) {
  const auto transport = ConnectAs(scene, absl::StrCat("searcher-", number), v1::KEY_SCOPE_SEARCH);
  if (!transport.ok()) return;  // which was counted
  absl::StatusOr<v1::GetCollectionResponse> things;
  const absl::Status ready = scene->Persist("GetCollection", [&] {
    things = transport->GetCollection("things");
    return things.status();
  });
  if (!ready.ok()) return;
  Searcher searcher(scene, *transport, *things);
  for (int call = number; scene->GoesOn(); ++call) {
    searcher.Retrieve(call);
    if (call % 50 == 0) searcher.AskBefore();
  }
}

void WriteAndRead(Scene* scene, Writer* writer, int number) {
  const auto transport = ConnectAs(scene, absl::StrCat("writer-", number), v1::KEY_SCOPE_WRITE);
  if (!transport.ok()) return;
  for (int call = 0; scene->GoesOn(); ++call) {
    const bool deletes = call % 3 == 0;
    const absl::Status status = deletes ? writer->Delete(*transport) : writer->Upsert(*transport);
    if (!scene->outcomes().Count(deletes ? "DeleteItems" : "UpsertItems", status)) {
      writer->DropRefusedCall();
      Scene::Pause();
    }
    if (call % 5 == 0) ReadItems(scene, *transport, call);
  }
}

void Build(Scene* scene, Achievements* achievements) {
  const auto transport = ConnectAs(scene, "builder", v1::KEY_SCOPE_WRITE);
  if (!transport.ok()) return;
  const auto ignore = [](const v1::BuildEmbeddingResponse& /*progress*/) {};
  const auto again = [&](const v1::BuildEmbeddingResponse& progress) {
    if (progress.steps_done() != 0) return;
    const absl::Status second =
        transport->BuildEmbedding("things", ignore, /*accept_misalignment=*/true).status();
    scene->outcomes().Count("BuildEmbedding", second);
    achievements->second_builds += absl::IsAborted(second) ? 1 : 0;
  };
  while (scene->GoesOn()) {
    const auto built = transport->BuildEmbedding("things", again, /*accept_misalignment=*/true);
    if (scene->outcomes().Count("BuildEmbedding", built.status())) {
      ++achievements->builds;
    } else {
      Scene::Pause();
    }
  }
}

void SnapshotAndRestore(Scene* scene, Achievements* achievements) {
  while (scene->GoesOn()) {
    std::string snapshot;
    const absl::Status taken = scene->Persist("SnapshotCollection", [&] {
      snapshot.clear();
      return scene->admin().SnapshotCollection("things", [&](absl::string_view bytes) {
        snapshot.append(bytes.data(), bytes.size());
        return absl::OkStatus();
      });
    });
    if (taken.ok()) RestoreAndDelete(scene, snapshot, achievements);
  }
}

void ChangeKeys(Scene* scene, Achievements* achievements) {
  while (scene->GoesOn()) {
    const auto key = scene->MakeKey("guest", v1::KEY_SCOPE_SEARCH);
    if (!key.ok()) continue;
    const auto transport = scene->Connect(key->file);
    const absl::Status opened = scene->Persist(
        "GetCollection", [&] { return transport->GetCollection("things").status(); });
    std::atomic<bool> revoking = false, revoked = false, called = false;
    std::thread guest([&] { CallUntilRefused(scene, *transport, revoking, revoked, &called); });
    if (!WaitUntil([&] { return called.load(); })) scene->outcomes().AddFault("no call returned");
    revoking = true;
    const absl::Status done =
        scene->Persist("RevokeKey", [&] { return scene->admin().RevokeKey(key->id).status(); });
    revoked = true;
    guest.join();
    if (!opened.ok() || !done.ok()) continue;
    ExpectRefused(scene, *key, *transport);
    ++achievements->revoked_keys;
  }
}

void ChangeCertificates(Scene* scene, Achievements* achievements) {
  for (int number = 1; scene->GoesOn(); ++number) {
    const absl::Status replaced = scene->certificates().Serve(number);
    if (!replaced.ok()) return scene->outcomes().AddFault(replaced.ToString());
    scene->daemon().program().Signal(SIGHUP);
    const std::string& fingerprint = scene->certificates().FingerprintOf(number);
    if (!WaitUntil([&] { return Shows(*scene, fingerprint); }, kMaxReloadTime)) {
      scene->outcomes().AddFault("new connections do not get the new certificate");
    } else if (Shows(*scene, scene->certificates().FingerprintOf(number - 1))) {
      scene->outcomes().AddFault("a new connection got the former certificate");
    } else {
      ++achievements->certificates;
    }
  }
}

}  // namespace privatemail::e2e
