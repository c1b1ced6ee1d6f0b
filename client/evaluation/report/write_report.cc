#include "client/evaluation/report/write_report.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/figure_json.h"
#include "client/evaluation/report/html_report.h"
#include "client/evaluation/report/svg_plot.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

absl::Status CheckIdsDiffer(const Report& report) {
  std::set<std::string> ids;
  for (const Figure& figure : report.figures) {
    if (ids.insert(figure.id).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("figure ids must differ, but two are ", figure.id));
  }
  return absl::OkStatus();
}

absl::Status MakeDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot make the directory ", directory, ": ", error.message()));
}

}  // namespace

absl::Status WriteReport(const std::string& directory, const Report& report) {
  constexpr mode_t kReadableByAll = 0644;
  PM_RETURN_IF_ERROR(CheckIdsDiffer(report));
  std::vector<std::pair<std::string, std::string>> files;
  for (const Figure& figure : report.figures) {
    PM_ASSIGN_OR_RETURN(std::string svg, StandAloneSvg(figure));
    files.emplace_back(figure.id + ".svg", std::move(svg));
  }
  files.emplace_back("results.json", WriteResults(report));
  PM_ASSIGN_OR_RETURN(std::string page, HtmlReport(report));
  files.emplace_back("index.html", std::move(page));
  PM_RETURN_IF_ERROR(MakeDirectory(directory));
  for (const auto& [name, content] : files) {
    const std::string path = (std::filesystem::path(directory) / name).string();
    PM_RETURN_IF_ERROR(WriteFileAtomically(path, content, kReadableByAll));
  }
  return absl::OkStatus();
}

}  // namespace privatemail::client
