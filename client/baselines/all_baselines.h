// Table of the baselines.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_ALL_BASELINES_H_
#define PRIVATEMAIL_CLIENT_BASELINES_ALL_BASELINES_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/baselines/baseline.h"
#include "client/baselines/linear_baselines.h"
#include "client/baselines/ppca.h"
#include "client/baselines/tsne.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::baselines {

// The options of all of them; each looks at its own.
struct Settings {
  int64_t dimension = 2;  // of the linear baselines
  PublishedPpcaOptions published_ppca;
  CandidatePpcaOptions candidate_ppca;
  TsneOptions tsne;
  DpDsneOptions dp_dsne;

  // One dimension for all of them.
  static Settings OfDimension(int64_t dimension);
};

struct Baseline {
  const char* name;
  bool takes_epsilon;    // false: one run serves every epsilon
  const char* protects;  // a sentence: what is hidden, from whom, and what is not
  absl::StatusOr<BaselineResult> (*run)(const DataSplit& split, const Settings& settings,
                                        const Cost& cost, BitSource& bits);
};

// "pca" and "t-sne" without privacy; "analyse-gauss", "published-ppca", "candidate-ppca",
// "random-projection" and "dp-dsne".
absl::Span<const Baseline> AllBaselines();

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_ALL_BASELINES_H_
