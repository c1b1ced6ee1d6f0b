// The anchored scheme (PRIVACY.md section 5): exact anchor coordinates from public rows, and noise
// on the slots' rows only.
#ifndef PRIVATEMAIL_ANCHORED_SCHEME_H_
#define PRIVATEMAIL_ANCHORED_SCHEME_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/bit_source.h"
#include "privatemail/guarantee.h"
#include "privatemail/joint_scheme.h"
#include "privatemail/ledger.h"

namespace privatemail::client {

// The output of a release: safe to publish as a whole.
//
// | mechanism                             | hidden                                       |
// | gaussian, laplace, bounded-gaussian   | the target, feature and class                |
// | lap-output, gauss-output              | features within the radius; not the class    |
//
// Public under every mechanism: the collection, the anchors, the mechanism and its parameters, and
// that a query was made.
struct AnchoredRelease {
  // (C slots + anchors) x embedding_dim, finished coordinates: per slot in the order of slot_labels
  // the posterior mean given its noisy row, then the anchors' public coordinates.
  FloatMatrix rows;
  // C x embedding_dim: the slots' noisy rows, the source of `rows`. Scaled: a neighbour moves the
  // row of its slot by at most 1.
  FloatMatrix noisy_slots;
  Guarantee guarantee;
  double sensitivity = 0;   // L1 or L2, of all scaled rows together
  double noise_stddev = 0;  // per scaled entry; of the untruncated law where values are in a box
};

struct AnchoredSetting;

// The public side of a collection, prepared for any number of releases. Immutable, thread-safe.
// Held by the client; sees a target only while AllotClasses or Release runs.
class AnchoredScheme {
 public:
  // Arguments and errors as JointScheme::Create. FAILED_PRECONDITION also: no bound is proven for
  // these parameters, or the anchors' coordinates cannot be aligned: they vanish, overflow or lie
  // on a line. DEADLINE_EXCEEDED also: embedding the anchors, or the slots' rows of a release.
  static absl::StatusOr<AnchoredScheme> Create(PublicParameters parameters, const Anchors& anchors,
                                               const std::optional<Anchors>& dummies = std::nullopt,
                                               const ClientLimits& limits = ClientLimits::None());

  const PublicParameters& parameters() const;

  // See JointScheme.
  absl::StatusOr<std::vector<ClassPlaces>> AllotClasses(const Eigen::RowVectorXf& features,
                                                        int64_t k, int64_t classes) const;
  const ClassRanker& class_ranker() const;
  RadiusStats DescribeRadius(double radius) const;
  // Of a release of nothing but noise, whose slots are their classes' mean coordinates.
  // server_anchors: P x embedding_dim. Errors of KabschUmeyama.
  absl::StatusOr<ExpectedAlignment> ExpectAlignment(const Matrix& server_anchors) const;

  // One release, in this order:
  //   1. the noise's parameters, from public values;
  //   2. one dummy per slot, drawn independently of the target;
  //   3. the ledger's charge, durable before any noise is sampled;
  //   4. the slots' noisy rows and their post-processing.
  // INVALID_ARGUMENT: features or label, a cost out of range, private_iterations other than 1, or a
  //   mechanism outside the table of AnchoredRelease. Input noise would leave the dummies' rows
  //   exact; the printed sensitivities are of the joint release.
  // Otherwise as JointScheme::Release.
  absl::StatusOr<AnchoredRelease> Release(const Target& target, const PrivacyCost& cost,
                                          Ledger& ledger, BitSource& bits) const;

 private:
  explicit AnchoredScheme(std::shared_ptr<const AnchoredSetting> setting)
      : setting_(std::move(setting)) {}

  std::shared_ptr<const AnchoredSetting> setting_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_ANCHORED_SCHEME_H_
