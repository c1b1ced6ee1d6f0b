// What those who ask a stand-in find in it.
#ifndef PRIVATEMAIL_CLIENT_PLANNING_FOUND_H_
#define PRIVATEMAIL_CLIENT_PLANNING_FOUND_H_

#include <cstdint>
#include <vector>

#include "client/planning/stand_in.h"
#include "common/cells/cell_lists.h"

namespace privatemail::client {

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

// What is asked of a stand-in.
struct StandInAsk {
  const ItemCells& lie;                // of the anchors
  const std::vector<int32_t>& labels;  // of the anchors
  int64_t cells = 0;
  double epsilon = 0;
  double own = 0;             // probability that the own cell is asked for
  double ranks_per_fold = 0;  // of demand (common/cells/demand.h)
  // Fidelity: share of so many nearest items that are among as many first, by their codes, of what
  // comes back; need not be whole.
  double k = 0;
  int64_t alike = 0;  // of the first that come back, whose likeness counts; at least 1
  std::vector<ListLengths> lengths;
};

// One for each of ask.lengths.
std::vector<Found> AskStandIn(const StandIn& stand_in, const StandInAsk& ask);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PLANNING_FOUND_H_
