#include <iomanip>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "privatemail/cell_client.h"
#include "client/cli/command.h"
#include "client/cli/kept_items.h"
#include "client/cli/last_release.h"
#include "client/cli/query_cells.h"
#include "client/cli/query_outcome.h"
#include "client/cli/query_targets.h"
#include "privatemail/joint_client.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/wire/codec.h"
#include "common/embedding/public_parameters.h"
#include "common/wire/parameters_proto.h"

namespace privatemail::client::cli {
namespace {

constexpr int64_t kUsualMatches = 8;

struct ResendOptions {
  std::string label;
  TargetOptions target;
  std::optional<int64_t> k;
};

bool NamesATarget(const TargetOptions& target) {
  return !target.vectors_file.empty() || !target.rows.empty() || !target.images.empty() ||
         !target.own_anchors_file.empty();
}

// The same rows tell the server nothing new, so nothing is charged. Which slot is read is decided
// here, and the answer is checked for every slot alike.
absl::Status ResendSlots(const Context& context, const LastRelease& last,
                         const ResendOptions& options) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  PM_ASSIGN_OR_RETURN(const int32_t label,
                      LabelFrom(LabelTexts({options.label}).front(), parameters));
  PM_ASSIGN_OR_RETURN(const int64_t slot, parameters.SlotOf(label));
  v1::RetrieveRequest request = last.request;
  if (options.k.has_value()) {
    PM_RETURN_IF_ERROR(CheckIntegerBetween("k", *options.k, 1, kMaxNeighbors));
    request.set_k(static_cast<uint32_t>(*options.k));
  }
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::RetrieveResponse response, transport.Retrieve(request));
  const ExpectedAnswer expected{request.k(), request.with_payloads(), request.with_alignment()};
  PM_ASSIGN_OR_RETURN(const QueryResult result, ReadAnswer(parameters, slot, expected, response));
  Answer(context,
         {{"collection", last.request.collection()},
          {"scheme", NameOf(last.scheme)},
          {"label", label},
          {"class", parameters.ClassName(slot)},
          {"matches", ToJson(result.matches)},
          {"truncated", result.truncated},
          {"spent", ToJson(Budget{})},
          {"alignment", {{"relative_residual", result.relative_residual}}},
          {"embedding_version", result.embedding_version}},
         [&] {
           std::cout << "collection " << Printable(last.request.collection()) << "   class "
                     << Printable(parameters.ClassName(slot)) << "\n";
           for (size_t i = 0; i < result.matches.size(); ++i) {
             std::cout << std::setw(4) << i + 1 << "  " << Printable(result.matches[i].id) << "\n";
           }
           std::cout << "  spent nothing: the rows are those of the last release\n";
         });
  return absl::OkStatus();
}

// What items are compared with; among coordinates a place in the embedding that answers now, of the
// class of --label where one is given.
absl::StatusOr<CellTarget> TargetOf(const std::vector<v1::GetAnchorsResponse>& anchors,
                                    const ResendOptions& options,
                                    const PublicParameters& parameters,
                                    const Eigen::RowVectorXf& features) {
  std::optional<int32_t> label;
  if (!options.label.empty()) {
    PM_ASSIGN_OR_RETURN(label, LabelFrom(LabelTexts({options.label}).front(), parameters));
  }
  PM_ASSIGN_OR_RETURN(const auto own_anchors, ReadOwnAnchors(options.target));
  PM_ASSIGN_OR_RETURN(const CellTargetFactory targets,
                      CellTargetFactory::Create(parameters, anchors, own_anchors));
  return targets.Make(features, options.k.value_or(kUsualMatches), label);
}

// The same for cells. What is ranked by is given again: nothing that was kept names it.
absl::Status ResendCells(const Context& context, const LastRelease& last,
                         const ResendOptions& options) {
  const v1::RetrieveCellsRequest& request = last.cells;
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  if (!options.label.empty() && !parameters.SendsCoordinates()) {
    return absl::InvalidArgumentError(
        "--label is of no use: the last release asked for cells; give its target, with --vectors "
        "and --row or with --image");
  }
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", options.k.value_or(kUsualMatches), 1, kMaxNeighbors));
  PM_ASSIGN_OR_RETURN(const std::vector<NamedTarget> targets,
                      ReadFeatures(options.target, parameters));
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("number of targets of --row or --image", std::ssize(targets), 1, 1));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  std::vector<v1::GetAnchorsResponse> anchors;  // what codes are compared with needs none
  if (parameters.SendsCoordinates()) {
    PM_ASSIGN_OR_RETURN(anchors,
                        transport.GetAnchors(request.collection(), last.collection.fingerprint()));
  }
  PM_ASSIGN_OR_RETURN(const CellTarget target,
                      TargetOf(anchors, options, parameters, targets.front().target.features));
  PM_ASSIGN_OR_RETURN(const auto response, RetrieveCells(transport, last.collection, request));
  PM_ASSIGN_OR_RETURN(const CellQueryResult result,
                      ReadCellAnswer(parameters, request, target, response));
  WarnUnlessKept(KeepItems(context.state_folder, last.collection, anchors, response));
  const bool guessed = options.label.empty();
  nlohmann::json answer = {
      {"collection", request.collection()},
      {"scheme", "cells"},
      {"cells", std::vector<uint32_t>(request.cells().begin(), request.cells().end())},
      {"matches", ToJson(result.matches)},
      {"candidates", result.candidates},
      {"spent", ToJson(Budget{})},
      {"items_version", result.items_version}};
  AddPlace(target, guessed, &answer);
  Answer(context, answer, [&] {
    std::cout << "collection " << Printable(request.collection()) << "\n";
    PrintMatches(result, parameters);
    PrintPlace(target, guessed, parameters);
    std::cout << "  the nearest of " << result.candidates
              << " items that came back; spent nothing: the bytes are those of the last release\n";
  });
  return absl::OkStatus();
}

absl::Status Resend(const Context& context, const ResendOptions& options) {
  PM_ASSIGN_OR_RETURN(const LastRelease last, LoadLastRelease(context.state_folder));
  if (last.scheme == Scheme::kCells) return ResendCells(context, last, options);
  if (!NamesATarget(options.target)) {
    if (!options.label.empty()) return ResendSlots(context, last, options);
    return absl::InvalidArgumentError("--label must be given, but is not");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--vectors, --row, --image and --own-anchors are of no use: the last release was of the ",
      NameOf(last.scheme), " scheme; give --label"));
}

}  // namespace

void AddResendCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<ResendOptions>();
  CLI::App* resend = AddCommand(app, "resend",
                                "Send the last release again, at no cost, and read one class of "
                                "the answer or, of one for cells, the nearest to its target");
  resend->add_option("--label", options->label,
                     "Joint and anchored: the class whose matches to read, - from standard input; "
                     "the server is not told. Cells with --cell-code none: the target's class, "
                     "guessed if absent");
  AddFeatureOptions(resend, &options->target);
  AddOwnAnchorsOption(resend, &options->target);
  resend->add_option(
      "-k", options->k,
      absl::StrCat("Matches wanted; if absent as many as before, for cells ", kUsualMatches));
  resend->callback([&context, options] {
    context.run = [&context, options] { return Resend(context, *options); };
  });
}

}  // namespace privatemail::client::cli
