#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/printable.h"
#include "server/store/postgres/connection.h"

namespace privatemail::server::postgres {
namespace {

// Seconds, but for the last, which are milliseconds: notice within half a minute that the other end
// is gone.
constexpr std::pair<const char*, const char*> kDefaults[] = {
    {"connect_timeout", "5"},  {"keepalives_idle", "10"},     {"keepalives_interval", "5"},
    {"keepalives_count", "3"}, {"tcp_user_timeout", "30000"}, {"application_name", "privatemaild"}};

constexpr absl::string_view kSecretKeywords[] = {"password", "sslpassword"};

}  // namespace

absl::StatusOr<Target> Target::Parse(const std::string& conninfo) {
  const std::string text(absl::StripAsciiWhitespace(conninfo));
  // libpq's own message would repeat what it stumbled over.
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      text.empty() ? nullptr : PQconninfoParse(text.c_str(), nullptr), PQconninfoFree);
  if (parsed == nullptr) {
    return absl::InvalidArgumentError(
        "the connection to PostgreSQL must be keyword=value pairs of libpq, or a postgresql:// "
        "URI, but cannot be read as one (it is not repeated here, because it may hold a password)");
  }
  Target target;
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr || *option->val == '\0') continue;
    target.options_.emplace_back(option->keyword, option->val);
    const bool secret = std::find(std::begin(kSecretKeywords), std::end(kSecretKeywords),
                                  absl::string_view(option->keyword)) != std::end(kSecretKeywords);
    if (secret) target.secrets_.emplace_back(option->val);
  }
  for (const auto& [keyword, value] : kDefaults) {
    const bool given = std::any_of(target.options_.begin(), target.options_.end(),
                                   [&](const auto& option) { return option.first == keyword; });
    if (!given) target.options_.emplace_back(keyword, value);
  }
  return target;
}

std::string Target::Redacted(absl::string_view text) const {
  std::string line(text);
  for (const std::string& secret : secrets_) {
    line = absl::StrReplaceAll(line, {{secret, "****"}});
  }
  for (char& character : line) {
    if (absl::ascii_isspace(character)) character = ' ';
  }
  absl::RemoveExtraAsciiWhitespace(&line);
  return Printable(line);
}

}  // namespace privatemail::server::postgres
