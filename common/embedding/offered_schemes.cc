#include "common/embedding/offered_schemes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

absl::Status Lacks(absl::string_view collection, absl::string_view what,
                   const PublicParameters& parameters) {
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
  if (parameters.HasAnchors()) return absl::OkStatus();
  return Lacks(collection, "anchors", parameters);
}

absl::Status CheckHasClasses(absl::string_view collection, const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckHasAnchors(collection, parameters));
  if (parameters.HasClasses()) return absl::OkStatus();
  return Lacks(collection, "classes, since its anchors have no labels", parameters);
}

absl::Status CheckHasCells(absl::string_view collection, const PublicParameters& parameters) {
  if (!parameters.cell_partitions.empty()) return absl::OkStatus();
  return Lacks(collection, "cells", parameters);
}

absl::Status CheckHasEncrypted(absl::string_view collection, const PublicParameters& parameters) {
  if (parameters.with_encrypted) return absl::OkStatus();
  return Lacks(collection, "encrypted rows", parameters);
}

}  // namespace privatemail
