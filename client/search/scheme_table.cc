#include "client/search/scheme_table.h"

#include <algorithm>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/embedding/offered_schemes.h"

namespace privatemail::client {

const std::map<std::string, Scheme> kSchemeNames = {
    {"cells", Scheme::kCells}, {"encrypted", Scheme::kEncrypted}, {"joint", Scheme::kJoint}};

const std::string& NameOf(Scheme scheme) {
  return std::find_if(kSchemeNames.begin(), kSchemeNames.end(),
                      [&](const auto& named) { return named.second == scheme; })
      ->first;
}

Scheme DefaultScheme(const std::vector<std::string>& offered) {
  for (const Scheme scheme : {Scheme::kEncrypted, Scheme::kJoint}) {
    if (std::find(offered.begin(), offered.end(), NameOf(scheme)) != offered.end()) return scheme;
  }
  return Scheme::kCells;
}

namespace {

bool IsGiven(const RequestField& field, const SearchRequest& request) {
  return std::visit(
      [&](const auto& member) {
        using Member = std::decay_t<decltype(member)>;
        if constexpr (std::is_member_object_pointer_v<Member>) {
          return (request.*member).has_value();
        } else {
          return member(request);
        }
      },
      field.member);
}

bool HasLabel(const SearchRequest& request) {
  return std::any_of(request.targets.begin(), request.targets.end(),
                     [](const SearchTarget& target) {
                       return target.label.has_value() || target.label_text.has_value();
                     });
}

bool Takes(const RequestField& field, Scheme scheme) {
  return std::find(field.schemes.begin(), field.schemes.end(), scheme) != field.schemes.end();
}

}  // namespace

const std::vector<RequestField>& RequestFields() {
  using enum Scheme;
  using R = SearchRequest;
  static const std::vector<RequestField> kFields = {
      {"epsilon", &R::epsilon, {kCells, kJoint}, true},
      {"delta", &R::delta, {kJoint}, true},
      {"mechanism", [](const R& r) { return r.mechanism.has_value(); }, {kJoint}, true},
      {"radius", &R::radius, {kJoint}},
      {"private_iterations", &R::private_iterations, {kJoint}},
      {"post_process", [](const R& r) { return r.post_process.has_value(); }, {kJoint}},
      {"classes", &R::classes, {kJoint}},
      {"dummies", [](const R& r) { return r.dummies.has_value(); }, {kJoint}},
      {"own_anchors", [](const R& r) { return r.own_anchors.has_value(); }, {kJoint}},
      {"with_alignment", &R::with_alignment, {kJoint}},
      {"accept_misalignment", [](const R& r) { return r.accept_misalignment; }, {kJoint}},
      {"filter", [](const R& r) { return !r.filter.empty(); }, {kEncrypted, kJoint}},
      {"label", HasLabel, {kEncrypted, kJoint}},
      {"partition", &R::partition, {kCells}},
      {"ask", &R::ask, {kCells}},
      {"focus", &R::focus, {kCells}},
      {"items", &R::items, {kCells}}};
  return kFields;
}

absl::StatusOr<Scheme> ResolveScheme(const SearchRequest& request,
                                     const PublicParameters& parameters) {
  const Scheme scheme = request.scheme.value_or(DefaultScheme(OfferedSchemes(parameters)));
  for (const RequestField& field : RequestFields()) {
    if (!IsGiven(field, request) || Takes(field, scheme)) continue;
    std::vector<std::string> takers;
    for (const std::string& offered : OfferedSchemes(parameters)) {
      if (Takes(field, kSchemeNames.at(offered))) takers.push_back(offered);
    }
    if (request.scheme.has_value() || !field.is_cost || takers.empty()) {
      return InvalidField(field.name, absl::StrCat("does not apply to the scheme ", NameOf(scheme),
                                                   field.is_cost && scheme == Scheme::kEncrypted
                                                       ? ", which spends nothing"
                                                       : ""));
    }
    return FieldError(
        "scheme",
        absl::StrCat("given together with ", field.name, ", because the collection is searched by ",
                     NameOf(scheme),
                     ", which does not take it (those that do: ", absl::StrJoin(takers, ", "), ")"),
        "absent");
  }
  if (scheme != Scheme::kEncrypted && !request.epsilon.has_value()) {
    return FieldError("epsilon", absl::StrCat("given with the scheme ", NameOf(scheme)), "absent");
  }
  return scheme;
}

const SchemeEntry& EntryOf(Scheme scheme) {
  static const std::map<Scheme, SchemeEntry> kEntries = {{Scheme::kCells, CellsEntry()},
                                                         {Scheme::kEncrypted, EncryptedEntry()},
                                                         {Scheme::kJoint, JointEntry()}};
  return kEntries.at(scheme);
}

absl::StatusOr<SavedMessage> SchemeConnection::Reopen(const PublicParameters&, const LastSearch&,
                                                      const SearchTarget&,
                                                      std::optional<int64_t>) const {
  return absl::InternalError("no message of this scheme is saved");
}

}  // namespace privatemail::client
