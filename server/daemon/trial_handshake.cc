#include "server/daemon/trial_handshake.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

constexpr char kTls12Ciphers[] = "ECDHE+AESGCM";  // what is common to gRPC's on both sides
constexpr int kMaxRounds = 10;                    // a handshake takes three

struct FreeSsl {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* connection) const { SSL_free(connection); }
};
using Context = std::unique_ptr<SSL_CTX, FreeSsl>;
using Connection = std::unique_ptr<SSL, FreeSsl>;

absl::Status Refused() {
  return absl::FailedPreconditionError(OpenSslReason("be served over TLS"));
}

Context MakeContext(const SSL_METHOD* method) {
  Context context(SSL_CTX_new(method));
  if (context != nullptr && SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) == 1 &&
      SSL_CTX_set_cipher_list(context.get(), kTls12Ciphers) == 1) {
    return context;
  }
  return nullptr;
}

absl::StatusOr<Context> ServerContext(const std::vector<Certificate>& chain, EVP_PKEY* key) {
  Context context = MakeContext(TLS_server_method());
  if (context == nullptr || SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Refused();
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) != 1) return Refused();
  }
  return context;
}

// Joined to each other, without a network between them.
bool Join(SSL* server, SSL* client) {
  BIO* server_end = nullptr;
  BIO* client_end = nullptr;
  if (BIO_new_bio_pair(&server_end, 0, &client_end, 0) != 1) return false;
  SSL_set_bio(server, server_end, server_end);
  SSL_set_bio(client, client_end, client_end);
  SSL_set_accept_state(server);
  SSL_set_connect_state(client);
  return true;
}

bool Failed(SSL* connection, int result) {
  const int error = SSL_get_error(connection, result);
  return error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
}

}  // namespace

absl::Status TryHandshake(const std::vector<Certificate>& chain, EVP_PKEY* key) {
  ERR_clear_error();
  PM_ASSIGN_OR_RETURN(const Context server_context, ServerContext(chain, key));
  const Context client_context = MakeContext(TLS_client_method());
  if (client_context == nullptr) return Refused();
  const Connection server(SSL_new(server_context.get()));
  const Connection client(SSL_new(client_context.get()));
  if (server == nullptr || client == nullptr || !Join(server.get(), client.get())) return Refused();
  for (int round = 0; round < kMaxRounds; ++round) {
    const int asked = SSL_do_handshake(client.get());
    if (Failed(client.get(), asked)) return Refused();
    const int answered = SSL_do_handshake(server.get());
    if (Failed(server.get(), answered)) return Refused();
    if (asked == 1 && answered == 1) return absl::OkStatus();
  }
  return Refused();
}

}  // namespace privatemail::server
