#include "client/search/readiness.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/planning/published_quality.h"
#include "common/base/cancellation.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"

namespace privatemail::client {
namespace {

std::optional<double> CellsShare(const v1::GetCollectionResponse& c) {
  return c.has_cells_share() ? std::optional(c.cells_share()) : std::nullopt;
}

// The part that is not ready yet; nullopt: all is ready.
absl::StatusOr<std::optional<Awaited>> AwaitedOf(const v1::GetCollectionResponse& c) {
  if (c.has_build_share()) return Awaited{"the build", c.build_share()};
  if (c.parameters().anchor_count() == 0) return std::nullopt;
  if (c.embedding_version() == 0) return NotBuilt(c.name());
  if (c.parameters().cell_partitions().empty()) return std::nullopt;
  const absl::Status cells = CheckCellsReady(c);
  if (absl::IsUnavailable(cells)) return Awaited{"the cells", CellsShare(c)};
  PM_RETURN_IF_ERROR(cells);
  // Measured once after a build, and withheld once a twentieth of the items is deleted.
  const bool withheld = c.changes().deleted() * 20 > c.embedded_items();
  if (absl::IsUnavailable(QualityOf(c).status()) && !withheld) {
    return Awaited{"the quality of the cells", CellsShare(c)};
  }
  if (c.has_cells_share()) return Awaited{"the cells of the latest build", c.cells_share()};
  return std::nullopt;
}

}  // namespace

absl::StatusOr<v1::GetCollectionResponse> WaitUntilReady(
    const Transport& transport, const std::string& collection,
    const std::function<void(const Awaited& awaited)>& show) {
  while (true) {
    PM_ASSIGN_OR_RETURN(v1::GetCollectionResponse c,
                        transport.GetCollection(collection, {.changes = true, .quality = true}));
    PM_ASSIGN_OR_RETURN(const std::optional<Awaited> awaited, AwaitedOf(c));
    if (!awaited.has_value()) return c;
    show(*awaited);
    PM_RETURN_IF_ERROR(CheckNotCancelled([&] { return transport.is_cancelled(); }));
    absl::SleepFor(absl::Milliseconds(500));
  }
}

}  // namespace privatemail::client
