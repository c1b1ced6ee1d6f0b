// Names of enumerated settings, as flags, arguments and JSON spell them.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_SETTING_NAMES_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_SETTING_NAMES_H_

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/field_error.h"
#include "common/base/suggestion.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/smlq.h"

namespace privatemail {

inline const std::map<std::string, KernelConvention> kKernelNames = {
    {"two_sigma_squared", KernelConvention::kTwoSigmaSquared},
    {"sigma", KernelConvention::kSigma},
    {"sigma_squared", KernelConvention::kSigmaSquared}};

inline const std::map<std::string, LabelGraphKind> kLabelGraphNames = {
    {"balanced", LabelGraphKind::kBalanced},
    {"distance", LabelGraphKind::kDistance},
    {"kernel", LabelGraphKind::kKernel},
    {"one_hot_kernel", LabelGraphKind::kOneHotKernel}};

inline const std::map<std::string, StartKind> kStartNames = {{"random", StartKind::kRandom},
                                                             {"classes", StartKind::kClasses}};

inline const std::map<std::string, Metric> kMetricNames = {
    {"cosine", Metric::kCosine}, {"dot", Metric::kDot}, {"euclidean", Metric::kEuclidean}};

// The name of a value that has one.
template <typename Value>
std::string NameIn(const std::map<std::string, Value>& names, Value value) {
  return std::find_if(names.begin(), names.end(),
                      [&](const auto& named) { return named.second == value; })
      ->first;
}

// "sigma, sigma_squared or two_sigma_squared"
template <typename Value>
std::string JoinNames(const std::map<std::string, Value>& names) {
  std::string list;
  for (auto name = names.begin(); name != names.end(); ++name) {
    const bool last = std::next(name) == names.end();
    absl::StrAppend(&list, list.empty() ? "" : last ? " or " : ", ", name->first);
  }
  return list;
}

// The error about a field that has none of the names: it lists them, and suggests a similar one.
template <typename Value>
absl::Status UnknownName(absl::string_view field, const std::map<std::string, Value>& names,
                         absl::string_view given) {
  std::vector<std::string> known;
  for (const auto& [name, value] : names) known.push_back(name);
  return WithNote(
      FieldError(field, JoinNames(names), absl::StrCat("\"", absl::CHexEscape(given), "\"")),
      Suggestion(given, known));
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_SETTING_NAMES_H_
