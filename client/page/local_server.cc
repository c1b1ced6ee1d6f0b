#include "client/page/local_server.h"

#include <civetweb.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <future>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/privacy/sampling/bit_source.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

constexpr char kThreads[] = "16";
constexpr char kRequestMilliseconds[] = "3000";
constexpr char kOpenPath[] = "/open";

constexpr char kHeaders[] =
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Connection: close\r\n\r\n";

PageResponse Refuse(int status, const std::string& why) {
  return {status, "text/plain; charset=utf-8", why + "\n"};
}

absl::StatusOr<std::string> RandomHex() {
  std::array<uint8_t, 32> bytes;
  SecureBits bits;
  PM_RETURN_IF_ERROR(bits.Fill(absl::MakeSpan(bytes)));
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

bool AreEqual(absl::string_view one, absl::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

std::map<std::string, std::string> OptionsOf(const char* query) {
  std::string text(absl::NullSafeStringView(query));  // is split and decoded in place
  std::array<mg_header, 16> fields = {};
  const int count = mg_split_form_urlencoded(text.data(), fields.data(), fields.size());
  std::map<std::string, std::string> options;
  for (int i = 0; i < count; ++i) {
    const mg_header& field = fields[static_cast<size_t>(i)];
    options[field.name] = std::string(absl::NullSafeStringView(field.value));
  }
  return options;
}

// Nothing if the connection ends early.
std::optional<std::string> ReadBody(mg_connection* connection, size_t length) {
  std::string body(length, '\0');
  for (size_t read = 0; read < length;) {
    const int more = mg_read(connection, body.data() + read, length - read);
    if (more <= 0) return std::nullopt;
    read += static_cast<size_t>(more);
  }
  return body;
}

}  // namespace

bool LocalServer::HasCookie(absl::string_view header) const {
  bool found = false;
  for (const absl::string_view one : absl::StrSplit(header, ';')) {
    found |= AreEqual(absl::StripAsciiWhitespace(one), cookie_);
  }
  return found;
}

// A redirect by status would not carry a Strict cookie: the browser came from a file. A page of
// this origin that goes on does.
PageResponse LocalServer::Open(absl::string_view token, std::string* cookie) {
  if (!AreEqual(token, token_)) return Refuse(403, "the token is wrong");
  if (opened_.exchange(true)) {
    return Refuse(403, "this address was used: start `privatemail page` again");
  }
  *cookie =
      absl::StrCat("Set-Cookie: ", cookie_, "; Path=", folder_, "; HttpOnly; SameSite=Strict\r\n");
  return {200, "text/html; charset=utf-8",
          absl::StrCat("<!doctype html><link rel=\"icon\" href=\"data:,\"><meta "
                       "http-equiv=\"refresh\" content=\"0;url=",
                       folder_, "\"><title>PrivateMail</title>\n")};
}

PageResponse LocalServer::Respond(mg_connection* connection, std::string* cookie) {
  const mg_request_info& info = *mg_get_request_info(connection);
  const auto header = [&](const char* name) {
    return absl::NullSafeStringView(mg_get_header(connection, name));
  };
  const absl::string_view method = info.request_method,
                          path = absl::NullSafeStringView(info.local_uri);
  if (absl::StrCat("http://", header("Host")) != origin_) {
    return Refuse(421, "the header Host must be that of the address");
  }
  if (method != "GET" && method != "POST") return Refuse(405, "only GET and POST");
  if (path == kOpenPath && method == "GET") {
    return Open(OptionsOf(info.query_string)["token"], cookie);
  }
  // "none": the user typed the address or reloads.
  const absl::string_view site = header("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") {
    return Refuse(403, "requests of other origins are refused");
  }
  if (method == "POST" && header("Origin") != origin_) {
    return Refuse(403, "the header Origin must be that of the address");
  }
  if (!HasCookie(header("Cookie"))) {
    return Refuse(401,
                  "open the page by the file that `privatemail page` names; if it is gone, start "
                  "`privatemail page` again");
  }
  absl::string_view below = path;
  if (!absl::ConsumePrefix(&below, folder_)) return Refuse(404, "there is no such page");
  if (info.content_length < 0 && method == "POST") {
    return Refuse(411, "the header Content-Length must be given");
  }
  const auto length = static_cast<size_t>(std::max<long long>(0, info.content_length));
  if (length > 0 && method == "GET") return Refuse(400, "GET takes no body");
  if (length > kMaxBody) {
    return Refuse(413, absl::StrCat("a file must have at most ", kMaxBody, " bytes"));
  }
  std::optional<std::string> body = ReadBody(connection, length);
  if (!body.has_value()) return Refuse(400, "the request ended early");
  const PageRequest request = {std::string(method), std::string(below),
                               OptionsOf(info.query_string), *std::move(body)};
  // The stacks of civetweb's threads have 100 KB, which TLS and decompositions exceed.
  return std::async(std::launch::async, [&] { return handler_(request); }).get();
}

int LocalServer::Serve(mg_connection* connection) {
  auto* server = static_cast<LocalServer*>(mg_get_user_data(mg_get_context(connection)));
  std::string cookie;
  PageResponse response;
  try {
    response = server->Respond(connection, &cookie);
  } catch (const std::exception&) {  // no memory, no thread; civetweb is C
    response = Refuse(503, "this machine is too busy: try again");
  }
  // Not mg_printf, which takes most of the stack under the address sanitizer.
  const std::string head = absl::StrCat(
      "HTTP/1.1 ", response.status, " ", mg_get_response_code_text(connection, response.status),
      "\r\nContent-Type: ", response.type, "\r\nContent-Length: ", response.body.size(), "\r\n",
      cookie, kHeaders);
  mg_write(connection, head.data(), head.size());
  mg_write(connection, response.body.data(), response.body.size());
  return response.status;  // nonzero: handled
}

void LocalServer::Stop::operator()(mg_context* server) const {
  mg_stop(server);
  mg_exit_library();
}

absl::StatusOr<std::unique_ptr<LocalServer>> LocalServer::Start(Handler handler,
                                                                uint16_t published_port) {
  auto server = std::unique_ptr<LocalServer>(new LocalServer(std::move(handler)));
  PM_ASSIGN_OR_RETURN(server->token_, RandomHex());
  PM_ASSIGN_OR_RETURN(const std::string secret, RandomHex());
  PM_ASSIGN_OR_RETURN(const std::string folder, RandomHex());
  server->cookie_ = absl::StrCat("privatemail=", secret);
  server->folder_ = absl::StrCat("/", folder.substr(0, 32), "/");
  mg_callbacks callbacks = {};
  callbacks.begin_request = &LocalServer::Serve;
  const std::string listen = published_port == 0 ? "127.0.0.1:0" : absl::StrCat(published_port);
  const char* options[] = {"listening_ports",    listen.c_str(),       "num_threads", kThreads,
                           "request_timeout_ms", kRequestMilliseconds, nullptr};
  mg_init_library(MG_FEATURES_DEFAULT);
  server->server_.reset(mg_start(&callbacks, server.get(), options));
  if (server->server_ == nullptr) mg_exit_library();
  mg_server_port port = {};
  if (server->server_ == nullptr || mg_get_server_ports(server->server_.get(), 1, &port) != 1) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", listen));
  }
  server->origin_ = absl::StrCat("http://127.0.0.1:", port.port);
  return server;
}

}  // namespace privatemail::client
