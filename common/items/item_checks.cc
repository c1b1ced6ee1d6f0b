#include "common/items/item_checks.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/validate.h"

namespace privatemail {

bool IsUtf8(absl::string_view text) {
  const auto* next = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = next + text.size();
  while (next != end) {
    const unsigned lead = *next++;
    if (lead < 0x80) continue;
    if (lead < 0xc2 || lead > 0xf4) return false;
    // Bounds of the second byte exclude overlong forms, surrogates and what is beyond U+10FFFF.
    unsigned low = 0x80, high = 0xbf;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
    for (int left = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3; left > 0; --left) {
      if (next == end || *next < low || *next > high) return false;
      ++next;
      low = 0x80;
      high = 0xbf;
    }
  }
  return true;
}

namespace {

// Checks the depth without building a document, in time linear in the length.
class DepthCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool too_deep() const { return too_deep_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  bool Open() {
    too_deep_ = ++depth_ > kMaxPayloadDepth;
    return !too_deep_;
  }
  bool Close() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  bool too_deep_ = false;
};

}  // namespace

absl::Status CheckItemId(const std::string& id) {
  const bool has_length = !id.empty() && id.size() <= kMaxItemIdBytes;
  if (has_length && IsUtf8(id)) return absl::OkStatus();
  return InvalidField(
      "id", absl::StrCat("must be 1 to ", kMaxItemIdBytes, " bytes of UTF-8, but ",
                         has_length ? "is not UTF-8" : absl::StrCat("has ", id.size(), " bytes")));
}

absl::Status CheckPayload(const std::string& payload) {
  if (payload.empty()) return absl::OkStatus();
  // The parser stops at a NUL byte.
  const bool has_nul = payload.find('\0') != std::string::npos;
  DepthCheck check;
  const bool is_json = nlohmann::json::sax_parse(payload, &check);
  if (check.too_deep()) {
    return InvalidField("payload", absl::StrCat("must be nested at most ", kMaxPayloadDepth,
                                                " deep, but is deeper"));
  }
  if (has_nul || !is_json) {
    return InvalidField("payload", absl::StrCat("must be empty or a JSON text, but its ",
                                                payload.size(), " bytes are not JSON"));
  }
  return absl::OkStatus();
}

absl::Status CheckHasSimilarity(absl::string_view field, Metric metric, const float* values,
                                int64_t count) {
  const bool is_zero = std::all_of(values, values + count, [](float value) { return value == 0; });
  if (is_zero && metric != Metric::kCosine) return absl::OkStatus();
  return CheckUnitScalable(field, values, count);
}

}  // namespace privatemail
