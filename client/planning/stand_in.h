// Simulated collections made of public anchors, and the retrieval statistics of queries to them.
#ifndef PRIVATEMAIL_CLIENT_PLANNING_STAND_IN_H_
#define PRIVATEMAIL_CLIENT_PLANNING_STAND_IN_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"
#include "common/cells/cell_lists.h"

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
  // knows (common/cells/cell_lists.h).
  std::vector<std::vector<int64_t>> nearest;
  std::vector<Asker> held_out;  // anchors that are no items
  std::vector<Asker> known;     // as many items: what a server has fitted its lists to
};

// Each stand-in has nine tenths of the anchors as items and the others as held-out queries; over
// ten stand-ins every anchor is held out once. Deterministic. anchors: n x d, at least 2. decoded:
// as items come back. neighbours: in StandIn::nearest. O(min(n, kMostStandIns)^2 d) time.
std::vector<StandIn> MakeStandIns(const Matrix& anchors, const Matrix& decoded, int64_t neighbours);

// A mean in the making.
struct RunningMean {
  double count = 0;
  double sum = 0;

  void Add(double value) {
    count += 1;
    sum += value;
  }
  void Add(const RunningMean& more, double sign) {
    count += sign * more.count;
    sum += sign * more.sum;
  }
  double mean() const { return count > 0 ? sum / count : 0; }
};

// Whether the first that come back, by their codes, are of the asker's class.
struct Likeness {
  RunningMean one;   // 1: it is
  RunningMean both;  // of each two of them; 1: both are

  void Add(const Likeness& more, double sign) {
    one.Add(more.one, sign);
    both.Add(more.both, sign);
  }
};

struct Found {
  RunningMean held_out_fidelity;
  RunningMean known_fidelity;
  Likeness own;  // by those held out, of lists of their own cell
  Likeness other;

  // sign -1: takes it away.
  void Add(const Found& more, double sign = 1);
};

// How long the lists of a stand-in are for one number of items that answer.
struct ListLengths {
  double fidelity = 0;  // a part of an item finds that part of what it would
  int64_t own = 0;      // for likeness: of the asker's own cell, and of another
  int64_t other = 0;
};

// Queries to a stand-in.
struct StandInAsk {
  const ItemCells& lie;                // of the anchors
  const std::vector<int32_t>& labels;  // of the anchors
  int64_t cells = 0;
  double epsilon = 0;
  double own = 0;             // probability that the own cell is asked for
  double ranks_per_fold = 0;  // of demand (common/cells/cell_lists.h)
  // Fidelity: share of so many nearest items that are among as many first, by their codes, of what
  // comes back; need not be whole.
  double k = 0;
  int64_t alike = 0;  // of the first that come back, whose likeness counts; at least 1
  std::vector<ListLengths> lengths;
};

// One for each of ask.lengths.
std::vector<Found> AskStandIn(const StandIn& stand_in, const StandInAsk& ask);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PLANNING_STAND_IN_H_
