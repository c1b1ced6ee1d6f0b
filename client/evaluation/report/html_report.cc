#include "client/evaluation/report/html_report.h"

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/html_style.h"
#include "client/evaluation/report/html_table.h"
#include "client/evaluation/report/plot_text.h"
#include "client/evaluation/report/series_style.h"
#include "client/evaluation/report/svg_plot.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

std::string DocumentHead(const Report& report) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>",
      Escaped(report.title), "</title>\n<style>\n", HtmlStyleSheet(), PlotStyleSheet(),
      "</style>\n</head>\n");
}

std::string Facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string list;
  for (const auto& [key, value] : facts) {
    absl::StrAppend(&list, "<div><dt>", Escaped(key), "</dt><dd>", Escaped(value), "</dd></div>\n");
  }
  return list.empty() ? "" : absl::StrCat("<dl class=\"about\">\n", list, "</dl>\n");
}

std::string Header(const Report& report) {
  return absl::StrCat("<header>\n<p class=\"kicker\">PrivateMail evaluation</p>\n<h1>",
                      Escaped(report.title), "</h1>\n", Facts(report.about),
                      report.settings.empty() ? "" : "<h2 id=\"settings\">Settings</h2>\n",
                      Facts(report.settings), "</header>\n");
}

std::string Contents(const Report& report) {
  if (report.figures.size() < 2) return "";
  std::string items;
  for (const Figure& figure : report.figures) {
    absl::StrAppend(&items, "<li><a href=\"#figure-", figure.id, "\">", Escaped(figure.title),
                    "</a></li>\n");
  }
  return absl::StrCat(
      "<nav aria-labelledby=\"contents\">\n<h2 id=\"contents\">Figures</h2>\n<ol>\n", items,
      "</ol>\n</nav>\n");
}

absl::StatusOr<std::string> Section(const Figure& figure, size_t number) {
  PM_ASSIGN_OR_RETURN(const std::string page, InlineSvg(figure, kPageWidth));
  PM_ASSIGN_OR_RETURN(const std::string phone, InlineSvg(figure, kPhoneWidth));
  // What is most to be known comes first, what is to be known besides after the plot.
  std::string first;
  std::string rest;
  for (const std::string& sentence : figure.words) {
    absl::StrAppend(first.empty() ? &first : &rest, "<p>", Escaped(sentence), "</p>\n");
  }
  return absl::StrCat("<section id=\"figure-", figure.id, "\" aria-labelledby=\"heading-",
                      figure.id, "\">\n<p class=\"kicker\">Figure ", number,
                      "</p>\n<h2 id=\"heading-", figure.id, "\">", Escaped(figure.title), "</h2>\n",
                      first, "<figure>\n<div class=\"page\">\n", page,
                      "</div>\n<div class=\"phone\">\n", phone, "</div>\n</figure>\n", rest,
                      "<details>\n<summary>Table of the ", PointCount(figure),
                      " points</summary>\n", HtmlTable(figure),
                      "<p class=\"files\">Rounded to six digits; exact in "
                      "<a href=\"results.json\">results.json</a>. The plot alone: <a href=\"",
                      figure.id, ".svg\">", figure.id, ".svg</a></p>\n</details>\n</section>\n");
}

}  // namespace

absl::StatusOr<std::string> HtmlReport(const Report& report) {
  std::string page = absl::StrCat(DocumentHead(report), "<body>\n<div class=\"sheet\">\n",
                                  Header(report), Contents(report), "<main>\n");
  for (size_t i = 0; i < report.figures.size(); ++i) {
    PM_ASSIGN_OR_RETURN(const std::string section, Section(report.figures[i], i + 1));
    page += section;
  }
  return absl::StrCat(page,
                      "</main>\n<footer>All numbers, exactly as computed: "
                      "<a href=\"results.json\">results.json</a></footer>\n"
                      "</div>\n</body>\n</html>\n");
}

}  // namespace privatemail::client
