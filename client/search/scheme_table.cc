#include "client/search/scheme_table.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/search/cells/cells_entry.h"
#include "client/search/encrypted/encrypted_entry.h"
#include "client/search/joint/joint_entry.h"
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

// A field that some schemes take.
struct Field {
  const char* name;
  bool given;
  std::vector<Scheme> schemes;
  bool is_cost = false;
};

std::vector<Field> FieldsOf(const SearchRequest& r) {
  using enum Scheme;
  return {{"epsilon", r.epsilon.has_value(), {kCells, kJoint}, true},
          {"delta", r.delta.has_value(), {kJoint}, true},
          {"mechanism", r.mechanism.has_value(), {kJoint}, true},
          {"radius", r.radius.has_value(), {kJoint}},
          {"private_iterations", r.private_iterations.has_value(), {kJoint}},
          {"post_process", r.post_process.has_value(), {kJoint}},
          {"classes", r.classes.has_value(), {kJoint}},
          {"dummies", r.dummies.has_value(), {kJoint}},
          {"own_anchors", r.own_anchors.has_value(), {kJoint}},
          {"with_alignment", r.with_alignment.has_value(), {kJoint}},
          {"accept_misalignment", r.accept_misalignment, {kJoint}},
          {"filter", !r.filter.empty(), {kEncrypted, kJoint}},
          {"label",
           std::any_of(r.targets.begin(), r.targets.end(),
                       [](const SearchTarget& target) { return target.label.has_value(); }),
           {kEncrypted, kJoint}},
          {"partition", r.partition.has_value(), {kCells}},
          {"ask", r.ask.has_value(), {kCells}},
          {"focus", r.focus.has_value(), {kCells}},
          {"items", r.items.has_value(), {kCells}}};
}

bool Takes(const Field& field, Scheme scheme) {
  return std::find(field.schemes.begin(), field.schemes.end(), scheme) != field.schemes.end();
}

}  // namespace

absl::StatusOr<Scheme> ResolveScheme(const SearchRequest& request,
                                     const PublicParameters& parameters) {
  const Scheme scheme = request.scheme.value_or(DefaultScheme(OfferedSchemes(parameters)));
  for (const Field& field : FieldsOf(request)) {
    if (!field.given || Takes(field, scheme)) continue;
    std::vector<std::string> takers;
    for (const std::string& offered : OfferedSchemes(parameters)) {
      if (Takes(field, kSchemeNames.at(offered))) takers.push_back(offered);
    }
    if (request.scheme.has_value() || !field.is_cost || takers.empty()) {
      return FieldError(field.name, absl::StrCat("absent with the scheme ", NameOf(scheme)),
                        "given");
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
