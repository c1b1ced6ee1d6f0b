// The results of queries by joint as a report with pictures and plots.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_REPORT_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_REPORT_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/images.h"
#include "client/cli/query_targets.h"
#include "client/cli/report.h"
#include "privatemail/search_result.h"

namespace privatemail::client::cli {

// The gallery's pictures in this folder, with features by the collection's extractor; empty: none.
absl::StatusOr<std::optional<LocalGallery>> OpenGallery(const std::string& folder,
                                                        ExtractorOptions extractor,
                                                        const PublicParameters& parameters);

// json: of the result, whose facts the report shows.
ReportQuery ToReport(const SearchResponse& response, size_t result, const QueryTarget& target,
                     const std::optional<LocalGallery>& gallery, const nlohmann::json& json);

// The matches of a search without privacy: [{"picture": ..., "same_class": ...}, ...].
nlohmann::json ComparedJson(const ReportQuery& report);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_REPORT_H_
