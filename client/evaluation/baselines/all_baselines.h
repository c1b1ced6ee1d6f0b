// Every baseline by name, so that an experiment can loop.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_BASELINES_ALL_BASELINES_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_BASELINES_ALL_BASELINES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/evaluation/baselines/analyse_gauss.h"
#include "client/evaluation/baselines/baseline.h"
#include "client/evaluation/baselines/dp_dsne.h"
#include "client/evaluation/baselines/non_private.h"
#include "client/evaluation/baselines/ppca.h"
#include "client/evaluation/baselines/random_projection.h"
#include "client/evaluation/baselines/tsne.h"
#include "client/privacy/bit_source.h"

namespace privatemail::baselines {

// The options of all of them; each looks at its own.
struct Settings {
  PcaOptions pca;
  AnalyseGaussOptions analyse_gauss;
  PublishedPpcaOptions published_ppca;
  CandidatePpcaOptions candidate_ppca;
  RandomProjectionOptions random_projection;
  TsneOptions tsne;
  DpDsneOptions dp_dsne;

  // One dimension for all of them.
  static Settings OfDimension(int64_t dimension);
};

struct Baseline {
  const char* name;
  bool takes_epsilon;    // false: one run serves every epsilon
  bool draws_bits;       // false: one run serves every seed
  const char* protects;  // as its results say
  absl::StatusOr<BaselineResult> (*run)(const DataSplit& split, const Settings& settings,
                                        const Cost& cost, BitSource& bits);
};

// "features", "pca", "t-sne" and "random-guess" without privacy; "analyse-gauss",
// "published-ppca", "candidate-ppca", "random-projection" and "dp-dsne".
absl::Span<const Baseline> AllBaselines();

// INVALID_ARGUMENT listing all for another name.
absl::StatusOr<const Baseline*> BaselineFromName(absl::string_view name);

}  // namespace privatemail::baselines

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_BASELINES_ALL_BASELINES_H_
