// Results, warnings, errors and progress of commands, as text or as JSON.
#ifndef PRIVATEMAIL_CLIENT_CLI_OUTPUT_H_
#define PRIVATEMAIL_CLIENT_CLI_OUTPUT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/render.h"
#include "client/schemes/memory_budget.h"

namespace privatemail::client::cli {

inline constexpr char kAcceptMisalignmentFlag[] = "--accept-misalignment";  // of query and build

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;   // INVALID_ARGUMENT, found by the client or the server
inline constexpr int kExitPartly = 3;  // done, but some rows, ids or labels were left out

// The result of a command, or of one query of a batch.
struct Result {
  nlohmann::json json;  // printed on one line with --json
  // Printed without it and without -v, which renders the JSON, as an empty text does. Ends with a
  // newline. Texts of a server are made Printable, so that they begin no line of their own.
  std::string text = {};
  std::string head = {};  // a sentence before the text, also with -v
  int exit_code = 0;
  std::string hint = {};  // the user's next command, printed after the text
  Columns columns = {};   // of the JSON as text
  // Its members that are shown without -v, "alignment/expected_recall" for one of a member; empty:
  // all.
  std::vector<std::string> brief = {};
};

// Names the rows of a list that a server sends, for its MemoryBudget. JSON and text of a row are
// reserved together, by an upper estimate, before the row is made.
inline constexpr char kServerRows[] = "the rows that the server sent";

// On standard output, with control characters escaped.
void Print(const Result& result, bool as_json, bool verbose = false);
// "error: TEXT (CODE)" on standard error; as_json: {"error": ...} on standard output, too.
void PrintError(const absl::Status& status, bool as_json);
// "warning: TEXT" on standard error, and in the "warnings" of the next result that is printed as
// JSON. Thread-safe.
void Warn(const std::string& text);

// The value if there is one, else null.
inline nlohmann::json OrNull(bool present, const nlohmann::json& value) {
  return present ? value : nlohmann::json();
}

// JSON on one line in ASCII, safe for a terminal; bytes that are not UTF-8 become U+FFFD.
std::string Line(const nlohmann::json& json);

// The columns of matches in the text of a result.
inline const Columns kMatchColumns = {
    {"matches", {"id", "class", "label", "similarity", "squared_distance", "payload"}}};

// A progress bar on standard error, silent for the first two seconds; if that is no terminal, a
// line every half minute. The pace and the time left are those since the first call.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label) : label_(std::move(label)) {}
  ~ProgressBar() { End(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(int64_t done, int64_t total);
  // Shows work that is not counted. nullopt: the share is unknown.
  void Show(std::optional<double> share);
  // Begins a line of its own for what is printed next.
  void End();

 private:
  // total: 0: not counted.
  void Draw(double share, int64_t done, int64_t total);

  const std::string label_;
  std::optional<double> started_;  // seconds
  double first_ = 0;               // share of the first call
  double last_ = 0;
  bool shown_ = false;
};

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_OUTPUT_H_
