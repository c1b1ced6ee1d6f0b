#include "client/queries/cell_queries.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/planning/query_plan.h"
#include "client/queries/last_release.h"
#include "client/queries/memory_limit.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"
#include "common/wire/cell_quality_proto.h"
#include "common/wire/codec.h"
#include "common/wire/parameters_proto.h"

namespace privatemail::client {
namespace {

absl::Status CheckReady(const v1::GetCollectionResponse& collection) {
  if (AreCellsReady(collection)) return absl::OkStatus();
  if (collection.cells_status() == v1::CELLS_STATUS_FAILED) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cells of collection ", collection.name(),
                     " could not be prepared: ", collection.cells(), "; nothing was spent"));
  }
  return absl::UnavailableError(absl::StrCat("the cells of collection ", collection.name(),
                                             " are not ready yet (", collection.cells(),
                                             "): try again later; nothing was spent"));
}

// Coordinates of another embedding than the anchors' cannot be ranked: ends the batch before the
// next charge. Depends on public numbers only.
absl::Status CheckCoordinates(const CellsOutcome& outcome) {
  const CellTarget& target = outcome.prepared.state.target;
  if (!target.label.has_value()) return absl::OkStatus();  // codes need no embedding
  for (const v1::RetrieveCellsResponse& message : outcome.response) {
    PM_RETURN_IF_ERROR(CheckEmbeddingVersion(message.embedding_version(), target));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t CellsOutcome::memory() const {
  size_t bytes = 0;
  for (const v1::RetrieveCellsResponse& message : response) bytes += message.SpaceUsedLong();
  return static_cast<int64_t>(bytes);
}

size_t CellsOutcome::bytes_down() const {
  size_t bytes = 0;
  for (const v1::RetrieveCellsResponse& message : response) bytes += message.ByteSizeLong();
  return bytes;
}

bool AreCellsReady(const v1::GetCollectionResponse& collection) {
  if (collection.cells_status() == v1::CELLS_STATUS_UNSPECIFIED) return collection.cells_ready();
  return collection.cells_status() == v1::CELLS_STATUS_READY;
}

std::string CellsStatusName(const v1::GetCollectionResponse& collection) {
  const std::string name = v1::CellsStatus_Name(collection.cells_status());
  if (collection.cells_status() == v1::CELLS_STATUS_UNSPECIFIED) return "";
  return absl::AsciiStrToLower(absl::StripPrefix(name, "CELLS_STATUS_"));
}

absl::StatusOr<CellQuality> QualityOf(const v1::GetCollectionResponse& c) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(c.parameters()));
  PM_RETURN_IF_ERROR(CheckHasAnchors(c.name(), parameters));
  if (c.parameters().cell_code() == v1::CELL_CODE_NONE) {
    return absl::FailedPreconditionError(absl::StrCat(
        "collection ", c.name(),
        " sends coordinates (--cell-code none): what queries for its cells find is not measured"));
  }
  if (!c.parameters().publish_quality()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "collection ", c.name(), " publishes no quality of cells: its operator creates it with ",
        c.parameters().cell_partitions().empty() ? "--cells and " : "", "--publish-quality"));
  }
  const std::string measured =
      absl::StrCat("the quality of the cells of collection ", c.name(), " is not measured yet: ");
  if (c.embedding_version() == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        measured, "the collection is not built: run `privatemail build ", c.name(), "`"));
  }
  if (c.cells_status() == v1::CELLS_STATUS_FAILED) return CheckReady(c);
  constexpr uint64_t kMaxItems = std::numeric_limits<int64_t>::max();
  if (const uint64_t most = std::min<uint64_t>(c.embedded_items(), kMaxItems);
      c.cells_items() > most) {
    return absl::DataLossError(absl::StrCat("collection ", c.name(),
                                            ": cells_items must be at most ", most, ", but is ",
                                            c.cells_items()));
  }
  if (AreCellsReady(c) && c.cells_items() < kMinQualityQueries) {
    return absl::FailedPreconditionError(
        absl::StrCat("the quality of cells is measured from ", kMinQualityQueries,
                     " items on, but collection ", c.name(), " has ", c.cells_items()));
  }
  if (!c.has_quality()) {
    return absl::UnavailableError(
        absl::StrCat(measured, "try again later; after many deletions `privatemail build ",
                     c.name(), "` measures again"));
  }
  auto quality = FromProto(c.quality(), static_cast<size_t>(c.parameters().cell_partitions_size()));
  if (quality.ok()) return quality;
  return absl::DataLossError(
      absl::StrCat("collection ", c.name(), ": ", quality.status().message()));
}

absl::StatusOr<std::vector<v1::RetrieveCellsResponse>> RetrieveCells(
    const Transport& transport, const v1::GetCollectionResponse& collection,
    const v1::RetrieveCellsRequest& request) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(collection.parameters()));
  PM_RETURN_IF_ERROR(CheckCellCode(true, parameters.cell_code.has_value()));
  return transport.RetrieveCells(request, [&] {
    return [limit = CellAnswerLimit(parameters, request)](
               const v1::RetrieveCellsResponse& message) mutable { return limit.Add(message); };
  });
}

absl::Status CheckPlanned(const std::string& fingerprint,
                          const v1::GetCollectionResponse& collection) {
  if (fingerprint.empty() || fingerprint == collection.fingerprint()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--plan was made for the public parameters ", ToHex(fingerprint), ", but collection ",
      collection.name(), " has others now: plan again with `privatemail plan`; nothing was spent"));
}

std::optional<int32_t> LabelOf(const NamedTarget& target) {
  if (target.guessed) return std::nullopt;
  return target.target.label;
}

absl::StatusOr<CellQueries> CellQueries::Fetch(const Transport& transport, QuerySettings settings,
                                               const std::string& collection, bool with_quality) {
  CellQueries queries(transport, std::move(settings));
  PM_ASSIGN_OR_RETURN(queries.collection_,
                      transport.GetCollection(collection, {.quality = with_quality}));
  return queries;
}

absl::StatusOr<int64_t> CellQueries::ItemsByQuality(const CellCost& cost) const {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(collection_.parameters()));
  PM_RETURN_IF_ERROR(CheckHasCells(collection_.name(), parameters));
  const absl::StatusOr<CellQuality> quality = QualityOf(collection_);
  if (absl::IsFailedPrecondition(quality.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("items must be given, the number of items to fetch, of which the nearest "
                     "are printed; its default is not known: ",
                     quality.status().message()));
  }
  PM_RETURN_IF_ERROR(quality.status());
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("partition", cost.partition, 0, std::ssize(quality->partitions) - 1));
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", cost.epsilon));
  const int64_t cells =
      collection_.parameters().cell_partitions(static_cast<int>(cost.partition)).cells();
  PM_RETURN_IF_ERROR(CheckIntegerBetween("ask", cost.ask, 1, cells - 1));
  return std::min(cost.ask * DefaultItems(*quality, cost, cells),
                  static_cast<int64_t>(collection_.cells_items()));
}

absl::Status CellQueries::CreateClient(const std::optional<FloatMatrix>& own_anchors) {
  PM_ASSIGN_OR_RETURN(anchors_,
                      FetchAnchors(*transport_, collection_, Scheme::kCells, settings_.limits));
  PM_ASSIGN_OR_RETURN(client_,
                      CellClient::Create(collection_, anchors_, own_anchors, settings_.limits));
  return CheckReady(collection_);
}

std::vector<std::string> CellQueries::Warnings(const CellQueryOptions& options) const {
  std::vector<std::string> warnings;
  if (collection_.changes_since_embedding() > 0) {
    warnings.push_back(absl::StrCat("answers are from the last build; ",
                                    Counted(collection_.changes_since_embedding(), "change"),
                                    " since may be missing, except for deletions: `privatemail "
                                    "build ",
                                    collection_.name(), "` (write access) includes them"));
  }
  if (static_cast<uint64_t>(options.items) > collection_.embedded_items()) {
    warnings.push_back(absl::StrCat(options.items, " items are requested, but the gallery has ",
                                    collection_.embedded_items(), ": no more are returned"));
  }
  if (const absl::Status match = client_->targets().CheckAnchorsMatch(); !match.ok()) {
    warnings.emplace_back(match.message());
  }
  return warnings;
}

// Saves the request first, so that `explain` shows it even if no answer comes.
absl::Status CellQueries::Send(CellsOutcome* outcome) const {
  const v1::RetrieveCellsRequest& request = outcome->prepared.request;
  PM_RETURN_IF_ERROR(
      SaveLastRelease(settings_.state_folder,
                      {.scheme = Scheme::kCells, .collection = collection_, .cells = request}));
  outcome->saved = true;
  const auto start = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(outcome->response, RetrieveCells(*transport_, collection_, request));
  outcome->round_trip_ms = MillisecondsSince(start);
  return CheckCoordinates(*outcome);
}

absl::StatusOr<std::vector<CellsOutcome>> CellQueries::Run(const std::vector<NamedTarget>& targets,
                                                           const CellQueryOptions& options,
                                                           const WarnFunction& warn) const {
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(settings_.state_folder));
  PM_RETURN_IF_ERROR(CheckLastReleaseCanBeSaved(settings_.state_folder));
  const std::string& uuid = client_->parameters().collection_uuid;
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger->Show(uuid));
  PM_RETURN_IF_ERROR(CheckAffordable(collection_.name(), entry, targets.size(),
                                     {options.cost.epsilon, /*delta=*/0}));
  for (const std::string& warning : Warnings(options)) warn(warning);

  MemoryLimit answers(kBatchMemory, settings_.limits.max_memory);
  std::vector<CellsOutcome> outcomes = SendAll<CellsOutcome>(
      targets, *ledger,
      [&](CellsOutcome* outcome) {
        const auto prepare = [&](BitSource& bits) {
          return client_->Prepare(outcome->target.target.features, options, *ledger, bits,
                                  LabelOf(outcome->target));
        };
        return ChargeAndPrepare(uuid, *ledger, prepare, outcome);
      },
      [&](CellsOutcome* outcome) {
        PM_RETURN_IF_ERROR(Send(outcome));
        return answers.Reserve(outcome->memory());
      });
  for (CellsOutcome& outcome : outcomes) {
    ReadResult(&outcome, [&] { return client_->Finish(outcome.prepared, outcome.response); });
    outcome.status.Update(ReservePayloads(outcome.result.matches, &answers));
  }
  return outcomes;
}

}  // namespace privatemail::client
