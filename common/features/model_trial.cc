#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <opencv2/core/utility.hpp>
#include <opencv2/core/version.hpp>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file_trial.h"
#include "common/base/status_macros.h"
#include "common/features/feature_extractor.h"
#include "common/features/onnx_model.h"

namespace privatemail {
namespace {

constexpr unsigned kMaxSeconds = 120;

struct Trials {
  std::atomic<bool> is_one = false;  // this process tries a model
  std::mutex mutex;                  // guards the following
  std::vector<std::string> command;
  std::set<std::string> good;  // identities
};

Trials& Shared() {
  static Trials* const trials = new Trials;
  return *trials;
}

// Half of the memory is shared by the extractors, one a thread, but each may have kEnough.
uint64_t MaxBytes() {
  constexpr uint64_t kEnough = uint64_t{2} << 30;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t half = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) / 2 * page;
  const uint64_t threads = std::max(1U, std::thread::hardware_concurrency());
  return std::min(half, std::max(kEnough, half / threads));
}

}  // namespace

void SetModelTrial(std::vector<std::string> command) {
  const std::lock_guard lock(Shared().mutex);
  Shared().command = std::move(command);
}

absl::Status TryModelInChild(const std::string& path, const std::string& identity) {
  constexpr char kExpected[] = "a model that OpenCV " CV_VERSION " can run";
  Trials& trials = Shared();
  if (trials.is_one) return absl::OkStatus();
  const std::lock_guard lock(trials.mutex);
  if (trials.good.contains(identity)) return absl::OkStatus();
  if (trials.command.empty()) {
    const auto try_model = [&] {
      cv::setNumThreads(0);  // a fork lacks the threads of its pool
      return TryModel(path, identity);
    };
    PM_RETURN_IF_ERROR(TryInFork(try_model, kMaxSeconds, path, kExpected));
  } else {
    std::vector<std::string> command = trials.command;
    command.insert(command.end(), {path, identity});
    PM_RETURN_IF_ERROR(TryInChild(command, kMaxSeconds, path, kExpected));
  }
  trials.good.insert(identity);
  return absl::OkStatus();
}

int TryModel(const std::string& path, const std::string& identity) {
  Shared().is_one = true;
  std::optional<OnnxOptions> options = OnnxOptionsOf(identity);
  if (!options.has_value()) return 1;
  options->path = path;
  return ReportTrial({.bytes = MaxBytes(), .seconds = kMaxSeconds}, [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(const auto extractor, MakeOnnxExtractor(*options));
    if (extractor->identity() == identity) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path, ": it changed while it was read"));
  });
}

}  // namespace privatemail
