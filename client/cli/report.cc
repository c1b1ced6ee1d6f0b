#include "client/cli/report.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/render.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

constexpr char kHead[] = R"html(<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>PrivateMail: private queries</title><style>
*{box-sizing:border-box}
:root{color-scheme:light dark;--line:#8884;--yes:#0072b2;--no:#d55e00}
body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.2rem;margin:2.5rem 0 .5rem;border-top:1px solid var(--line);padding-top:1.5rem}
h3{font-size:1rem;margin:1rem 0 .3rem;font-weight:600}.row{display:grid;grid-template-columns:repeat(auto-fill,minmax(6.5rem,1fr));gap:.5rem}
figure{margin:0}figure img{width:100%;border-radius:.4rem;display:block;border:.2rem solid var(--no)}
.same img{border-color:var(--yes)}.mark{font-weight:600}.query img{border-color:transparent}.query{max-width:11rem}
figcaption{font-size:.72rem;overflow-wrap:anywhere}ul{padding-left:1.2rem;margin:.5rem 0}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(18rem,100%),1fr));gap:1rem}svg{width:100%;height:auto;border:1px solid var(--line);border-radius:.4rem;background:#fff}
</style></head><body><h1>Private queries</h1>
<p>A blue frame and the words "same label" mark a match of the query's label, an orange frame another label. Without a label,
"likely label" marks matches of the labels that fit the query best by the public anchors. The server never saw the query or
its features: it saw the rows plotted below, noise included, with the query among one dummy for every other label. What
exactly is hidden stands beside each query.</p>
<p>With a label the private row can look better than the non-private one: its owner knows the query's label, while a search
without privacy has the picture alone. Among items of one label the private order is no better than chance.</p>
)html";

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(Printable(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

absl::StatusOr<std::string> DataUri(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.empty())
    return absl::UnavailableError(absl::StrCat(path, ": cannot be read for the report"));
  const char* type = absl::EndsWithIgnoreCase(path, ".png") ? "png" : "jpeg";
  return absl::StrCat("data:image/", type, ";base64,", absl::Base64Escape(bytes));
}

// alt: the role of the picture; the caption names it.
absl::StatusOr<std::string> Figure(const ReportImage& image, const std::string& css_class,
                                   const std::string& alt, const std::string& mark) {
  std::string picture;
  if (!image.path.empty()) {
    PM_ASSIGN_OR_RETURN(const std::string uri, DataUri(image.path));
    picture = absl::StrCat("<img alt=\"", Escape(alt), "\" src=\"", uri, "\">");
  }
  return absl::StrCat("<figure class=\"", css_class, "\">", picture, "<figcaption>",
                      Escape(image.caption), mark, "</figcaption></figure>");
}

absl::StatusOr<std::string> Row(const std::string& title, const std::vector<ReportImage>& images,
                                const std::string& mark) {
  std::string html = absl::StrCat("<h3>", title, "</h3><div class=\"row\">");
  for (size_t i = 0; i < images.size(); ++i) {
    const bool same = images[i].same_class;
    PM_ASSIGN_OR_RETURN(const std::string figure,
                        Figure(images[i], same ? "same" : "other",
                               absl::StrCat("match ", i + 1, same ? ", " + mark : ", another label",
                                            ": ", images[i].caption),
                               same ? " <span class=\"mark\">" + mark + "</span>" : ""));
    html += figure;
  }
  return html + "</div>";
}

struct Cloud {
  const Matrix* points;
  std::string mark;  // attributes of each circle
  double radius;
};

std::string Circles(const Cloud& cloud, const RowVector& middle, double unit) {
  std::string svg;
  for (Eigen::Index i = 0; i < cloud.points->rows(); ++i) {
    const RowVector offset = (cloud.points->row(i) - middle) * unit;
    absl::StrAppendFormat(&svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" %s/>", 180 + offset[0],
                          160 - (offset.size() > 1 ? offset[1] : 0), cloud.radius, cloud.mark);
  }
  return svg;
}

// All clouds in the middle of one frame of 360 x 320, both axes in the same unit.
std::string Scatter(const std::string& title, const std::vector<Cloud>& clouds) {
  RowVector low = clouds[0].points->colwise().minCoeff();
  RowVector high = clouds[0].points->colwise().maxCoeff();
  for (const Cloud& cloud : clouds) {
    low = low.cwiseMin(cloud.points->colwise().minCoeff());
    high = high.cwiseMax(cloud.points->colwise().maxCoeff());
  }
  const double extent = std::max((high - low).maxCoeff(), 1e-300);
  std::string svg =
      "<svg viewBox=\"0 0 360 320\" role=\"img\" aria-label=\"" + Escape(title) + "\">";
  for (const Cloud& cloud : clouds) svg += Circles(cloud, (low + high) / 2, 280 / extent);
  return absl::StrCat("<div><h3>", title, "</h3>", svg, "</svg></div>");
}

std::string Plots(const ReportQuery& query) {
  if (query.server_anchors.size() == 0) return "";
  const Matrix own_before = query.client_slots.row(query.slot);
  const Matrix own_after = query.aligned_slots.row(query.slot);
  const std::string server = "fill=\"none\" stroke=\"#777\" stroke-width=\".6\"";
  const std::string anchor = "fill=\"none\" stroke=\"#0072b2\" stroke-width=\"1.2\"";
  const std::string slot = "fill=\"#e69f00\" stroke=\"#333\" stroke-width=\".5\"";
  const std::string own = "fill=\"#d55e00\" stroke=\"#000\"";
  // Rings, larger than dots, over the slots, and the query's dot over all: points that coincide
  // stay visible.
  return absl::StrCat(
      "<div class=\"plots\">",
      Scatter("Before alignment: the release", {{&query.client_slots, slot, 3},
                                                {&query.client_anchors, anchor, 5},
                                                {&own_before, own, 4}}),
      Scatter("After alignment: on the server's anchors", {{&query.aligned_slots, slot, 3},
                                                           {&query.server_anchors, server, 7},
                                                           {&query.aligned_anchors, anchor, 5},
                                                           {&own_after, own, 4}}),
      "</div><p>Blue rings: the client's anchors. Grey rings: the same anchors in the server's "
      "embedding. Yellow dots: slots. The red dot is the query's slot, which only this report "
      "knows.</p>");
}

}  // namespace

ReportQuery ToReport(const SearchResponse& response, size_t index, const QueryTarget& target,
                     const std::optional<LocalGallery>& gallery, const nlohmann::json& json) {
  const SearchResult& result = response.results[index];
  const JointResult& joint = *result.joint;
  std::set<std::string> names;
  std::set<int32_t> labels;
  for (const SearchedClass& one : joint.classes) {
    names.insert(response.parameters.ClassName(one.slot));
    labels.insert(one.label);
  }
  ReportQuery report;
  report.query = {target.image, result.target, true};
  report.title = joint.label_guessed
                     ? "Query without a label; likely labels: " + absl::StrJoin(names, ", ")
                     : "Query of label " + *names.begin();
  report.mark = joint.label_guessed ? "likely label" : "same label";
  nlohmann::json facts;
  for (const char* key : {"guarantee", "ledger", "bytes", "timings", "alignment", "expected_recall",
                          "radius_meaning"}) {
    if (json.contains(key) && !json[key].is_null()) facts[key] = json[key];
  }
  report.facts = absl::StrSplit(Render(facts), '\n', absl::SkipWhitespace());
  if (gallery.has_value()) {
    const auto k = static_cast<int64_t>(result.matches.size());
    report.non_private_matches = gallery->Nearest(target.target.features, k, names);
  }
  for (const Match& match : result.matches) {
    ReportImage image =
        gallery.has_value() ? gallery->Picture(match.id, names) : ReportImage{"", match.id, false};
    image.same_class = labels.contains(match.label);
    report.private_matches.push_back(std::move(image));
  }
  if (joint.released.size() == 0) return report;
  const auto slots = static_cast<Eigen::Index>(response.parameters.slot_labels.size());
  report.slot = joint.classes.front().slot;
  report.client_slots = joint.released.topRows(slots);
  report.client_anchors = joint.released.bottomRows(joint.released.rows() - slots);
  report.aligned_slots = joint.aligned.topRows(slots);
  report.aligned_anchors = joint.aligned.bottomRows(joint.aligned.rows() - slots);
  report.server_anchors = joint.server_anchors;
  return report;
}

nlohmann::json ComparedJson(const ReportQuery& report) {
  nlohmann::json compared = nlohmann::json::array();
  for (const ReportImage& image : report.non_private_matches) {
    compared.push_back({{"picture", image.caption},
                        {absl::StrReplaceAll(report.mark, {{" ", "_"}}), image.same_class}});
  }
  return compared;
}

absl::Status WriteReport(const std::vector<ReportQuery>& queries, PrivateFile* file) {
  std::string html = kHead;
  for (const ReportQuery& query : queries) {
    absl::StrAppend(&html, "<h2>", Escape(query.title), "</h2>");
    PM_ASSIGN_OR_RETURN(const std::string figure, Figure(query.query, "query", query.title, ""));
    html += figure + "<ul>";
    for (const std::string& fact : query.facts)
      absl::StrAppend(&html, "<li>", Escape(fact), "</li>");
    html += "</ul>";
    if (!query.non_private_matches.empty()) {
      PM_ASSIGN_OR_RETURN(const std::string row, Row("Non-private, on this machine",
                                                     query.non_private_matches, query.mark));
      html += row;
    }
    PM_ASSIGN_OR_RETURN(const std::string row,
                        Row("Private, from the server", query.private_matches, query.mark));
    html += row + Plots(query);
  }
  return file->Commit(html + "</body></html>\n");
}

}  // namespace privatemail::client::cli
