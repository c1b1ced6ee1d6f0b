#include "client/evaluation/runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {
namespace {

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

std::optional<JobResult> ReadKeptResult(const Place& place) {
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

JobResult Refused(absl::string_view why) {
  JobResult result;
  result.refused = std::string(why);
  return result;
}

JobResult Checked(JobResult result) {
  for (const auto& [name, values] : result) {
    for (const double value : values) {
      if (!std::isfinite(value)) return Refused(absl::StrCat("its ", name, " would be ", value));
    }
  }
  return result;
}

absl::Status RunAndKeep(Place& place) {
  absl::StatusOr<JobResult> result = place.job->run();
  if (absl::IsFailedPrecondition(result.status())) {
    place.result = Refused(result.status().message());
    return absl::OkStatus();
  }
  PM_RETURN_IF_ERROR(result.status());
  place.result = Checked(*std::move(result));
  if (!place.result.refused.empty()) return absl::OkStatus();
  const nlohmann::json json = {{"settings", place.settings}, {"result", place.result}};
  return WriteFileAtomically(place.path, json.dump(), 0644);
}

class Meter {
 public:
  Meter(size_t jobs, const std::vector<Place*>& to_run) {
    progress_.jobs = static_cast<int64_t>(jobs);
    progress_.done = progress_.kept = progress_.jobs - std::ssize(to_run);
    for (const Place* place : to_run) work_left_ += place->job->work;
  }

  void Add(const Job& job) {
    const std::lock_guard<std::mutex> guard(mutex_);
    ++progress_.done;
    work_done_ += job.work;
    work_left_ -= job.work;
  }

  RunProgress Read() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    RunProgress now = progress_;
    now.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    if (work_done_ > 0) now.seconds_left = now.seconds * work_left_ / work_done_;
    if (now.done == now.jobs) now.seconds_left = 0;
    return now;
  }

 private:
  using Clock = std::chrono::steady_clock;

  const Clock::time_point began_ = Clock::now();
  mutable std::mutex mutex_;  // guards what follows
  RunProgress progress_;
  double work_done_ = 0;  // in this run
  double work_left_ = 0;
};

// Jobs without a cached result, by split.
std::vector<Place*> ToRun(std::vector<Place>& places) {
  std::vector<Place*> to_run;
  for (Place& place : places) {
    if (std::optional<JobResult> kept = ReadKeptResult(place)) {
      place.result = *std::move(kept);
    } else {
      to_run.push_back(&place);
    }
  }
  std::stable_sort(to_run.begin(), to_run.end(), [](const Place* one, const Place* other) {
    return one->job->split < other->job->split;
  });
  return to_run;
}

absl::Status RunJobs(const RunOptions& options, std::vector<Place>& places) {
  const std::vector<Place*> to_run = ToRun(places);
  Meter meter(places.size(), to_run);
  WorkObserver observer = nullptr;
  if (options.progress) {
    observer = [&] {
      options.progress(meter.Read());
      return absl::OkStatus();
    };
  }
  const auto run = [&](int i, TaskGroup& /*shared*/) -> absl::Status {
    Place& place = *to_run[static_cast<size_t>(i)];
    if (const absl::Status status = RunAndKeep(place); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat(place.experiment->name, ", ", place.job->key,
                                                      ": ", status.message()));
    }
    meter.Add(*place.job);
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(ParallelFor(static_cast<int>(to_run.size()), run, observer));
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

}  // namespace privatemail::client
