#include "client/evaluation/runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/protocol/public_parameters.h"
#include "common/protocol/sha256.h"

namespace privatemail {
namespace {

// One job of a run and where its result is.
struct Place {
  const Experiment* experiment = nullptr;
  const Job* job = nullptr;
  std::string settings;
  std::string path;
  JobResult result = {};
};

std::vector<Place> PlacesOf(const std::vector<Experiment>& experiments, const RunOptions& options) {
  std::vector<Place> places;
  for (const Experiment& experiment : experiments) {
    for (const Job& job : experiment.jobs) {
      const std::string settings =
          absl::StrCat(options.study, "\n", experiment.name, ": ", job.key);
      const std::string digest = ToHex(Sha256::Of(settings)).substr(0, 32);
      places.push_back(
          {.experiment = &experiment,
           .job = &job,
           .settings = settings,
           .path = absl::StrCat(options.folder, "/jobs/", experiment.name, "-", digest, ".json")});
    }
  }
  return places;
}

// Nothing for a file that is not there or is not such a result.
std::optional<JobResult> Kept(const Place& place) {
  std::error_code ignored;
  if (!std::filesystem::exists(place.path, ignored)) return std::nullopt;
  const absl::StatusOr<std::string> text = ReadFile("result", place.path, size_t{1} << 30);
  if (!text.ok()) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("result") || !json.contains("settings") ||
      json["settings"] != place.settings) {
    return std::nullopt;
  }
  try {
    return json["result"].get<JobResult>();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

absl::Status CheckFinite(const JobResult& result) {
  for (const auto& [name, values] : result) {
    for (const double value : values) {
      if (!std::isfinite(value)) {
        return absl::InternalError(absl::StrCat("result ", name, " holds ", value));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status RunAndKeep(Place& place) {
  PM_ASSIGN_OR_RETURN(place.result, place.job->run());
  PM_RETURN_IF_ERROR(CheckFinite(place.result));
  const nlohmann::json json = {{"settings", place.settings}, {"result", place.result}};
  return WriteFileAtomically(place.path, json.dump(), 0644);
}

// How far all is; thread-safe.
class Meter {
 public:
  explicit Meter(const std::vector<Place>& places)
      : jobs_(static_cast<int64_t>(places.size())), began_(std::chrono::steady_clock::now()) {
    for (const Place& place : places) work_ += place.job->work;
  }

  void Done(const Job& job, bool kept) {
    ++done_;
    if (kept) ++kept_;
    (kept ? work_kept_ : work_done_) += job.work;
  }

  RunProgress Read() const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began_;
    RunProgress progress{.jobs = jobs_, .done = done_, .kept = kept_, .seconds = elapsed.count()};
    const double done = work_done_;
    if (done > 0) progress.seconds_left = elapsed.count() * (work_ - work_kept_ - done) / done;
    return progress;
  }

 private:
  int64_t jobs_;
  double work_ = 0;
  std::chrono::steady_clock::time_point began_;
  std::atomic<int64_t> done_ = 0;
  std::atomic<int64_t> kept_ = 0;
  std::atomic<double> work_done_ = 0;
  std::atomic<double> work_kept_ = 0;
};

absl::Status RunJobs(const RunOptions& options, std::vector<Place>& places) {
  Meter meter(places);
  WorkObserver observer = nullptr;
  if (options.progress) {
    observer = [&] {
      options.progress(meter.Read());
      return absl::OkStatus();
    };
  }
  std::vector<Place*> order;
  for (Place& place : places) order.push_back(&place);
  std::stable_sort(order.begin(), order.end(), [](const Place* one, const Place* other) {
    return one->job->split < other->job->split;
  });
  const auto run = [&](int i, SharedWork& /*shared*/) -> absl::Status {
    Place& place = *order[static_cast<size_t>(i)];
    std::optional<JobResult> kept = Kept(place);
    if (kept) {
      place.result = *std::move(kept);
    } else if (const absl::Status status = RunAndKeep(place); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat(place.experiment->name, ", ", place.job->key,
                                                      ": ", status.message()));
    }
    meter.Done(*place.job, kept.has_value());
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(ParallelFor(static_cast<int>(places.size()), run, observer));
  if (options.progress) options.progress(meter.Read());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Figure>> RunExperiments(const std::vector<Experiment>& experiments,
                                                   const RunOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(options.folder + "/jobs", error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make ", options.folder, "/jobs: ", error.message()));
  }
  std::vector<Place> places = PlacesOf(experiments, options);
  PM_RETURN_IF_ERROR(RunJobs(options, places));
  std::vector<Figure> figures;
  auto place = places.begin();
  for (const Experiment& experiment : experiments) {
    std::vector<JobResult> results;
    for (size_t i = 0; i < experiment.jobs.size(); ++i) results.push_back((place++)->result);
    PM_ASSIGN_OR_RETURN(std::vector<Figure> drawn, experiment.draw(results));
    for (Figure& figure : drawn) figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace privatemail
