#include "client/cli/numbers.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
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

bool Read(const std::string& text, double* number) { return absl::SimpleAtod(text, number); }
bool Read(const std::string& text, int64_t* number) { return absl::SimpleAtoi(text, number); }
const char* Expected(double) { return "numbers"; }
const char* Expected(int64_t) { return "whole numbers"; }

template <typename Number>
std::vector<Number> NumbersOf(const std::string& flags, const std::vector<std::string>& words) {
  std::vector<Number> numbers;
  for (const std::string& word : words) {
    for (const std::string& text : std::vector<std::string>(absl::StrSplit(word, ','))) {
      if (!Read(text, &numbers.emplace_back())) {
        throw CLI::ConversionError(absl::StrCat(flags, " must be ", Expected(Number()),
                                                " separated by commas, but has \"", text, "\""));
      }
    }
  }
  return numbers;
}

template <typename Number>
CLI::Option* Add(CLI::App* command, const std::string& flags, std::vector<Number>* numbers,
                 const std::string& description) {
  constexpr int kMaxWords = 1 << 20;
  const auto read = [flags, numbers](const std::vector<std::string>& words) {
    *numbers = NumbersOf<Number>(flags, words);
  };
  return command->add_option_function<std::vector<std::string>>(flags, read, description)
      ->expected(1, kMaxWords)
      ->allow_extra_args(false)  // nor bracketed lists, in which CLI11 drops empty elements
      ->type_name(kNumbersType);
}

}  // namespace

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
          if (is_sent && !IsUtf8(text)) return "must be UTF-8, but is not";
          return text.empty() ? "must not be empty, but is" : "";
        },
        ""));
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    RequireValidWords(*command);
  }
}

CLI::Option* AddNumbers(CLI::App* command, const std::string& flags, std::vector<double>* numbers,
                        const std::string& description) {
  return Add(command, flags, numbers, description);
}

CLI::Option* AddNumbers(CLI::App* command, const std::string& flags, std::vector<int64_t>* numbers,
                        const std::string& description) {
  return Add(command, flags, numbers, description);
}

CLI::Option* AddBytes(CLI::App* command, const std::string& flags, int64_t* bytes,
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
  return command->add_option_function<std::string>(flags, read, description)->type_name("BYTES");
}

}  // namespace privatemail::client::cli
