#include "server/image/shared_pass.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/image/image_header.h"
#include "common/image/score_shares.h"
#include "server/image/image_kernels.h"

namespace privatemail::server {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};
// Of a part of a pass: little enough to stay in a core's cache while all calls use it.
constexpr size_t kBytesOfRows = 1 << 17;
constexpr size_t kMaxRows = 1024;
constexpr size_t kBytesOfList = 2048;

absl::Status CheckSelection(absl::string_view selection, size_t index, uint32_t lists) {
  const std::string name = absl::StrCat("selections[", index, "]");
  if (selection.size() != (lists + 7) / 8) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must have ", (lists + 7) / 8, " bytes, but has ", selection.size()));
  }
  if (lists % 8 != 0 && static_cast<uint8_t>(selection.back()) >> (lists % 8) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " selects a list from ", lists, " on, which there is none of"));
  }
  return absl::OkStatus();
}

int CountParts(size_t whole, size_t part) { return static_cast<int>((whole + part - 1) / part); }

}  // namespace

struct SharedPass::Call {
  std::optional<uint32_t> group;  // of lists; none: scores
  std::optional<SplitShare> share;
  std::vector<std::string> selections;
  std::string answer;  // of its final size
  std::promise<void> done;
};

SharedPass::SharedPass(std::shared_ptr<const Image> image) : image_(std::move(image)) {}

SharedPass::~SharedPass() = default;

absl::StatusOr<std::string> SharedPass::Scores(absl::Span<const uint32_t> share,
                                               const CancelledFunction& cancelled) {
  const v1::ImageHeader& header = image_->header();
  if (!header.has_scores()) return absl::FailedPreconditionError("the image has no scores");
  if (share.size() != header.feature_dim()) {
    return absl::InvalidArgumentError(
        absl::StrCat("share must have ", header.feature_dim(), " values, but has ", share.size()));
  }
  const auto call = std::make_shared<Call>();
  call->share.emplace(share);
  call->answer.resize(header.items() * kScoreBytes);
  return Join(call, cancelled);
}

absl::StatusOr<std::string> SharedPass::Lists(uint32_t group,
                                              absl::Span<const std::string> selections,
                                              const CancelledFunction& cancelled) {
  const v1::ListGroup* of = FindListGroup(image_->header(), group);
  if (of == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("group ", group, " is not in the image"));
  }
  if (selections.empty() || selections.size() > kMaxFetches) {
    return absl::InvalidArgumentError(
        absl::StrCat("selections must be 1 to ", kMaxFetches, ", but are ", selections.size()));
  }
  const auto call = std::make_shared<Call>();
  call->group = group;
  for (size_t i = 0; i < selections.size(); ++i) {
    PM_RETURN_IF_ERROR(CheckSelection(selections[i], i, of->lists()));
  }
  call->selections.assign(selections.begin(), selections.end());
  call->answer.resize(selections.size() * of->list_bytes());
  return Join(call, cancelled);
}

absl::StatusOr<std::string> SharedPass::Join(const std::shared_ptr<Call>& call,
                                             const CancelledFunction& cancelled) {
  std::future<void> done = call->done.get_future();
  bool refused = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    waiting_.push_back(call);
    if (!std::exchange(running_, true)) {
      try {
        pool_.Run([this] { RunPasses(); });
      } catch (const std::exception&) {
        refused = true;
      }
    }
  }
  if (refused) RunPasses();  // the system has no thread or memory left
  do {
    if (const absl::Status status = CheckNotCancelled(cancelled); !status.ok()) {
      const std::lock_guard<std::mutex> guard(mutex_);
      std::erase(waiting_, call);
      return status;
    }
  } while (done.wait_for(kPollInterval) != std::future_status::ready);
  done.get();
  return std::move(call->answer);
}

void SharedPass::RunPasses() {
  while (true) {
    std::list<std::shared_ptr<Call>> taken;  // without memory, of which there may be none
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (waiting_.empty()) {
        running_ = false;
        return;
      }
      const std::optional<uint32_t> group = waiting_.front()->group;
      for (auto call = waiting_.begin(); call != waiting_.end();) {
        const auto next = std::next(call);
        if ((*call)->group == group) taken.splice(taken.end(), waiting_, call);
        call = next;
      }
    }
    try {
      const std::vector<std::shared_ptr<Call>> calls(taken.begin(), taken.end());
      if (calls.front()->group) {
        PassOverLists(*calls.front()->group, calls);
      } else {
        PassOverScores(calls);
      }
      for (const auto& call : calls) call->done.set_value();
    } catch (...) {  // no memory
      for (const auto& call : taken) call->done.set_exception(std::current_exception());
    }
  }
}

void SharedPass::PassOverScores(const std::vector<std::shared_ptr<Call>>& calls) const {
  const size_t items = image_->header().items(), dim = image_->header().feature_dim();
  const size_t part = std::clamp<size_t>(kBytesOfRows / (dim * sizeof(int16_t)), 1, kMaxRows);
  std::vector<const SplitShare*> shares;
  for (const auto& call : calls) shares.push_back(&*call->share);
  ParallelFor(CountParts(items, part), [&](int number) {
    const size_t first = static_cast<size_t>(number) * part;
    const size_t rows = std::min(part, items - first);
    const auto products = std::make_unique_for_overwrite<uint32_t[]>(calls.size() * rows);
    std::vector<uint32_t*> of_calls;
    for (size_t i = 0; i < calls.size(); ++i) of_calls.push_back(&products[i * rows]);
    MultiplyRows(image_->scores() + first * dim, rows, shares, of_calls);
    for (size_t i = 0; i < calls.size(); ++i) {
      char* out = calls[i]->answer.data() + first * kScoreBytes;
      for (size_t row = 0; row < rows; ++row) {
        const uint32_t score = SentScore(of_calls[i][row]);
        for (size_t byte = 0; byte < kScoreBytes; ++byte) {
          *out++ = static_cast<char>(score >> (8 * byte));
        }
      }
    }
  });
}

void SharedPass::PassOverLists(uint32_t group,
                               const std::vector<std::shared_ptr<Call>>& calls) const {
  const v1::ListGroup& of = *FindListGroup(image_->header(), group);
  const size_t list_bytes = of.list_bytes();
  std::vector<absl::string_view> selections;
  std::vector<uint8_t*> outputs;
  for (const auto& call : calls) {
    for (size_t i = 0; i < call->selections.size(); ++i) {
      selections.push_back(call->selections[i]);
      outputs.push_back(reinterpret_cast<uint8_t*>(call->answer.data()) + i * list_bytes);
    }
  }
  const auto* lists = reinterpret_cast<const uint8_t*>(image_->lists(group).data());
  ParallelFor(CountParts(list_bytes, kBytesOfList), [&](int number) {
    const size_t first = static_cast<size_t>(number) * kBytesOfList;
    const size_t bytes = std::min(kBytesOfList, list_bytes - first);
    std::vector<uint8_t*> places;
    for (uint8_t* output : outputs) places.push_back(output + first);
    XorLists(lists, of.lists(), list_bytes, first, bytes, selections, places);
  });
}

}  // namespace privatemail::server
