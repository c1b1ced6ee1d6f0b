// What every baseline of the evaluation takes and gives.
//
// A baseline turns features into rows that are ranked: for each target row the gallery rows, by
// Euclidean distance. Each says in its own header what it protects, against whom, which neighbours
// its guarantee speaks of and where its formula is from; all_baselines.h lists them by name. They
// exist to be compared with: nothing here charges a ledger, and nothing here is sent to a server.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_BASELINE_H_
#define PRIVATEMAIL_CLIENT_BASELINES_BASELINE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/evaluation/dataset.h"
#include "privatemail/guarantee.h"
#include "common/base/matrix.h"

namespace privatemail::client::baselines {

// What the whole of a baseline's release may cost. Those without privacy ignore it, and those that
// are pure ignore delta.
struct Cost {
  double epsilon = 0;
  double delta = 0;
};

struct BaselineResult {
  Matrix gallery = {};        // n x k, row i is gallery row i of the split
  Matrix targets = {};        // m x k, row i is target row i of the split
  Guarantee guarantee = {};   // epsilon infinite where nothing is promised
  std::string protects = {};  // a sentence: what is hidden, from whom, and what is not
};

// Epsilon infinite, which Validate refuses: what promises nothing composes with nothing.
Guarantee NoGuarantee();

// INVALID_ARGUMENT naming what is wrong, unless gallery and targets have rows, of as many columns
// each, and dimension lies between 1 and that number.
absl::Status CheckSplit(const DataSplit& split, int64_t dimension);

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_BASELINE_H_
