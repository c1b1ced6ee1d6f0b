#include "client/audit/subjects.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/audit/cell_attack.h"
#include "client/audit/joint_attack.h"
#include "client/audit/mechanism_attacks.h"
#include "client/audit/request_attack.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"

namespace privatemail::client::audit {
namespace {

absl::StatusOr<Subject> OneMechanism(const std::string& mechanism, double epsilon,
                                     const std::optional<double>& delta) {
  const auto check_delta = [&](bool takes_delta) -> absl::Status {
    if (delta.value_or(0) == 0 || takes_delta) return absl::OkStatus();
    return InvalidField("delta", absl::StrCat("is not accepted by ", mechanism));
  };
  if (mechanism == "cells") {
    PM_RETURN_IF_ERROR(check_delta(/*takes_delta=*/false));
    return AttackCells(epsilon);
  }
  if (mechanism == "encrypted") {
    PM_RETURN_IF_ERROR(check_delta(/*takes_delta=*/false));
    return AttackEncryptedQueries();
  }
  PM_ASSIGN_OR_RETURN(const MechanismKind kind, MechanismFromName(mechanism));
  PM_RETURN_IF_ERROR(check_delta(TraitsOf(kind).TakesDelta()));
  return AttackProductionMechanism(kind, epsilon, delta.value_or(kDefaultDelta));
}

}  // namespace

absl::StatusOr<std::vector<CreateSubject>> Subjects(const std::string& mechanism, double epsilon,
                                                    const std::optional<double>& given) {
  const double delta = given.value_or(kDefaultDelta);
  if (std::isnan(delta)) {
    return InvalidField("delta", "must be a number, but is nan");
  }
  std::vector<CreateSubject> subjects;
  if (!mechanism.empty()) {
    subjects.push_back([=] { return OneMechanism(mechanism, epsilon, given); });
    return subjects;
  }
  for (const MechanismTraits& traits : AllMechanisms()) {
    subjects.push_back(
        [=, kind = traits.kind] { return AttackProductionMechanism(kind, epsilon, delta); });
  }
  for (const PrivacyCost& cost : AuditedJointCosts(epsilon, delta)) {
    subjects.push_back([cost] { return AttackJointRelease(cost); });
  }
  subjects.push_back([=] { return AttackCells(epsilon); });
  subjects.push_back([=] { return AttackCellRequest(epsilon); });
  subjects.push_back([=] { return AttackJointRequest(epsilon, delta); });
  subjects.push_back([] { return AttackEncryptedQueries(); });
  return subjects;
}

}  // namespace privatemail::client::audit
