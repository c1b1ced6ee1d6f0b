#include "client/cli/flags.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/field_error.h"
#include "common/items/item_checks.h"

namespace privatemail::client::cli {
namespace {

// Whether CLI11 parses the text as this type.
template <typename Number>
bool Parses(std::string text) {
  Number number = 0;
  return CLI::detail::lexical_cast(text, number);
}

constexpr char kNumbersType[] = "NUMBER[,NUMBER]...";

struct Kind {
  const char* type;  // as CLI11 calls it, up to what may follow
  const char* expected;
  bool (*parses)(std::string text);
};

constexpr Kind kKinds[] = {{"FLOAT", "a number", &Parses<double>},
                           {"INT", "a whole number", &Parses<int64_t>},
                           {"UINT", "a whole number from 0 to 4294967295", &Parses<uint32_t>}};

// The error of a text that is not a number of this kind; empty if it is one.
std::string NumberError(const Kind& kind, const std::string& text) {
  if (text.empty()) return absl::StrCat("must be ", kind.expected, ", but is empty");
  if (kind.parses(text)) return "";
  return absl::StrCat("must be ", kind.expected, ", but is \"", text, "\"");
}

bool Read(absl::string_view text, double* number) { return absl::SimpleAtod(text, number); }
bool Read(absl::string_view text, int64_t* number) { return absl::SimpleAtoi(text, number); }

// The flag of a parameter: its name, except for those with shorter flags.
std::string FlagOf(absl::string_view parameter) {
  static const std::map<std::string, std::string, std::less<>> kShorter = {
      {"kernel_bandwidth", "--bandwidth"},
      {"embedding_dim", "--dim"},
      {"dimension", "--dim"},
      {"targets", "--vectors"},
      {"ca_file", "--ca"},
      {"trust_fingerprint", "--trust"},
      {"certificate_file", "--cert"},
      {"certificate_key_file", "--cert-key"},
      {"target", "--vectors"},
      {"max_computing", "--deadline"},
      {"with_alignment", "--report"}};
  const auto shorter = kShorter.find(parameter);
  if (shorter != kShorter.end()) return shorter->second;
  return absl::StrCat(parameter.size() == 1 ? "-" : "--",
                      absl::StrReplaceAll(parameter, {{"_", "-"}}));
}

// The user's remedy for a field that is no flag of the command.
std::string RemedyOf(const absl::Status& status, const FieldProblem& problem,
                     const CLI::App& command) {
  const std::string& field = problem.field;
  const CLI::Option* const given = command.get_option_no_throw("NAME");
  const std::string name =
      given == nullptr || given->count() == 0 ? "NAME" : given->results().front();
  if (field == "budget") {
    // An operator's budget is named by SumOf, at the end of what was expected.
    const std::vector<std::string> parts =
        absl::StrSplit(problem.expected, absl::MaxSplits(" of operator ", 1));
    return absl::StrCat("; `privatemail budget set ",
                        parts.size() == 2 ? absl::StrCat("--operator \"", parts[1], "\"") : name,
                        " --epsilon E --delta D` sets it");
  }
  if (field == "embedding" && absl::IsFailedPrecondition(status)) {
    return absl::StrCat("; `privatemail build ", name, "` builds it");
  }
  if (field == "quality" && absl::IsUnavailable(status)) {
    return absl::StrCat("; `privatemail collection wait ", name, "` waits for it");
  }
  if (field == "fingerprint") return ": run it again, after `privatemail plan` if it uses a plan";
  if (absl::IsFailedPrecondition(status) &&
      (field == "expected_recall" || field == "own_anchors")) {
    return "; nothing was charged; to query all the same: --accept-misalignment";
  }
  return "";
}

}  // namespace

std::string FirstGiven(const CLI::App& command, absl::Span<const char* const> flags) {
  for (const char* flag : flags) {
    if (command.get_option(flag)->count() > 0) return flag;
  }
  return "";
}

absl::Status WithFlagName(const absl::Status& status, const CLI::App& command) {
  const std::optional<FieldProblem> problem = FieldProblemOf(status);
  if (!problem.has_value()) return status;
  // "filter.and[1]" is a part of --filter.
  const std::string head = problem->field.substr(0, problem->field.find_first_of(".["));
  const std::string flag = FlagOf(head);
  bool is_flag = false;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    is_flag = is_flag || app->get_option_no_throw(flag) != nullptr;
  }
  const std::string name =
      is_flag ? absl::StrCat(flag, problem->field.substr(head.size())) : problem->field;
  return WithFieldName(WithNote(status, RemedyOf(status, *problem, command)), name);
}

void AddEmbeddingOptions(CLI::App* command, EmbeddingSettings* settings) {
  command
      ->add_option("--bandwidth", settings->kernel_bandwidth, "Kernel bandwidth over unit vectors")
      ->capture_default_str();
  command->add_option("--dim", settings->embedding_dim, "Dimensions of the embedding")
      ->capture_default_str();
  AddChoice(command, "--label-graph", &settings->label_graph, kLabelGraphNames,
            "Graph over the labels");
  AddChoice(command, "--kernel", &settings->kernel, kKernelNames,
            "Denominator of the feature kernel");
  AddChoice(command, "--start", &settings->start, kStartNames,
            "What the embedding starts from: normal draws, or a public point for each class");
  command->add_option("--start-stddev", settings->start_stddev, "Standard deviation of the start")
      ->capture_default_str();
}

void RequireValidWords(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name() == kNumbersType) continue;
    for (const Kind& kind : kKinds) {
      if (!absl::StartsWith(option->get_type_name(), kind.type)) continue;
      option->check(
          CLI::Validator([&kind](const std::string& text) { return NumberError(kind, text); }, ""));
    }
    // Names and ids, which proto3 strings take as UTF-8 only.
    const bool is_sent = option->get_positional() || option->check_lname("collection") ||
                         option->check_lname("cursor");
    option->check(CLI::Validator(
        [is_sent](const std::string& text) -> std::string {
          if (is_sent && !IsUtf8(text)) return "must be UTF-8";
          return text.empty() ? "must not be empty" : "";
        },
        ""));
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    RequireValidWords(*command);
  }
}

void AddWords(CLI::App* command, const std::string& flags, const char* type,
              const std::string& description,
              std::function<void(const std::vector<std::string>& words)> read) {
  constexpr int kMaxWords = 1 << 20;
  command->add_option_function<std::vector<std::string>>(flags, std::move(read), description)
      ->expected(1, kMaxWords)
      ->allow_extra_args(false)  // nor bracketed lists, in which CLI11 drops empty elements
      ->type_name(type);
}

template <typename Number>
void AddNumbers(CLI::App* command, const std::string& flags, std::vector<Number>* numbers,
                const std::string& description) {
  const auto read = [flags, numbers](const std::vector<std::string>& words) {
    numbers->clear();
    for (const absl::string_view text : absl::StrSplit(absl::StrJoin(words, ","), ',')) {
      if (Read(text, &numbers->emplace_back())) continue;
      throw CLI::ConversionError(
          absl::StrCat(flags, " must be ", std::is_integral_v<Number> ? "whole numbers" : "numbers",
                       " separated by commas, but has \"", text, "\""));
    }
  };
  AddWords(command, flags, kNumbersType, description, read);
}
template void AddNumbers(CLI::App*, const std::string&, std::vector<double>*, const std::string&);
template void AddNumbers(CLI::App*, const std::string&, std::vector<int64_t>*, const std::string&);

void AddBytes(CLI::App* command, const std::string& flags, int64_t* bytes,
              const std::string& description) {
  const auto read = [flags, bytes](const std::string& text) {
    constexpr double kMaxBytes = 1e15;
    absl::string_view number = text;
    double unit = 1;
    for (const char letter : {'K', 'M', 'G'}) {
      unit *= 1000;
      if (absl::ConsumeSuffix(&number, std::string(1, letter))) break;
      if (letter == 'G') unit = 1;
    }
    double value = 0;
    if (!absl::SimpleAtod(number, &value) || !(value > 0 && value * unit <= kMaxBytes)) {
      throw CLI::ConversionError(absl::StrCat(
          flags, " must be a number of bytes such as 2500, 800K or 2M, but is \"", text, "\""));
    }
    *bytes = static_cast<int64_t>(value * unit);
  };
  command->add_option_function<std::string>(flags, read, description)->type_name("BYTES");
}

}  // namespace privatemail::client::cli
