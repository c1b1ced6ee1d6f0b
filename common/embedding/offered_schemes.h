// The schemes that a collection offers by its public parameters.
//
// Used by both sides, so that a query is refused for the same reason before and after it is sent.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_OFFERED_SCHEMES_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_OFFERED_SCHEMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/embedding/public_parameters.h"

namespace privatemail {

//   | scheme    | offered with        |
//   |-----------|---------------------|
//   | joint     | anchors with labels |
//   | cells     | cell partitions     |
//   | encrypted | with_encrypted      |
std::vector<std::string> OfferedSchemes(const PublicParameters& parameters);

// FAILED_PRECONDITION naming what the collection of this name lacks, and the schemes that it
// offers.
absl::Status CheckHasAnchors(absl::string_view collection, const PublicParameters& parameters);
absl::Status CheckHasClasses(absl::string_view collection, const PublicParameters& parameters);
absl::Status CheckHasCells(absl::string_view collection, const PublicParameters& parameters);
absl::Status CheckHasEncrypted(absl::string_view collection, const PublicParameters& parameters);

// FAILED_PRECONDITION naming the field embedding: front ends add how to build it.
absl::Status NotBuilt(absl::string_view collection);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_OFFERED_SCHEMES_H_
