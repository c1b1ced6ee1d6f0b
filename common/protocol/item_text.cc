#include "common/protocol/item_text.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace privatemail {

// The JSON library's strict writer is the UTF-8 check: it throws on anything else.
bool IsUtf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

absl::Status CheckPayload(const std::string& payload) {
  if (payload.empty()) return absl::OkStatus();
  using nlohmann::json;
  bool too_deep = false;
  const auto look = [&](int depth, json::parse_event_t event, const json& /*value*/) {
    const bool opens =
        event == json::parse_event_t::array_start || event == json::parse_event_t::object_start;
    too_deep = too_deep || (opens && depth >= kMaxPayloadDepth);
    return !too_deep;  // what is too deep is not kept either
  };
  // The parser takes a NUL byte for the end of the text.
  const bool has_nul = payload.find('\0') != std::string::npos;
  const json parsed = json::parse(payload, look, /*allow_exceptions=*/false);
  if (too_deep) {
    return absl::InvalidArgumentError(
        absl::StrCat("payload must be nested at most ", kMaxPayloadDepth, " deep, but is deeper"));
  }
  if (has_nul || parsed.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat("payload must be empty or a JSON text, but its ",
                                                   payload.size(), " bytes are not JSON"));
  }
  return absl::OkStatus();
}

}  // namespace privatemail
