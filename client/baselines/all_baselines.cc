#include "client/baselines/all_baselines.h"

namespace privatemail::client::baselines {
namespace {

using Result = absl::StatusOr<BaselineResult>;

constexpr Baseline kBaselines[] = {
    {"pca", false, kProtectsNothing,
     [](const DataSplit& split, const Settings& settings, const Cost&, BitSource&) -> Result {
       return Pca(split, settings.dimension);
     }},
    {"t-sne", false, kTsneProtects,
     [](const DataSplit& split, const Settings& settings, const Cost&, BitSource& bits) -> Result {
       return Tsne(split, settings.tsne, bits);
     }},
    {"analyse-gauss", true, kAnalyseGaussProtects,
     [](const DataSplit& split, const Settings& settings, const Cost& cost,
        BitSource& bits) -> Result { return AnalyseGauss(split, settings.dimension, cost, bits); }},
    {"published-ppca", true, kPpcaProtects,
     [](const DataSplit& split, const Settings& settings, const Cost& cost, BitSource& bits)
         -> Result { return PublishedPpca(split, settings.published_ppca, cost, bits); }},
    {"candidate-ppca", true, kPpcaProtects,
     [](const DataSplit& split, const Settings& settings, const Cost& cost, BitSource& bits)
         -> Result { return CandidatePpca(split, settings.candidate_ppca, cost, bits); }},
    {"random-projection", true, kRandomProjectionProtects,
     [](const DataSplit& split, const Settings& settings, const Cost& cost, BitSource& bits)
         -> Result { return RandomProjection(split, settings.dimension, cost, bits); }},
    {"dp-dsne", true, kDpDsneProtects,
     [](const DataSplit& split, const Settings& settings, const Cost& cost,
        BitSource& bits) -> Result { return DpDsne(split, settings.dp_dsne, cost, bits); }},
};

}  // namespace

Settings Settings::OfDimension(int64_t dimension) {
  Settings settings;
  settings.dimension = dimension;
  for (int64_t* each : {&settings.published_ppca.dimension, &settings.candidate_ppca.dimension,
                        &settings.tsne.dimension, &settings.dp_dsne.tsne.dimension}) {
    *each = dimension;
  }
  return settings;
}

absl::Span<const Baseline> AllBaselines() { return kBaselines; }

}  // namespace privatemail::client::baselines
