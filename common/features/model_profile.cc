#define TOML_HEADER_ONLY 1  // programs that link the SDK need no library for it
#include <toml++/toml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/features/feature_extractor.h"

namespace privatemail {
namespace {

// toml++ recurses for every dot of a key.
constexpr size_t kMaxProfileBytes = 4096;

// Numbers of an array into `to`; false if it has another length or holds something else.
template <typename Number, size_t kCount>
bool ReadNumbers(const toml::node& node, std::array<Number, kCount>* to) {
  const toml::array* const from = node.as_array();
  if (from == nullptr || from->size() != kCount) return false;
  for (size_t i = 0; i < kCount; ++i) {
    const auto number = (*from)[i].value<Number>();
    if (!number.has_value()) return false;
    (*to)[i] = *number;
  }
  return true;
}

// The type that `key` expects, if `node` has another; empty: its value is in `options`.
absl::string_view ReadKey(absl::string_view key, const toml::node& node, OnnxOptions* options) {
  if (key == "size") {
    std::array<int, 2> size;
    if (!ReadNumbers(node, &size) || !(std::min(size[0], size[1]) > 0)) {
      return "[WIDTH, HEIGHT] in pixels";
    }
    options->input_width = size[0];
    options->input_height = size[1];
  } else if (key == "mean") {
    if (!ReadNumbers(node, &options->mean)) return "three numbers in brackets";
  } else if (key == "scale") {
    if (!node.is_number()) return "a number";
    options->scale.fill(*node.value<float>());
  } else if (key == "std") {
    // Libraries print standard deviations of values in 0..1, which are smaller.
    if (!ReadNumbers(node, &options->scale) ||
        !std::all_of(options->scale.begin(), options->scale.end(),
                     [](float s) { return s >= 1; })) {
      return "three numbers of at least 1 in brackets, since pixels are in 0..255";
    }
    for (float& scale : options->scale) scale = 1 / scale;
  } else if (key == "channels") {
    const auto order = node.value<std::string>();
    if (order != "rgb" && order != "bgr") return "\"rgb\" or \"bgr\"";
    options->swap_rb = order == "rgb";
  } else if (key == "layer" || key == "citation") {
    if (!node.is_string()) return "a text";
    if (key == "layer") options->layer = *node.value<std::string>();
  } else {
    return "only size, mean, std, scale, channels, layer and citation";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> FindModel(const std::string& model) {
  namespace fs = std::filesystem;
  const char* const given = std::getenv("PRIVATEMAIL_MODELS");
  const std::string folder = given == nullptr ? PRIVATEMAIL_MODELS : given;
  const bool is_path = absl::StrContains(model, '/') || absl::EndsWith(model, ".onnx");
  const std::string path = is_path ? model : absl::StrCat(folder, "/", model, ".onnx");
  std::error_code ignored;
  if (fs::exists(path, ignored)) return path;
  std::set<std::string> installed;
  for (fs::directory_iterator file(folder, ignored), end; file != end; file.increment(ignored)) {
    if (file->path().extension() == ".onnx") installed.insert(file->path().stem());
  }
  return InvalidField(
      "model", absl::StrCat("must be a file (with a slash or .onnx) or the name of an installed "
                            "model (",
                            installed.empty() ? "there is none" : absl::StrJoin(installed, ", "),
                            "), but there is no ", fs::absolute(path, ignored).string(),
                            "; PRIVATEMAIL_MODELS names another folder of models"));
}

std::string ModelProfilePath(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".toml");
}

absl::StatusOr<OnnxOptions> ReadModelProfile(const std::string& path) {
  OnnxOptions options;
  options.path = path;
  const std::string file = ModelProfilePath(path);
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return options;
  PM_ASSIGN_OR_RETURN(const std::string text, ReadFileBytes(file, kMaxProfileBytes));
  try {
    const toml::table profile = toml::parse(text);
    if (profile.contains("std") && profile.contains("scale")) {
      return absl::InvalidArgumentError(absl::StrCat(file, ": expected std or scale, got both"));
    }
    for (const auto& [key, node] : profile) {
      const absl::string_view name(key.data(), key.length());
      const absl::string_view expected = ReadKey(name, node, &options);
      if (expected.empty()) continue;
      std::ostringstream got;
      got << toml::node_view<const toml::node>(node);
      return absl::InvalidArgumentError(absl::StrCat(file, " line ", key.source().begin.line, ": ",
                                                     name, ": expected ", expected, ", got ",
                                                     got.str()));
    }
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(file, " line ", error.source().begin.line, ": ",
                                                   std::string(error.description())));
  }
  return options;
}

}  // namespace privatemail
