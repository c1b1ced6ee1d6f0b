// Labelled vectors, and how an experiment shares them out.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_DATASET_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail::client {

// Rows of length 1 with a label each.
struct LabelledRows {
  Matrix features;                            // n x d
  std::vector<int32_t> labels;                // n
  std::vector<std::string> class_names = {};  // by label, where classes have names; or empty
};

// The three parties' rows of one experiment; no row is in two of them.
struct DataSplit {
  LabelledRows anchors;  // public
  LabelledRows gallery;  // the server's
  LabelledRows targets;  // the searchers', never from the gallery
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_DATASET_H_
