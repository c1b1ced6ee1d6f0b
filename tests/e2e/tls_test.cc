// TLS: trusted and untrusted servers, mutual TLS. Access keys: create, list, revoke, calls without.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/e2e/service.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A daemon with its self-signed certificate.
class Tls : public Service {
 protected:
  void SetUp() override {
    daemon_ = std::make_unique<Daemon>(folder_ / "data");
    ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
  }

  // Both flags that make a client trust the daemon.
  std::vector<Command> Trusts() const {
    return {{"--trust", daemon_->fingerprint()}, {"--ca", daemon_->certificate()}};
  }

  Outcome ListWith(const Command& trust) const {
    Command command = Join({"collection", "list", "--json", "--server", daemon_->address()}, trust);
    if (!daemon_->admin_key().empty() && trust != Command{"--insecure"}) {
      command.insert(command.end(), {"--key-file", daemon_->admin_key()});
    }
    return Run(command);
  }

  void ExpectRefused(const Command& trust, const std::string& code,
                     const std::vector<std::string>& parts) const {
    SCOPED_TRACE(::testing::PrintToString(trust));
    const Outcome outcome = ListWith(trust);
    EXPECT_EQ(outcome.exit_code, code == "INVALID_ARGUMENT" ? 2 : 1);
    const json error = outcome.json()["error"];
    ASSERT_TRUE(error.is_object()) << outcome.out << outcome.err;
    EXPECT_EQ(error["code"], code);
    for (const std::string& part : parts) {
      EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(part));
    }
  }
};

TEST_F(Tls, UntrustedServerIsRefused) {
  const std::string remedy = "its certificate is not trusted";
  ExpectRefused(
      {}, "UNAVAILABLE",
      {daemon_->address(), remedy, "or it is not valid at this time: set this machine's clock ("});
  ExpectRefused({"--insecure"}, "UNAVAILABLE", {daemon_->address(), "it probably speaks TLS"});
  std::string other = daemon_->fingerprint();
  ExpectRefused({"--insecure", "--trust", other}, "INVALID_ARGUMENT",
                {"--trust does not apply with an authority or without TLS"});
  other[63] = other[63] == '0' ? '1' : '0';
  ExpectRefused({"--trust", other}, "UNAVAILABLE",
                {daemon_->address(), daemon_->fingerprint(), other});
  daemon_ = std::make_unique<Daemon>(folder_ / "other");
  ASSERT_TRUE(daemon_->listening());
  ExpectRefused({"--ca", folder_ / "data/tls/server.crt"}, "UNAVAILABLE",
                {daemon_->address(), remedy});
  daemon_ = std::make_unique<Daemon>(folder_ / "plain", Command{"--insecure"});
  ASSERT_TRUE(daemon_->listening());
  ExpectRefused({"--trust", other}, "UNAVAILABLE", {daemon_->address(), "it does not speak TLS"});
}

// The library does not tell this from another authority.
TEST_F(Tls, MissingIntermediateCertificateIsACauseThatIsNamed) {
  const std::string tls = folder_ / "chain/tls";
  std::filesystem::create_directories(tls);
  const std::string make =
      "cd " + tls +
      " && { key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'; "
      "echo basicConstraints=CA:TRUE > ca; echo subjectAltName=IP:127.0.0.1 > leaf; "
      "openssl req -x509 $key -subj /CN=root -keyout root.key -out root.crt -days 2 && "
      "openssl req $key -subj /CN=middle -keyout middle.key -out request && "
      "openssl x509 -req -in request -CA root.crt -CAkey root.key -CAcreateserial -extfile ca "
      "-days 2 -out middle.crt && "
      "openssl req $key -subj /CN=leaf -keyout server.key -out request && "
      "openssl x509 -req -in request -CA middle.crt -CAkey middle.key -CAcreateserial -extfile "
      "leaf -days 2 -out server.crt; } 2>/dev/null";
  ASSERT_EQ(std::system(make.c_str()), 0);
  daemon_ = std::make_unique<Daemon>(folder_ / "chain");
  ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
  ExpectRefused({"--ca", tls + "/root.crt"}, "UNAVAILABLE",
                {"the server does not send the certificates of intermediate authorities, which "
                 "its tls_cert must hold after its own"});
  ASSERT_EQ(std::system(("cd " + tls + " && cat middle.crt >> server.crt").c_str()), 0);
  daemon_.reset();
  daemon_ = std::make_unique<Daemon>(folder_ / "chain");
  ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
  EXPECT_EQ(ListWith({"--ca", tls + "/root.crt"}).exit_code, 0);
}

// As after a clock that is set to another year, on either side.
TEST_F(Tls, ExpiredCertificateSaysWhatToDoOnBothSides) {
  const std::string tls = folder_ / "expired/tls";
  std::filesystem::create_directories(tls);
  const std::string make =
      "cd " + tls +
      " && { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=privatemaild "
      "-keyout server.key -out request && openssl x509 -req -in request -signkey server.key "
      "-days -1 -out server.crt; } 2>/dev/null";
  ASSERT_EQ(std::system(make.c_str()), 0);
  daemon_ = std::make_unique<Daemon>(folder_ / "expired");
  ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
  EXPECT_EQ(ListWith({"--trust", daemon_->fingerprint()}).exit_code, 0);
  ExpectRefused(
      {"--ca", daemon_->certificate()}, "UNAVAILABLE",
      {daemon_->address(), daemon_->certificate() + " expired at ",
       ", and by this machine's clock it is ",
       ": set the clock if it is wrong, otherwise ask the server's operator for a new one"});
  daemon_->program().Signal(SIGTERM);
  const Outcome ended = daemon_->program().Wait();
  EXPECT_THAT(ended.err, HasSubstr(" by this machine's clock ("));
  EXPECT_THAT(ended.err,
              HasSubstr("clients with --ca will refuse it; set the clock if it is wrong, "
                        "otherwise delete it and "));
}

// The daemon accepts the user's self-signed certificate as authority.
class MutualTls : public Tls {
 protected:
  void SetUp() override {
    const Outcome made = Program({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                                  "ec_paramgen_curve:P-256", "-nodes", "-keyout", key_, "-out",
                                  certificate_, "-subj", "/CN=user", "-days", "2"})
                             .Wait();
    ASSERT_EQ(made.exit_code, 0) << made.err;
    daemon_ = std::make_unique<Daemon>(folder_ / "data",
                                       std::vector<std::string>{"--client-ca", certificate_});
    ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
  }

  const std::string certificate_ = folder_ / "user.crt";
  const std::string key_ = folder_ / "user.key";
};

TEST_F(MutualTls, ClientWithCertificateIsAccepted) {
  for (Command flags : Trusts()) {
    flags.insert(flags.end(), {"--cert", certificate_, "--cert-key", key_});
    const Outcome outcome = ListWith(flags);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.json(), IsEmpty());
  }
}

TEST_F(MutualTls, MissingOrUnusableCertificateOrKeyIsRefused) {
  for (const Command& trust : Trusts()) {
    ExpectRefused(trust, "UNAVAILABLE", {daemon_->address(), "requires a client certificate"});
  }
  const auto with_key = [&](const std::string& key, unsigned mode) -> Command {
    std::filesystem::permissions(key, std::filesystem::perms(mode));
    return {"--cert", certificate_, "--cert-key", key};
  };
  ExpectRefused({"--cert", certificate_}, "INVALID_ARGUMENT",
                {"--cert-key must be given with a certificate"});
  const std::string text = folder_.Write("text.key", "key");
  ExpectRefused(with_key(text, 0644), "PERMISSION_DENIED", {"--cert-key", "mode 0644"});
  ExpectRefused(
      with_key(text, 0600), "INVALID_ARGUMENT",
      {"--cert-key", "text.key", "holds no private key in PEM format without a passphrase"});
  ExpectRefused(with_key(folder_ / "data/tls/server.key", 0600), "INVALID_ARGUMENT",
                {"--cert-key must be the key of the certificate", certificate_, "server.key"});
}

class Keys : public Tls {
 protected:
  void SetUp() override {
    Tls::SetUp();
    user_.flags = {"--server", daemon_->address(), "--trust", daemon_->fingerprint()};
  }

  Outcome With(const std::string& key_file, std::vector<std::string> command) const {
    command.insert(command.end(), {"--key-file", key_file, "--json"});
    return Run(command);
  }
  Outcome Admin(const Command& command) const { return With(daemon_->admin_key(), command); }
};

TEST_F(Keys, DaemonPrintsNoKey) {
  std::string key;
  std::ifstream(daemon_->admin_key()) >> key;
  EXPECT_EQ(Admin({"collection", "list"}).exit_code, 0);
  daemon_->program().Signal(SIGTERM);
  const Outcome ended = daemon_->program().Wait();
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(key.substr(16))));
}

// Scopes: AccessControlTest. Expired keys: KeyRingTest.ExpiredKeyReturnsTimeOfExpiry.
TEST_F(Keys, CreatedKeyHasItsScopeUntilRevoked) {
  const std::string file = folder_ / "reader.key";
  const Outcome outcome = Admin({"key", "create", "reader", "--scope", "search", "--collection",
                                 "fruit", "--rate", "50", "--expires", "30d", "--out", file});
  EXPECT_THAT(outcome.err, HasSubstr("warning: collection fruit"));
  const json made = outcome.json();
  EXPECT_EQ(made["scopes"], json::array({"search"}));
  EXPECT_EQ(made["collections"], json::array({"fruit"}));
  EXPECT_EQ(made["requests_per_second"], 50);
  const int64_t lasts = made["expires_at"].get<int64_t>() - made["created_at"].get<int64_t>();
  EXPECT_NEAR(static_cast<double>(lasts), 30 * 86400, 60);
  EXPECT_EQ(made.count("key"), 0u);
  EXPECT_EQ(ModeOf(file), 0600u);
  EXPECT_THAT(With(file, {"collection", "list"}).json(), IsEmpty());
  EXPECT_EQ(With(file, {"collection", "info", "fish"}).json()["error"]["code"],
            "PERMISSION_DENIED");
  for (const json& key : Admin({"key", "list"}).json()) {
    EXPECT_EQ(key["expires_at"].is_null(), key["name"] == "admin") << key;
  }
  EXPECT_FALSE(Admin({"key", "revoke", made["id"]}).json()["revoked_at"].is_null());
  EXPECT_EQ(With(file, {"collection", "list"}).json()["error"]["code"], "UNAUTHENTICATED");
  EXPECT_EQ(Admin({"key", "list"}).json().size(), 2u);
  const json printed = Admin({"key", "create", "n", "--scope", "write", "--out", "-"}).json();
  EXPECT_THAT(printed["key"].get<std::string>(),
              HasSubstr("pm_" + printed["id"].get<std::string>()));
}

TEST_F(Keys, InvalidScopeOrFileCreatesNoKey) {
  const auto error = [&](const std::string& scope, const std::string& file) {
    return Admin({"key", "create", "n", "--scope", scope, "--out", file}).json()["error"];
  };
  EXPECT_EQ(error("search", folder_.Write("n.key", "of somebody else"))["code"], "ALREADY_EXISTS");
  EXPECT_EQ(error("search", folder_ / "none/n.key")["code"], "INVALID_ARGUMENT");
  EXPECT_THAT(error("all", folder_ / "m.key")["message"].get<std::string>(),
              HasSubstr("--scope must be admin, search or write"));
  EXPECT_EQ(Admin({"key", "list"}).json().size(), 1u) << "no key was made";
}

TEST_F(Keys, HealthOfACollectionRequiresAKey) {
  EXPECT_EQ(Run({"health", "--json"}).json(), (json{{"status", "SERVING"}, {"read_only", false}}));
  const json nameless = Run({"health", "--collection", "things", "--json"}).json()["error"];
  EXPECT_EQ(nameless["code"], "UNAUTHENTICATED");
  EXPECT_EQ(Admin({"health", "--collection", "things"}).json()["error"]["code"], "NOT_FOUND");
  daemon_->program().Signal(SIGTERM);
  EXPECT_EQ(daemon_->program().Wait().exit_code, 0);
  EXPECT_EQ(Run({"health"}).exit_code, 1);
  // Exit code 1 would make a supervisor restart the server.
  EXPECT_EQ(Run({"health", "--key-file", folder_ / "none.key"}).exit_code, 2);
  const std::string open = folder_.Write("open.key", "key");
  std::filesystem::permissions(open, std::filesystem::perms(0644));
  EXPECT_EQ(Run({"health", "--key-file", open}).exit_code, 2);
}

}  // namespace
}  // namespace privatemail::e2e
