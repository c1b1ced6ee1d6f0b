#include "tests/e2e/writers.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

constexpr int kIds = 120;    // of one writer
constexpr int kMaxIds = 24;  // of one message
constexpr int kMaxMessages = 3;

}  // namespace

v1::Item ItemOf(const std::string& id, uint64_t number) {
  std::mt19937 bits(static_cast<unsigned>(std::hash<std::string>()(id) + number));
  std::uniform_real_distribution<float> values(-1, 1);
  v1::Item item;
  item.set_id(id);
  item.set_label(static_cast<int32_t>(number % kClasses));
  item.set_payload(absl::StrFormat(R"({"write":%d,"text":"%s"})", number,
                                   std::string(bits() % 400, 'a' + number % 26)));
  for (int i = 0; i < kFeatures; ++i) item.add_features(values(bits));
  return item;
}

bool IsOfWrite(const v1::Item& item, uint64_t number) {
  const v1::Item expected = ItemOf(item.id(), number);
  return item.label() == expected.label() && item.payload() == expected.payload() &&
         std::equal(item.features().begin(), item.features().end(), expected.features().begin(),
                    expected.features().end());
}

absl::StatusOr<std::map<std::string, v1::Item>> StoredItems(const AdminClient& transport,
                                                            const std::string& collection) {
  std::map<std::string, v1::Item> stored;
  v1::ScrollItemsRequest request;
  request.set_collection(collection);
  request.set_limit(1000);
  do {
    PM_ASSIGN_OR_RETURN(const v1::ScrollItemsResponse page, transport.ScrollItems(request));
    for (const v1::Item& item : page.items()) stored[item.id()] = item;
    request.set_cursor(page.next_cursor());
  } while (!request.cursor().empty());
  return stored;
}

Writer::Writer(const std::string& name, const std::string& collection, unsigned seed)
    : name_(name), collection_(collection), bits_(seed) {}

bool Writer::Owns(const std::string& id) const { return absl::StartsWith(id, name_ + "-"); }

void Writer::Apply(const Change& change, Contents* contents) {
  for (const auto& [id, number] : change) {
    if (number == 0) {
      contents->erase(id);
    } else {
      (*contents)[id] = number;
    }
  }
}

Writer::Change Writer::NewChange(bool deletes) {
  Change change;
  const uint64_t number = deletes ? 0 : ++writes_;
  const int ids = 1 + static_cast<int>(bits_() % kMaxIds);
  for (int i = 0; i < ids; ++i) change[absl::StrFormat("%s-%03d", name_, bits_() % kIds)] = number;
  return change;
}

void Writer::Acknowledge() {
  for (const Change& change : open_) {
    Apply(change, &acknowledged_);
    ++acknowledged_messages_;
  }
  open_.clear();
}

absl::Status Writer::Settle(const absl::Status& status) {
  if (status.ok()) Acknowledge();
  return status;
}

absl::Status Writer::Upsert(const AdminClient& transport) {
  const size_t messages = 1 + bits_() % kMaxMessages;
  const auto response = transport.UpsertItems([&](v1::UpsertItemsRequest* message) {
    if (open_.size() == messages) return false;
    // Open before it is sent, because its outcome is unknown until the call returns.
    const Change& change = open_.emplace_back(NewChange(/*deletes=*/false));
    message->set_collection(collection_);
    for (const auto& [id, number] : change) *message->add_items() = ItemOf(id, number);
    return true;
  });
  return Settle(response.status());
}

absl::Status Writer::Delete(const AdminClient& transport) {
  v1::DeleteItemsRequest request;
  request.set_collection(collection_);
  for (const auto& [id, number] : open_.emplace_back(NewChange(/*deletes=*/true))) {
    request.add_ids(id);
  }
  return Settle(transport.DeleteItems(request).status());
}

absl::Status Writer::WriteOnce(const AdminClient& transport) {
  return bits_() % 3 == 0 ? Delete(transport) : Upsert(transport);
}

absl::Status Writer::WriteUntilFailure(const AdminClient& transport) {
  absl::Status status;
  while (status.ok()) status = WriteOnce(transport);
  return status;
}

absl::Status Writer::Write(const AdminClient& transport, int calls) {
  absl::Status status;
  for (int i = 0; i < calls && status.ok(); ++i) status = WriteOnce(transport);
  return status;
}

std::string Writer::Differences(const Contents& expected,
                                const std::map<std::string, v1::Item>& stored) const {
  std::string differences;
  for (const auto& [id, number] : expected) {
    const auto found = stored.find(id);
    if (found == stored.end()) {
      absl::StrAppend(&differences, id, " of write ", number, " is missing; ");
    } else if (!IsOfWrite(found->second, number)) {
      absl::StrAppend(&differences, id, " is not that of write ", number, " but ",
                      found->second.payload().substr(0, 20), "; ");
    }
  }
  for (const auto& [id, item] : stored) {
    if (Owns(id) && expected.count(id) == 0) {
      absl::StrAppend(&differences, id, " exists: ", item.payload().substr(0, 20), "; ");
    }
  }
  return differences;
}

// Messages of a stream are stored in order: tries each number of stored first messages.
std::vector<std::string> Writer::Check(const std::map<std::string, v1::Item>& stored) {
  std::vector<std::string> faults;
  Contents contents = acknowledged_;
  for (size_t there = 0;; ++there) {
    std::string differences = Differences(contents, stored);
    if (differences.empty()) {
      faults.clear();
      break;
    }
    faults.push_back(
        absl::StrCat(name_, " with ", there, " of ", open_.size(), " open: ", differences));
    if (there == open_.size()) break;
    Apply(open_[there], &contents);
  }
  acknowledged_ = contents;
  open_.clear();
  return faults;
}

}  // namespace privatemail::e2e
