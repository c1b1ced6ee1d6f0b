// A program of somebody else's, built against the installed SDK: calibrates, and calls a server that is not there.
#include <client/privacy/calibration.h>
#include <client/retrieval_client.h>
#include <client/transport.h>

#include <iostream>

int main() {
  const auto stddev = privatemail::AnalyticGaussianStddev(1, 1e-5);
  privatemail::ConnectionOptions options;
  options.server = "127.0.0.1:1";
  options.insecure = true;
  const auto transport = privatemail::Transport::Create(options);
  if (!stddev.ok() || !transport.ok()) return 1;
  const auto collection = transport->GetCollection("nothing");
  std::cout << *stddev << " " << collection.status() << "\n";
  return absl::IsUnavailable(collection.status()) ? 0 : 1;
}
