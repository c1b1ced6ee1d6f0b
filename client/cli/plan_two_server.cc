#include "client/cli/plan_two_server.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/query_targets.h"
#include "client/queries/two_server_queries.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/image/image_header.h"
#include "common/wire/parameters_proto.h"

namespace privatemail::client::cli {
namespace {

constexpr int64_t kTableLists[] = {1, 2, 4, 8, 16, 32, 64};

constexpr char kListsNotMeasured[] =
    "what lists find is not told: the quality that servers publish is of other lists, one a query";

struct PlanBytes {
  uint64_t up;    // to both servers together
  uint64_t down;  // of both
};

PlanBytes BytesOf(const TwoServerQueries& queries, const TwoServerOptions& options) {
  const std::vector<TwoServerCall> calls =
      CallsOf(queries.collection().name(), queries.image(), options);
  const TwoServerCall& call = calls.front();
  return {call.bytes_up.a + call.bytes_up.b, 2 * call.bytes_down};
}

nlohmann::json BytesJson(const PlanBytes& bytes) {
  return {{"up", bytes.up}, {"down", bytes.down}};
}

void AddScores(const TwoServerQueries& queries, Result* result) {
  const absl::Status allowed = queries.image().CheckScoresAllowed();
  if (!allowed.ok()) {
    result->json["scores"] = {{"allowed", false}, {"words", std::string(allowed.message())}};
    absl::StrAppend(&result->text, "scores: ", Printable(std::string(allowed.message())), "\n");
    return;
  }
  const PlanBytes bytes = BytesOf(queries, {.mode = TwoServerMode::kScores});
  const uint64_t table = FindSection(queries.image().header(), v1::IMAGE_SECTION_TABLE)->bytes();
  result->json["scores"] = {
      {"allowed", true}, {"exact", true}, {"bytes", BytesJson(bytes)}, {"table_bytes", table}};
  absl::StrAppend(&result->text, "scores: exact; ", bytes.up, " bytes up, ", bytes.down,
                  " bytes down, and once an image ", table, " bytes of ids and labels\n");
}

void AddLists(const TwoServerQueries& queries, Result* result) {
  const v1::ImageHeader& header = queries.image().header();
  for (int partition = 0; partition < header.partitions_size(); ++partition) {
    const v1::ListGroup& group = header.partitions(partition);
    absl::StrAppend(&result->text, "lists of partition ", partition, ", ", group.lists(),
                    " lists of ", group.rows(), " items:\n   lists    bytes up  bytes down\n");
    for (const int64_t lists : kTableLists) {
      if (lists > group.lists()) break;
      const PlanBytes bytes = BytesOf(queries, {.partition = partition, .lists = lists});
      result->json["lists"].push_back({{"partition", partition},
                                       {"of_lists", group.lists()},
                                       {"list_items", group.rows()},
                                       {"lists", lists},
                                       {"bytes", BytesJson(bytes)}});
      absl::StrAppendFormat(&result->text, "%8d %11d %11d\n", lists, bytes.up, bytes.down);
    }
  }
  result->json["lists_quality"] = kListsNotMeasured;
  absl::StrAppend(&result->text, kListsNotMeasured, "\n");
}

}  // namespace

absl::StatusOr<Result> PlanTwoServers(const Context& context, const std::string& collection,
                                      const SecondServer& second_server) {
  PM_ASSIGN_OR_RETURN(const Transport first, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const Transport second, ConnectSecond(context, second_server));
  PM_ASSIGN_OR_RETURN(const TwoServerQueries queries,
                      TwoServerQueries::Fetch({&first, &second}, SettingsOf(context), collection,
                                              /*trust_again=*/false));
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters,
                      FromProto(queries.collection().parameters()));
  const Halves<std::string>& operators = queries.image().operators();
  const uint64_t items = queries.image().header().items();
  Result result{.json = {{"collection", queries.collection().name()},
                         {"scheme", "two-server"},
                         {"of_items", items},
                         {"operators", {operators.a, operators.b}},
                         {"lists", nlohmann::json::array()},
                         {"spent", ToJson(Budget{})}},
                .text = absl::StrCat("scheme two-server at ", Printable(operators.a), " and ",
                                     Printable(operators.b), ", ", Counted(items, "item"),
                                     "; bytes of both together, without payloads; nothing was "
                                     "spent\n")};
  AddScores(queries, &result);
  // Items of such collections are coordinates, of which no list can be ranked.
  if (!parameters.SendsCoordinates()) AddLists(queries, &result);
  return result;
}

}  // namespace privatemail::client::cli
