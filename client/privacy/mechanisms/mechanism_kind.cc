#include "privatemail/mechanism_kind.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/field_error.h"
#include "common/base/suggestion.h"

namespace privatemail::client {
namespace {

using Kind = MechanismKind;
using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

// In the order of the enumeration.
constexpr MechanismTraits kAll[] = {
    {Kind::kGaussian, "gaussian", Law::kGaussian, Protects::kValue, false,
     "Balle and Wang 2018, theorem 8"},
    {Kind::kPublishedGaussian, "published-gaussian", Law::kGaussian, Protects::kValue, true,
     "PrivateMail (second version), definition 3: as published, not a proven guarantee"},
    {Kind::kLaplace, "laplace", Law::kLaplace, Protects::kValue, false,
     "Dwork, McSherry, Nissim, Smith 2006, proposition 1"},
    {Kind::kPublishedLaplace, "published-laplace", Law::kLaplace, Protects::kValue, true,
     "Differentially Private Supervised Manifold Learning, corollary 1.1: as published, not a "
     "proven guarantee"},
    {Kind::kBoundedGaussian, "bounded-gaussian", Law::kBoundedGaussian, Protects::kValue, false,
     "bounded Gaussian, exact loss (PRIVACY.md section 6)"},
    {Kind::kPublishedBoundedGaussian, "published-bounded-gaussian", Law::kBoundedGaussian,
     Protects::kValue, true,
     "The Bounded Gaussian Mechanism, theorem 13: as published, not a proven guarantee"},
    {Kind::kLapOutput, "lap-output", Law::kLaplace, Protects::kOutput, false,
     "Inference Privacy, Lap-Output (theorem 1)"},
    {Kind::kGaussOutput, "gauss-output", Law::kGaussian, Protects::kOutput, false,
     "Inference Privacy, Gauss-Output, with the noise of Balle and Wang 2018, theorem 8"},
    {Kind::kPublishedGaussOutput, "published-gauss-output", Law::kGaussian, Protects::kOutput, true,
     "Inference Privacy, Gauss-Output: as published, not a proven guarantee"},
    {Kind::kGaussInput, "gauss-input", Law::kGaussian, Protects::kInput, false,
     "Inference Privacy, Gauss-Input, with the noise of Balle and Wang 2018, theorem 8"},
    {Kind::kPublishedGaussInput, "published-gauss-input", Law::kGaussian, Protects::kInput, true,
     "Inference Privacy, Gauss-Input: as published, not a proven guarantee"},
};

}  // namespace

absl::Span<const MechanismTraits> AllMechanisms() { return kAll; }

const MechanismTraits& TraitsOf(MechanismKind kind) { return kAll[static_cast<size_t>(kind)]; }

std::string MechanismNames() {
  return absl::StrJoin(kAll, ", ", [](std::string* out, const MechanismTraits& traits) {
    absl::StrAppend(out, traits.name);
  });
}

absl::Status CheckRadiusGiven(const MechanismTraits& traits, bool given) {
  const bool wanted = traits.protects != Protects::kValue;
  if (wanted == given) return absl::OkStatus();
  if (wanted) {
    return InvalidField("radius", absl::StrCat("must be given for ", traits.name));
  }
  std::vector<const char*> others;
  for (const MechanismTraits& other : kAll) {
    if (other.protects != Protects::kValue && !other.published) others.push_back(other.name);
  }
  return InvalidField("radius", absl::StrCat("is not accepted by ", traits.name,
                                             ": expected none, or one of the mechanisms ",
                                             absl::StrJoin(others, ", "), " with it"));
}

absl::StatusOr<MechanismKind> MechanismFromName(absl::string_view name) {
  std::vector<std::string> names;
  for (const MechanismTraits& traits : kAll) {
    if (name == traits.name) return traits.kind;
    names.emplace_back(traits.name);
  }
  return InvalidField("mechanism", absl::StrCat("must be one of ", MechanismNames(), ", but is \"",
                                                name, "\"", Suggestion(name, names)));
}

}  // namespace privatemail::client
