#include "client/cli/numbers.h"

#include <charconv>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace privatemail::cli {
namespace {

bool TakesANumber(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  for (const char* number : {"FLOAT", "INT", "UINT"}) {
    if (absl::StartsWith(type, number)) return true;
  }
  return false;
}

bool Read(const std::string& text, double* number) { return absl::SimpleAtod(text, number); }
bool Read(const std::string& text, int64_t* number) { return absl::SimpleAtoi(text, number); }

template <typename Number>
std::vector<Number> NumbersOf(const std::string& flags, const std::vector<std::string>& words) {
  std::vector<Number> numbers;
  for (const std::string& word : words) {
    for (const std::string& text : std::vector<std::string>(absl::StrSplit(word, ','))) {
      if (!Read(text, &numbers.emplace_back())) {
        throw CLI::ConversionError(
            absl::StrCat(flags, " must be numbers separated by commas, but has \"", text, "\""));
      }
    }
  }
  return numbers;
}

template <typename Number>
CLI::Option* Add(CLI::App* command, const std::string& flags, std::vector<Number>* numbers,
                 const std::string& description) {
  constexpr int kMostWords = 1 << 20;
  const auto read = [flags, numbers](const std::vector<std::string>& words) {
    *numbers = NumbersOf<Number>(flags, words);
  };
  return command->add_option_function<std::vector<std::string>>(flags, read, description)
      ->expected(1, kMostWords)
      ->allow_extra_args(false)  // nor lists in brackets, which drop what is empty
      ->type_name("NUMBER ...");
}

}  // namespace

void RefuseEmptyNumbers(CLI::App& app) {
  const CLI::Validator is_there(
      [](const std::string& text) {
        return text.empty() ? std::string("must be a number, but is empty") : std::string();
      },
      "");
  for (CLI::Option* option : app.get_options()) {
    if (TakesANumber(*option)) option->check(is_there);
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    RefuseEmptyNumbers(*command);
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

std::string Exactly(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

}  // namespace privatemail::cli
