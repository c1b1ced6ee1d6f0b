// privatemail-evaluate: experiments on labelled data. Its noise is seeded, so that a run can be
// repeated and nothing it makes is private; it has no way to send anything anywhere.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/evaluation/command_line.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/report/figure.h"
#include "client/evaluation/report/report.h"
#include "client/evaluation/runner.h"
#include "client/flags/names.h"
#include "client/flags/numbers.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// A line a second on a terminal, written over the last one; elsewhere one every half minute.
class ProgressLine {
 public:
  void Show(const RunProgress& progress) {
    const bool terminal = ::isatty(STDERR_FILENO) != 0;
    const bool last = progress.done == progress.jobs;
    if (!last && progress.seconds - shown_ < (terminal ? 1 : 30)) return;
    shown_ = progress.seconds;
    std::string line =
        absl::StrFormat("%s%d of %d parts", terminal ? "\r" : "", progress.done, progress.jobs);
    if (progress.kept > 0) absl::StrAppend(&line, ", ", progress.kept, " of an earlier run");
    if (!last && progress.seconds_left >= 0) {
      absl::StrAppendFormat(&line, ", about %.0f s left", progress.seconds_left);
    }
    std::fprintf(stderr, "%-60s%s", line.c_str(), terminal && !last ? "" : "\n");
  }

 private:
  double shown_ = -1e9;
};

absl::StatusOr<std::vector<Experiment>> ExperimentsOf(const EvaluationOptions& options,
                                                      const std::shared_ptr<Stage>& stage) {
  if (options.tune) return std::vector<Experiment>{MakeTuneExperiment(stage)};
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Trial> trial, stage->TrialOf(1));
  return MakeExperiments(stage, options.experiments, options.attacks,
                         LibraryBaselines(trial->split, stage->study().settings.embedding_dim));
}

absl::Status Evaluate(const EvaluationOptions& options) {
  if (options.out.empty()) return absl::InvalidArgumentError("--out must be given");
  PM_ASSIGN_OR_RETURN(Study study, StudyOf(options));
  if (options.tune) {
    PM_ASSIGN_OR_RETURN(study, TuningStudy(study));
  }
  PM_RETURN_IF_ERROR(Validate(study));
  const std::string described = Describe(study);
  std::cerr << Printable(study.about) << "\n";
  const auto stage = std::make_shared<Stage>(std::move(study));
  PM_ASSIGN_OR_RETURN(const std::vector<Experiment> experiments, ExperimentsOf(options, stage));
  ProgressLine line;
  const RunOptions run{.folder = options.out,
                       .study = described,
                       .progress = [&](const RunProgress& progress) { line.Show(progress); }};
  PM_ASSIGN_OR_RETURN(std::vector<Figure> figures, RunExperiments(experiments, run));
  for (const Figure& figure : figures) {
    std::cout << figure.title << "\n";
    for (const std::string& sentence : figure.words) std::cout << "- " << sentence << "\n";
    std::cout << "\n";
  }
  PM_ASSIGN_OR_RETURN(auto about, About(stage->study()));
  const std::vector<std::string> undrawable = TakeOutUndrawable(&figures);
  for (const std::string& why : undrawable) about.emplace_back("Not drawn", why);
  PM_RETURN_IF_ERROR(
      WriteReport(options.out, {.title = options.tune ? "Settings, tried on the rows given"
                                                      : "What PrivateMail finds, and what it takes",
                                .about = about,
                                .settings = SettingsOf(stage->study()),
                                .figures = figures}));
  std::cout << "report: " << options.out << "/index.html\n";
  if (undrawable.empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the report lacks what could not be drawn: ", absl::StrJoin(undrawable, "; ")));
}

absl::Status Run(const EvaluationOptions& options) {
  try {
    return cli::WithFlagName(Evaluate(options), *options.app);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory on this machine");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("unexpected: ", error.what()));
  }
}

}  // namespace
}  // namespace privatemail::client

int main(int argc, char** argv) {
  CLI::App app(
      "privatemail-evaluate: what PrivateMail finds on your data, what that costs, and what it "
      "leaks");
  app.set_version_flag("--version", "privatemail-evaluate " PRIVATEMAIL_VERSION);
  app.footer(
      "Exit codes: 0 done, 1 failed or a figure could not be drawn, 2 the command line was not "
      "understood or a value or file that "
      "it gives is not valid.");
  privatemail::client::EvaluationOptions options;
  privatemail::client::AddEvaluationOptions(app, &options);
  privatemail::client::cli::RequireNumericOptions(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::Status status = privatemail::client::Run(options);
  if (status.ok()) return 0;
  std::cerr << "error: " << privatemail::Printable(status.message()) << " ("
            << absl::StatusCodeToString(status.code()) << ")\n";
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? 2 : 1;
}
