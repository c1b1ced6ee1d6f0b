#include "server/engine/maintenance.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace privatemail::server {
namespace {

// Short against the quiet period, long against the cost of a poll.
absl::Duration PollInterval(const RebuildOptions& options) {
  return std::clamp(options.quiet / 4, absl::Milliseconds(10), absl::Seconds(1));
}

// Converts exceptions, which no gRPC handler does here.
absl::Status Try(absl::FunctionRef<absl::Status()> build) {
  try {
    return build();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the server has not enough memory for this build");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("unexpected: ", error.what()));
  }
}

}  // namespace

Maintenance::Maintenance(Catalog* catalog, const RebuildOptions& options, Hooks hooks)
    : catalog_(catalog), hooks_(std::move(hooks)), options_(options) {
  const absl::Status writable = catalog_->read_only() ? catalog_->TryWritable() : absl::OkStatus();
  if (writable.ok()) {
    QueuePoll(absl::ZeroDuration());
  } else {
    hooks_.read_only(writable);
    QueueTry();
  }
}

void Maintenance::SetOptions(const RebuildOptions& options) {
  const std::lock_guard<std::mutex> guard(mutex_);
  options_ = options;
}

void Maintenance::QueueTry() {
  const auto job = [this](const std::atomic<bool>& /*stopped*/) {
    if (!catalog_->TryWritable().ok()) return QueueTry();
    hooks_.read_only(absl::OkStatus());
    QueuePoll(absl::ZeroDuration());
  };
  queue_.Add(job, kRecoveryInterval);
}

void Maintenance::QueuePoll(absl::Duration delay) {
  queue_.Add([this](const std::atomic<bool>& stopped) { Poll(stopped); }, delay);
}

void Maintenance::Poll(const std::atomic<bool>& stopped) {
  RebuildOptions options;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    options = options_;
  }
  const std::string name = Next(options, stopped);
  if (!name.empty()) Build(name, options.memory, stopped);
  QueuePoll(PollInterval(options));
}

std::optional<std::map<std::string, EmbeddedItems>> Maintenance::Embedded(
    const std::vector<CollectionView>& views, const std::atomic<bool>& stopped) const {
  if (hooks_.embedded) return hooks_.embedded([&] { return stopped.load(); });
  std::map<std::string, EmbeddedItems> embedded;
  for (const CollectionView& view : views) {
    if (view.retriever == nullptr) continue;
    embedded[view.published->name] = {static_cast<uint64_t>(view.retriever->items()),
                                      view.changes_since_embedding()};
  }
  return embedded;
}

std::string Maintenance::Next(const RebuildOptions& options, const std::atomic<bool>& stopped) {
  const Clock::time_point now = Clock::now();
  if (!(options.share > 0)) due_.clear();
  if (!(options.share > 0) || (due_.empty() && now < next_question_)) return "";
  // Shards log every call, so that a front asks them rarely while nothing is due.
  if (hooks_.embedded) next_question_ = now + absl::ToChronoNanoseconds(kQuestionInterval);
  const std::vector<CollectionView> views = catalog_->List();
  const auto embedded = Embedded(views, stopped);
  if (!embedded.has_value()) return "";
  std::map<std::string, DueCollection> due;
  std::string next;
  for (const CollectionView& view : views) {
    const auto built = embedded->find(view.published->name);
    if (built == embedded->end() || view.items == 0 ||
        static_cast<double>(built->second.changes) <
            options.share * std::max<double>(1, static_cast<double>(built->second.items))) {
      continue;
    }
    const std::string& uuid = view.published->parameters.collection_uuid;
    const auto known = due_.find(uuid);
    DueCollection seen =
        known == due_.end() ? DueCollection{view.latest_version, now, now, now} : known->second;
    if (seen.latest_version != view.latest_version) {
      seen.latest_version = view.latest_version;
      seen.changed = now;
    }
    const bool quiet = absl::FromChrono(now - seen.changed) >= options.quiet;
    const bool waited = absl::FromChrono(now - seen.since) >= kMaxQuietPeriods * options.quiet;
    if (next.empty() && now >= seen.not_before && (quiet || waited)) next = view.published->name;
    due[uuid] = seen;
  }
  due_ = std::move(due);
  return next;
}

void Maintenance::Build(const std::string& name, int64_t memory, const std::atomic<bool>& stopped) {
  const StepObserver observer = [&](double /*done*/, int /*steps*/) -> absl::Status {
    return stopped ? absl::CancelledError("the daemon stops") : absl::OkStatus();
  };
  absl::StatusOr<CollectionView> view = catalog_->Find(name);
  if (!view.ok()) return;  // deleted since Next
  absl::Status outcome = hooks_.check(*view);
  if (outcome.ok() && hooks_.build) {
    outcome = Try([&] { return hooks_.build(name, [&] { return stopped.load(); }); });
  } else if (outcome.ok()) {
    outcome = Try([&] {
      return catalog_->Build(name, observer, memory, Catalog::LabelCheck::kAsBefore).status();
    });
  }
  hooks_.ended(name, outcome);
  const std::string& uuid = view->published->parameters.collection_uuid;
  if (outcome.ok()) {
    due_.erase(uuid);  // later changes are a new due time
  } else {
    due_[uuid].not_before = Clock::now() + absl::ToChronoNanoseconds(kRetryDelay);
  }
}

}  // namespace privatemail::server
