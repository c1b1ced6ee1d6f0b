#include "common/embedding/offered_schemes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

absl::Status CheckHas(bool has, absl::string_view collection, absl::string_view what,
                      const PublicParameters& parameters) {
  if (has) return absl::OkStatus();
  const std::vector<std::string> schemes = OfferedSchemes(parameters);
  return absl::FailedPreconditionError(
      absl::StrCat("collection ", collection, " has no ", what, ": it offers the scheme",
                   schemes.size() == 1 ? " " : "s ", absl::StrJoin(schemes, ", ")));
}

}  // namespace

std::vector<std::string> OfferedSchemes(const PublicParameters& parameters) {
  std::vector<std::string> schemes;
  if (parameters.HasClasses()) schemes = {"joint"};
  if (!parameters.cell_partitions.empty()) schemes.emplace_back("cells");
  if (parameters.with_encrypted) schemes.emplace_back("encrypted");
  return schemes;
}

absl::Status CheckHasAnchors(absl::string_view collection, const PublicParameters& parameters) {
  return CheckHas(parameters.HasAnchors(), collection, "anchors", parameters);
}

absl::Status CheckHasClasses(absl::string_view collection, const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckHasAnchors(collection, parameters));
  return CheckHas(parameters.HasClasses(), collection, "classes, since its anchors have no labels",
                  parameters);
}

absl::Status CheckHasCells(absl::string_view collection, const PublicParameters& parameters) {
  return CheckHas(!parameters.cell_partitions.empty(), collection, "cells", parameters);
}

absl::Status CheckHasEncrypted(absl::string_view collection, const PublicParameters& parameters) {
  return CheckHas(parameters.with_encrypted, collection, "encrypted rows", parameters);
}

absl::Status NotBuilt(absl::string_view collection) {
  return FieldError(absl::StatusCode::kFailedPrecondition, "embedding",
                    absl::StrCat("of collection ", collection, " is not built yet"), "");
}

}  // namespace privatemail
