// A collection in small, made of its public anchors alone: some of them stand in for its items, and
// others, which are not among these, for the queries that will come.
#ifndef PRIVATEMAIL_CLIENT_PLANNING_STAND_IN_H_
#define PRIVATEMAIL_CLIENT_PLANNING_STAND_IN_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail::client {

// Of more anchors as many, evenly spaced, stand for all.
inline constexpr int64_t kMostStandIns = 4000;
// Of each stand-in.
inline constexpr int64_t kMostAskers = 200;

// One who asks a stand-in: an anchor, and how far the items are from it. All items but itself, as
// places in StandIn::items, nearest first.
struct Asker {
  int64_t anchor = 0;
  std::vector<int32_t> items;
  std::vector<int32_t> by_codes;  // as they come back
};

struct StandIn {
  std::vector<int64_t> items;  // anchors, ascending
  // Of each item the places of the others, nearest first, as many as were asked for: what a server
  // knows (common/cells/demand.h).
  std::vector<std::vector<int64_t>> nearest;
  std::vector<Asker> held_out;  // anchors that are no items
  std::vector<Asker> known;     // as many items: what a server has fitted its lists to
};

// Nine in ten anchors are the items of each stand-in, the others its held-out askers: of ten
// stand-ins, where there are as many anchors, every anchor is held out once. Which ones is settled
// by their number: anchors may lie in an order that classes have. Public, deterministic.
//
// anchors: n x d, at least 2. decoded: the same, as they come back as items. neighbours: in
// StandIn::nearest, or all that there are. O(min(n, kMostStandIns)^2 d) time.
std::vector<StandIn> MakeStandIns(const Matrix& anchors, const Matrix& decoded, int64_t neighbours);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PLANNING_STAND_IN_H_
