#include <iomanip>
#include <iostream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/filter_json.h"
#include "client/cli/last_release.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/wire/codec.h"
#include "common/embedding/public_parameters.h"
#include "common/wire/parameters_proto.h"

namespace privatemail::client::cli {
namespace {

std::string RowName(const PublicParameters& parameters, int64_t row) {
  const auto slots = static_cast<int64_t>(parameters.slot_labels.size());
  return row < slots ? absl::StrCat("slot ", row, " (", parameters.ClassName(row), ")")
                     : absl::StrCat("anchor ", row - slots);
}

std::string FormOf(const LastRelease& last) {
  if (last.scheme == Scheme::kAnchored) {
    return "anchored: where each class's noisy row points to, then the anchors' coordinates, "
           "which no target enters";
  }
  return last.request.post_processing_steps() == 0 ? "finished coordinates" : "the noisy iteration";
}

void Print(const LastRelease& last, const PublicParameters& parameters,
           const FloatMatrix& release) {
  const v1::RetrieveRequest& request = last.request;
  std::cout << "Prepared for the server, " << request.ByteSizeLong()
            << " bytes and nothing else (kept before sending; whether they arrived is not known "
               "here):\n"
            << "  collection   " << Printable(request.collection()) << "\n  digest       "
            << absl::BytesToHexString(request.fingerprint()) << "\n  matches      " << request.k()
            << " for every slot\n  payloads     "
            << (request.with_payloads() ? "for every slot" : "for none") << "\n  filter       "
            << (request.has_filter() ? Line(FilterToJson(request.filter())) + ", in clear" : "none")
            << "\n  release      " << release.rows() << " x " << release.cols() << ", "
            << FormOf(last) << ":\n";
  for (Eigen::Index i = 0; i < release.rows(); ++i) {
    std::cout << "    " << std::left << std::setw(36) << Printable(RowName(parameters, i))
              << release.row(i) << "\n";
  }
}

void PrintCells(const v1::RetrieveCellsRequest& request, int64_t of) {
  std::cout << "Prepared for the server, " << request.ByteSizeLong()
            << " bytes and nothing else (kept before sending; whether they arrived is not known "
               "here):\n"
            << "  collection   " << Printable(request.collection()) << "\n  digest       "
            << absl::BytesToHexString(request.fingerprint()) << "\n  partition    "
            << request.partition() << ", of " << of << " cells\n  cells        "
            << absl::StrJoin(request.cells(), ", ") << "\n  epsilon      " << request.epsilon()
            << ", with which they were chosen\n  items        " << request.items()
            << " in all\n  payloads     "
            << (request.with_payloads() ? "for every item" : "for none") << "\n";
  if (request.embedding_version() == 0) return;
  std::cout << "  embedding    " << request.embedding_version() << " or a later one\n";
}

absl::Status ExplainCells(const Context& context, const v1::RetrieveCellsRequest& request,
                          const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("partition", request.partition(), 0,
                                         std::ssize(parameters.cell_partitions) - 1));
  const int64_t of = parameters.cell_partitions[request.partition()].cells;
  nlohmann::json answer = {
      {"collection", request.collection()},
      {"digest", absl::BytesToHexString(request.fingerprint())},
      {"scheme", NameOf(Scheme::kCells)},
      {"partition", request.partition()},
      {"of_cells", of},
      {"cells", std::vector<uint32_t>(request.cells().begin(), request.cells().end())},
      {"epsilon", request.epsilon()},
      {"items", request.items()},
      {"with_payloads", request.with_payloads()},
      {"bytes", request.ByteSizeLong()}};
  if (request.embedding_version() != 0) answer["embedding_version"] = request.embedding_version();
  Answer(context, answer, [&] { PrintCells(request, of); });
  return absl::OkStatus();
}

absl::Status Explain(const Context& context) {
  PM_ASSIGN_OR_RETURN(const LastRelease last, LoadLastRelease(context.state_folder));
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  if (last.scheme == Scheme::kCells) return ExplainCells(context, last.cells, parameters);
  PM_ASSIGN_OR_RETURN(const FloatMatrix release, FromProto("release", last.request.release()));
  nlohmann::json rows = nlohmann::json::array();
  for (Eigen::Index i = 0; i < release.rows(); ++i) {
    rows.push_back({{"row", RowName(parameters, i)},
                    {"values", std::vector<float>(release.row(i).data(),
                                                  release.row(i).data() + release.cols())}});
  }
  Answer(context,
         {{"collection", last.request.collection()},
          {"digest", absl::BytesToHexString(last.request.fingerprint())},
          {"scheme", NameOf(last.scheme)},
          {"k", last.request.k()},
          {"post_processing_steps", last.request.post_processing_steps()},
          {"with_payloads", last.request.with_payloads()},
          {"filter", last.request.has_filter() ? FilterToJson(last.request.filter()) : nullptr},
          {"bytes", last.request.ByteSizeLong()},
          {"rows", rows}},
         [&] { Print(last, parameters, release); });
  return absl::OkStatus();
}

}  // namespace

void AddExplainCommand(CLI::App& app, Context& context) {
  AddCommand(app, "explain",
             "The last release as it was prepared for the server, row by row or cell by cell; of "
             "several targets, the last one's")
      ->callback([&context] { context.run = [&context] { return Explain(context); }; });
}

}  // namespace privatemail::client::cli
