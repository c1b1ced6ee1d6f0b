// Command-line names of enumerations and parameters.
#ifndef PRIVATEMAIL_CLIENT_FLAGS_NAMES_H_
#define PRIVATEMAIL_CLIENT_FLAGS_NAMES_H_

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/flags/removed_names.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/smlq.h"

namespace privatemail::client::cli {

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

// An option whose value is one of the names. CLI11's own help would show the numbers as well.
template <typename Value>
void AddChoice(CLI::App* command, const std::string& flag, Value* value,
               const std::map<std::string, Value>& names, const std::string& description) {
  const auto choose = [flag, value, names](const std::string& text) {
    const auto chosen = names.find(text);
    if (chosen == names.end()) {
      throw CLI::ValidationError(absl::StrCat(flag, " must be ", JoinNames(names), ", but is \"",
                                              text, "\"", RemovedNote(text)));
    }
    *value = chosen->second;
  };
  CLI::Option* option = command->add_option_function<std::string>(
      flag, choose, absl::StrCat(description, ": ", JoinNames(names)));
  for (const auto& [name, known] : names) {
    if (known == *value) option->default_str(name);
  }
}

// The name of a value that has one.
template <typename Value>
std::string NameOf(const std::map<std::string, Value>& names, Value value) {
  return std::find_if(names.begin(), names.end(),
                      [&](const auto& named) { return named.second == value; })
      ->first;
}

// The first of the command's flags that is given; empty: none.
std::string FirstGiven(const CLI::App& command, absl::Span<const char* const> flags);

// Errors of the SDK and the server begin with a parameter, "delta must be given". If the command
// has it as a flag, the message begins with the flag, "--delta must be given".
absl::Status WithFlagName(const absl::Status& status, const CLI::App& command);

// The flags that AddEmbeddingOptions adds.
inline constexpr const char* kEmbeddingFlags[] = {"--bandwidth", "--dim",   "--label-graph",
                                                  "--kernel",    "--start", "--start-stddev"};
void AddEmbeddingOptions(CLI::App* command, EmbeddingSettings* settings);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_FLAGS_NAMES_H_
