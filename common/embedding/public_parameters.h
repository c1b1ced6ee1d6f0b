// What both sides must agree on, and its fingerprint.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_PUBLIC_PARAMETERS_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_PUBLIC_PARAMETERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/matrix.h"
#include "common/embedding/smlq.h"
#include "common/cells/cell_code.h"
#include "common/cells/cell_partition.h"
#include "common/cells/product_codebook.h"

namespace privatemail {

// Most classes of a collection. Either side keeps a table of them by themselves.
inline constexpr int64_t kMaxSlots = 10000;

// Longest text of a kind, in bytes. Every answer that tells of a collection repeats them.
inline constexpr size_t kMaxExtractorBytes = 1024;
inline constexpr size_t kMaxClassNameBytes = 256;

// Public feature vectors that client and server share. Public.
struct Anchors {
  FloatMatrix features;  // n x d, as the operator gave them; both sides scale rows to length 1
  std::vector<int32_t> labels;  // n
};

// Mirrors v1.PublicParameters, checked.
struct PublicParameters {
  std::string collection_uuid;
  EmbeddingSettings settings;
  int64_t feature_dim = 0;
  std::string extractor;
  std::vector<int32_t> slot_labels;      // C, ascending: the distinct labels of the anchors
  std::vector<std::string> class_names;  // C or none
  int64_t anchor_count = 0;
  std::string anchor_digest;  // 32 bytes
  std::vector<CellPartition> cell_partitions;
  std::optional<CellCode> cell_code;             // exactly where there are partitions
  std::optional<ProductCodebook> cell_codebook;  // exactly where the code is a product code

  // Whether what leaves of items for cells are their coordinates in the server's embedding.
  bool SendsCoordinates() const { return cell_code == CellCode::kNone; }
  // "heron", or "3" where classes have no names. slot < C.
  std::string ClassName(int64_t slot) const;
  // Slot of a label, NOT_FOUND when no class of the collection has it; the message names the range.
  absl::StatusOr<int64_t> SlotOf(int32_t label) const;
};

// INVALID_ARGUMENT: cells without a code or a code without cells.
absl::Status CheckCellCode(bool has_cells, bool has_code);

// SHA-256 over each row's features as little-endian float32 and its label as little-endian int32.
std::string DigestOf(const Anchors& anchors);

// Parameters of a new collection. INVALID_ARGUMENT naming the field: bad settings, a label count
// other than the row count, fewer than embedding_dim + 1 anchors, a zero or non-finite anchor,
// fewer than two classes or more than kMaxSlots, class names that are neither none nor one for each
// distinct label, or of which two are the same, an empty extractor, a text that is too long, a
// partition or a codebook that is none.
absl::StatusOr<PublicParameters> MakePublicParameters(
    std::string collection_uuid, const EmbeddingSettings& settings, const Anchors& anchors,
    std::vector<std::string> class_names, std::string extractor,
    std::vector<CellPartition> cell_partitions = {},
    std::optional<CellCode> cell_code = std::nullopt,
    std::optional<ProductCodebook> cell_codebook = std::nullopt);

// SHA-256 of the canonical text: the line "privatemail public parameters 1", then for every field
// of the struct, in its order and settings spelled out in theirs, a line "name value". Doubles are
// written with C's %a, lists as a count and one line an element, strings as their byte length, a
// space and their bytes. Partitions into cells, their code and its codebook (the line
// "cell_codebook", rows and columns; "centroids", a string of little-endian floats, row after row;
// its error) stand last, and not at all where there are none: a collection from before there were
// any keeps its fingerprint. Two collections have equal fingerprints only if they agree in
// everything.
std::string Fingerprint(const PublicParameters& parameters);

// Lower-case hex, for messages and people.
std::string ToHex(absl::string_view bytes);

// INVALID_ARGUMENT naming the field when parts do not fit together: slot labels, class names, anchor
// count, partitions, code and codebook. Settings have a check of their own.
absl::Status Validate(const PublicParameters& parameters);
// INVALID_ARGUMENT: a text is longer than its limit, or two class names are equal. Collections made
// before these limits are exempt.
absl::Status ValidateTexts(const PublicParameters& parameters);

// OK when `theirs` (from a request) is the fingerprint `ours`; otherwise FAILED_PRECONDITION naming
// both, or the length of one that is none.
absl::Status CheckFingerprint(absl::string_view ours, absl::string_view theirs);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_PUBLIC_PARAMETERS_H_
