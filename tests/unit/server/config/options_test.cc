#include "server/config/options.h"

#include "common/rpc/host_port.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

TEST(HostPort, ParsesHostAndPort) {
  for (const auto& [text, host, port, loopback] :
       {std::tuple{"127.9.9.9:0", "127.9.9.9", 0, true},
        {"[::1]:65535", "::1", 65535, true},
        {"localhost:1", "localhost", 1, true},
        {"0.0.0.0:1", "0.0.0.0", 1, false},
        {"[::]:1", "::", 1, false},
        {"localhost.example.com:1", "localhost.example.com", 1, false}}) {
    const auto address = ParseHostPort("--listen", text);
    ASSERT_THAT(address, IsOk()) << text;
    EXPECT_EQ(address->host, host);
    EXPECT_EQ(address->port, port);
    EXPECT_EQ(IsLoopback(address->host), loopback) << text;
    EXPECT_EQ(address->ToString(), text);
  }
  for (const char* text : {"host", ":1", "host:65536", "host:-1", "::1:5", "[]:1", "host:1x"}) {
    EXPECT_THAT(ParseHostPort("--listen", text), FailsWith(kInvalid, "--listen must be HOST:PORT"))
        << text;
  }
}

DaemonOptions Minimal() {
  DaemonOptions options;
  options.data_directory = "data";
  return options;
}

TEST(DaemonOptions, InsecureNeedsLoopbackAndNoTls) {
  DaemonOptions options = Minimal();
  options.insecure = true;
  EXPECT_THAT(CheckOptions(options).status(), IsOk());
  options.client_ca = "a";
  EXPECT_THAT(CheckOptions(options).status(), FailsWith(kInvalid, "--insecure"));
  options.client_ca.clear();
  for (const char* listen : {"0.0.0.0:1", "example.com:1"}) {
    options.listen = listen;
    EXPECT_THAT(CheckOptions(options).status(), FailsWith(kInvalid, "must be a loopback address"));
  }
  options.insecure = false;
  EXPECT_THAT(CheckOptions(options).status(), IsOk());
}

TEST(DaemonOptions, ShardsAndFrontsShareADatabase) {
  DaemonOptions options = Minimal();
  options.shard = "2/8";
  options.client_ca = "fronts";
  EXPECT_THAT(CheckOptions(options).status(), FailsWith(kInvalid, "--postgres-file must be given"));
  options.postgres_file = "conninfo";
  EXPECT_THAT(CheckOptions(options).status(), IsOk());
  options.client_ca.clear();
  EXPECT_THAT(CheckOptions(options).status(), FailsWith(kInvalid, "it needs --client-ca"));
  options.insecure = true;
  EXPECT_THAT(CheckOptions(options).status(), IsOk());
  for (const char* shard : {"2", "0/2", "3/2", "1/1", "1/17", "1/2/3", "a/2"}) {
    options.shard = shard;
    EXPECT_THAT(CheckOptions(options).status(), FailsWith(kInvalid, "--shard must be NUMBER/COUNT"))
        << shard;
  }
  options.shard.clear();
  options.shards = "a:1|b:1, c:1";
  EXPECT_THAT(CheckOptions(options).status(), IsOk());
  EXPECT_EQ(*ParseShards(options.shards),
            (std::vector<std::vector<std::string>>{{"a:1", "b:1"}, {"c:1"}}));
  for (const char* shards : {"a:1", "a:1,", "a:1,b", "a:1|,b:1"}) {
    options.shards = shards;
    EXPECT_THAT(CheckOptions(options).status(), FailsWith(kInvalid, "--shards")) << shards;
  }
}

TEST(DaemonOptions, PlainHttpIsForThisMachineOrProxies) {
  DaemonOptions options = Minimal();
  options.http_listen = "0.0.0.0:50054";
  EXPECT_THAT(CheckOptions(options).status(), FailsWith(kInvalid, "--trusted-proxies"));
  options.trusted_proxies = "192.0.2.1";
  EXPECT_THAT(CheckOptions(options).status(), IsOk());
  options.trusted_proxies.clear();
  options.http_listen = "[::1]:0";
  EXPECT_THAT(CheckOptions(options).status(), IsOk());
  options.http_listen = "localhost:1";
  EXPECT_THAT(CheckOptions(options).status(),
              FailsWith(kInvalid, "--http-listen must name an IP address"));
}

TEST(DaemonOptions, AllowedOriginsAreExact) {
  DaemonOptions options = Minimal();
  options.allowed_origins = "https://example.org, http://localhost:8080,http://[::1]:1";
  EXPECT_THAT(CheckOptions(options).status(), IsOk());
  for (const char* origin : {"*", "https://*.example.org", "example.org", "https://example.org/",
                             "https://Example.org", "ftp://example.org", "https://", "null"}) {
    options.allowed_origins = origin;
    EXPECT_THAT(CheckOptions(options).status(), FailsWith(kInvalid, origin)) << origin;
  }
}

TEST(DaemonOptions, TrustedProxiesAreAddresses) {
  DaemonOptions options = Minimal();
  options.trusted_proxies = "::ffff:10.0.0.1, ::1,";
  EXPECT_THAT(CheckOptions(options).status(), IsOk());
  EXPECT_THAT(*ParseIpAddresses("--trusted-proxies", options.trusted_proxies),
              ::testing::ElementsAre(std::string(15, '\0') + '\1', std::string("\x0a\0\0\1", 4)));
  for (const std::string wrong : {"10.0.0.0/8", "proxy", "10.0.0.1 10.0.0.2"}) {
    options.trusted_proxies = wrong;
    EXPECT_THAT(CheckOptions(options).status(),
                FailsWith(kInvalid,
                          "--trusted-proxies must be IP addresses, separated by commas, but has '" +
                              wrong + "'"));
  }
  options.trusted_proxies = "::1";
  options.insecure = true;
  EXPECT_THAT(CheckOptions(options).status(), FailsWith(kInvalid, "--insecure"));
}

}  // namespace
}  // namespace privatemail::testing
