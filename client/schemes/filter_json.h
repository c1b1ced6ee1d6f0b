// Payload filters as JSON.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_FILTER_JSON_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_FILTER_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The form, for --help and messages.
inline constexpr char kFilterForm[] =
    "{\"path\":\"a.b\",\"equals\":VALUE}, {\"path\":P,\"in\":[VALUE,...]}, "
    "{\"path\":P,\"gte\":1,\"lt\":9} (also gt, lte), {\"and\":[...]}, {\"or\":[...]}, "
    "{\"not\":{...}}";

// Nothing for an empty text. INVALID_ARGUMENT naming the wrong part, what was expected and its
// value.
absl::StatusOr<std::optional<v1::PayloadFilter>> FilterFromJson(const std::string& text);

nlohmann::json FilterToJson(const v1::PayloadFilter& filter);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_FILTER_JSON_H_
