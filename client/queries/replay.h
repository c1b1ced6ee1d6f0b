// Sends the last release again, at no cost.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_REPLAY_H_
#define PRIVATEMAIL_CLIENT_QUERIES_REPLAY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/queries/last_release.h"
#include "client/queries/query_batch.h"
#include "privatemail/cell_client.h"
#include "privatemail/transport.h"

namespace privatemail::client {

inline constexpr int64_t kDefaultMatches = 8;

// Sends a joint release again; k: by default as before. Returns the matches of the
// class. INVALID_ARGUMENT: k, or no class of the collection. Otherwise as Transport::Retrieve.
absl::StatusOr<QueryResult> ResendJoint(const Transport& transport, const QuerySettings& settings,
                                        const LastRelease& last, int32_t label,
                                        std::optional<int64_t> k);

struct RankedItems {
  CellTarget target;
  CellQueryResult result;
};

// Sends a release for cells again. The caller gives the target again: no saved file names it.
// own_anchors: see CellClient. Errors of CellTargetFactory and RetrieveCells.
absl::StatusOr<RankedItems> ResendCells(const Transport& transport, const QuerySettings& settings,
                                        const LastRelease& last, const NamedTarget& target,
                                        int64_t k, const std::optional<FloatMatrix>& own_anchors);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_REPLAY_H_
