// Every baseline by name, so that an experiment can loop.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_ALL_BASELINES_H_
#define PRIVATEMAIL_CLIENT_BASELINES_ALL_BASELINES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/baselines/baseline.h"
#include "client/baselines/linear_baselines.h"
#include "client/baselines/ppca.h"
#include "client/baselines/tsne.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::baselines {

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

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_ALL_BASELINES_H_
