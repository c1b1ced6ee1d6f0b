// Results, warnings, errors and progress of commands, as text or as JSON.
#ifndef PRIVATEMAIL_CLIENT_CLI_OUTPUT_H_
#define PRIVATEMAIL_CLIENT_CLI_OUTPUT_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/queries/memory_limit.h"
#include "privatemail/encrypted_client.h"
#include "privatemail/expected_alignment.h"
#include "privatemail/guarantee.h"
#include "privatemail/joint_client.h"
#include "privatemail/ledger.h"

namespace privatemail::client::cli {

inline constexpr char kAcceptMisalignmentFlag[] = "--accept-misalignment";  // of query and build

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;         // INVALID_ARGUMENT, found by the client or the server
inline constexpr int kExitSomeRejected = 3;  // of an upload; the other rows were acknowledged

// The result of a command, or of one query of a batch.
struct Result {
  nlohmann::json json;  // printed on one line with --json
  // Printed without it; ends with a newline. Texts of a server are made Printable, so that they
  // begin no line of their own.
  std::string text = {};
  int exit_code = 0;
};

// The rows of a list that a server sends, with a limit on the memory of their JSON and text.
class RowList {
 public:
  explicit RowList(int64_t max_memory)
      : memory_("memory of the rows that the server sent", max_memory) {}

  // Call before a row is made, with an upper estimate of its memory. Errors of MemoryLimit.
  absl::Status Reserve(int64_t bytes) { return memory_.Reserve(bytes); }
  void Add(nlohmann::json json, absl::string_view text);

  const nlohmann::json& json() const { return json_; }  // an array
  const std::string& text() const { return text_; }

 private:
  MemoryLimit memory_;
  nlohmann::json json_ = nlohmann::json::array();
  std::string text_;
};

// On standard output, with control characters escaped.
void Print(const Result& result, bool as_json);
// "error: TEXT (CODE)" on standard error; as_json: {"error": ...} on standard output, too.
void PrintError(const absl::Status& status, bool as_json);
// "warning: TEXT" on standard error.
void Warn(const std::string& text);
// Warns and appends to *warnings.
std::function<void(const std::string&)> RecordAndWarn(std::vector<std::string>* warnings);

// JSON on one line in ASCII, safe for a terminal; bytes that are not UTF-8 become U+FFFD.
std::string Line(const nlohmann::json& json);

nlohmann::json ToJson(const Guarantee& guarantee);
nlohmann::json ToJson(const EncryptedGuarantee& guarantee);
nlohmann::json ToJson(const Budget& budget);
nlohmann::json ToJson(const ExpectedAlignment& alignment);
nlohmann::json ToJson(const std::vector<QueryMatch>& matches);
nlohmann::json LabelJson(int32_t label);  // null for kNoLabel
// Null without a radius.
nlohmann::json ToJson(const std::optional<RadiusStats>& meaning);
// {"spent": ..., "left": ...}
nlohmann::json LedgerJson(const LedgerEntry& entry);
// "without noise: expected recall 1, residual 0.0012"
std::string AlignmentText(const ExpectedAlignment& alignment);

// A FAILED_PRECONDITION with the hint to the flag that overrides it; others as they are.
absl::Status OrAccept(const absl::Status& status);

// A progress bar on standard error, silent for the first two seconds; if that is no terminal, a
// line every half minute.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  void Show(int64_t done, int64_t total);

 private:
  std::string label_;
  double started_;
  double last_;
  bool shown_ = false;
};

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_OUTPUT_H_
