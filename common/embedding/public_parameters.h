// The public parameters of a collection and their fingerprint.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_PUBLIC_PARAMETERS_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_PUBLIC_PARAMETERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/cells/cell_code.h"
#include "common/cells/cell_partition.h"
#include "common/cells/product_codebook.h"
#include "common/embedding/smlq.h"

namespace privatemail {

// Maximum number of classes. A release has a row for each. Their points in the class code are more
// than 1,000 roundings of single precision apart (smlq_test.cc).
inline constexpr int64_t kMaxSlots = 10000;

// Maximum k of a query. The client checks it before it spends a budget.
inline constexpr int64_t kMaxNeighbors = 10000;

// Maximum lengths in bytes; every description of a collection repeats these texts.
inline constexpr size_t kMaxExtractorBytes = 1024;
inline constexpr size_t kMaxClassNameBytes = 256;

// By what searchers of the scheme `encrypted` rank items. Numbers are those of v1.Metric.
enum class Metric { kCosine = 1, kDot = 2, kEuclidean = 3 };

// Public feature vectors that client and server share.
struct Anchors {
  FloatMatrix features;         // n x d as uploaded; both sides scale rows to length 1
  std::vector<int32_t> labels;  // n, or none
};

// A validated v1.PublicParameters. A collection has anchors with labels, anchors without labels or
// no anchors. Which schemes it offers: offered_schemes.h.
struct PublicParameters {
  std::string collection_uuid;
  EmbeddingSettings settings;  // unused without anchors
  int64_t feature_dim = 0;     // without anchors 0 until the first item fixes it
  std::string extractor;
  std::vector<int32_t> slot_labels;  // C, ascending: the distinct labels of the anchors, or none
  // C or none. Without classes label i of an item is called class_names[i], and uploads append to
  // them.
  std::vector<std::string> class_names;
  int64_t anchor_count = 0;
  std::string anchor_digest;  // 32 bytes
  std::vector<CellPartition> cell_partitions;
  std::optional<CellCode> cell_code;             // set if and only if there are partitions
  std::optional<ProductCodebook> cell_codebook;  // set if and only if the code is a product code
  bool publish_quality = false;                  // common/cells/cell_quality.h
  Metric metric = Metric::kCosine;
  bool with_encrypted = false;  // always without anchors

  bool HasAnchors() const { return anchor_count > 0; }
  bool HasClasses() const { return !slot_labels.empty(); }
  // "lime", or the label "3" if classes have no names. slot < C.
  std::string ClassName(int64_t slot) const;
  // The name of a label, or nullopt.
  std::optional<std::string> NameOf(int32_t label) const;
  // The slot of a label. NOT_FOUND: no class has it; the message names the range, or says that
  // there are no classes.
  absl::StatusOr<int64_t> SlotOf(int32_t label) const;
};

// INVALID_ARGUMENT: cells without a code, or a code without cells.
absl::Status CheckCellCode(bool has_cells, bool has_code);

// SHA-256 over each row: features as little-endian float32, then the label, if rows have labels, as
// little-endian int32.
std::string DigestOf(const Anchors& anchors);

// The parameters of a new collection with anchors; publish_quality, metric and with_encrypted have
// their defaults. INVALID_ARGUMENT naming the field:
// - settings out of range, an empty extractor, a text that is too long
// - anchors: fewer than embedding_dim + 1, a zero or non-finite row, a label count other than 0 and
//   the row count
// - with labels: fewer than two classes or more than kMaxSlots; embedding_dim of them or more with
//   the label graph kBalanced or the start kClasses
// - without labels: settings or a code that need classes (Validate)
// - class names: with labels neither none nor one for each distinct label, or two the same
// - an invalid partition or codebook
absl::StatusOr<PublicParameters> MakePublicParameters(
    std::string collection_uuid, const EmbeddingSettings& settings, const Anchors& anchors,
    std::vector<std::string> class_names, std::string extractor,
    std::vector<CellPartition> cell_partitions = {},
    std::optional<CellCode> cell_code = std::nullopt,
    std::optional<ProductCodebook> cell_codebook = std::nullopt);

// The parameters of a new collection without anchors, whose first item fixes feature_dim.
// INVALID_ARGUMENT naming the field: the extractor is empty or too long, or class names are.
absl::StatusOr<PublicParameters> MakeParametersWithoutAnchors(
    std::string collection_uuid, std::string extractor, Metric metric,
    std::vector<std::string> class_names = {});

// SHA-256 of the canonical text. Collections have equal fingerprints only if they agree in every
// field but the names of a collection without classes: uploads append to them, and no release
// depends on them. The text is the line "privatemail public parameters 1", then a line "name value"
// for each field of the struct in order (settings spelled out in theirs, and left out without
// anchors):
// - doubles as C's %a
// - lists as a count, then one line an element; class_names as none without classes
// - strings as byte length, space, bytes
// - code and codebook only if they are set; a codebook is "cell_codebook" rows columns, then
//   "centroids", a string of little-endian floats row by row, then its error
// - enums and booleans as their numbers
std::string Fingerprint(const PublicParameters& parameters);

// Lower-case hex, for messages.
std::string ToHex(absl::string_view bytes);

// INVALID_ARGUMENT naming the field: the fields do not fit together, a text exceeds its limit, or
// class names are equal, empty, not printable or, without classes, more than 1 MiB in all. Does not
// validate the settings alone, but with anchors without labels they must be alpha 0, the label
// graph kDistance and the start kRandom.
absl::Status Validate(const PublicParameters& parameters);

// FAILED_PRECONDITION unless `theirs` (from a request) equals the fingerprint `ours`. The message
// names both, or the length of `theirs` if it is not that of a fingerprint.
absl::Status CheckFingerprint(absl::string_view ours, absl::string_view theirs);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_PUBLIC_PARAMETERS_H_
