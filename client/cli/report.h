// HTML report of queries by joint: one self-contained file without scripts or network requests.
#ifndef PRIVATEMAIL_CLIENT_CLI_REPORT_H_
#define PRIVATEMAIL_CLIENT_CLI_REPORT_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/images.h"
#include "client/cli/query_targets.h"
#include "client/files/private_file.h"
#include "common/base/matrix.h"
#include "privatemail/search_result.h"

namespace privatemail::client::cli {

struct ReportQuery {
  ReportImage query;
  std::string title;  // "Query of label lime"
  std::string mark;   // of matches with same_class: "same label", or "likely label" without one
  std::vector<ReportImage> non_private_matches;
  std::vector<ReportImage> private_matches;
  std::vector<std::string> facts;  // lines of text: guarantee, bytes, times
  // Points of the scatter plots: all empty, or n x d with one d; the first two columns are drawn.
  Matrix client_slots;  // coordinates as released
  Matrix client_anchors;
  Matrix aligned_slots;  // after Kabsch-Umeyama alignment
  Matrix aligned_anchors;
  Matrix server_anchors;
  int64_t slot = 0;  // the target's
};

// json: of the result, whose facts the report shows.
ReportQuery ToReport(const SearchResponse& response, size_t result, const QueryTarget& target,
                     const std::optional<LocalGallery>& gallery, const nlohmann::json& json);

// The matches of a search without privacy: [{"picture": ..., "same_label": ...}, ...], or with
// "likely_label" if the query has no label.
nlohmann::json ComparedJson(const ReportQuery& report);

// The report reveals the queries. UNAVAILABLE: a picture cannot be read or the file not written.
absl::Status WriteReport(const std::vector<ReportQuery>& queries, PrivateFile* file);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_REPORT_H_
