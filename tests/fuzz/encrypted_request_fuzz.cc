// Fuzzes the server's validation of encrypted searches: a request that passes has the lengths that
// the evaluator reads, and a refusal names a field.
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/digests.h"
#include "common/lattice/evaluator.h"
#include "server/services/services.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail::server {
namespace {

// Random inputs rarely have the lengths and the digest of a valid request.
void Repair(uint8_t flags, int64_t dimensions, v1::SearchEncryptedRequest* request) {
  const auto resize = [](size_t size, std::string* bytes) { bytes->resize(size, '\x01'); };
  if ((flags & 1) != 0) {
    request->set_delta(static_cast<uint32_t>(lattice::kDeltas[request->delta() % 4]));
  }
  if (!lattice::IsDelta(request->delta())) return;
  const auto delta = static_cast<int>(request->delta());
  if ((flags & 2) != 0) resize(lattice::KeysBytes(delta), request->mutable_keys());
  if ((flags & 4) != 0) request->set_keys_digest(Sha256::Of(request->keys()));
  if ((flags & 8) == 0) return;
  for (v1::EncryptedQuery& query : *request->mutable_queries()) {
    resize(lattice::kSeedBytes, query.mutable_seed());
    resize(lattice::QueryChunkBytes(dimensions, delta), query.mutable_chunks());
  }
}

void Check(const v1::SearchEncryptedRequest& request, const PublicParameters& parameters) {
  const absl::Status status = CheckEncryptedRequest(request, parameters);
  if (!status.ok()) return Require(absl::IsInvalidArgument(status) && !status.message().empty());
  Require(request.queries_size() > 0 && request.queries_size() <= kMaxQueriesPerRequest);
  const auto delta = static_cast<int>(request.delta());
  const auto& evaluator = lattice::Evaluator::Best();
  for (const v1::EncryptedQuery& query : request.queries()) {
    const auto parsed =
        evaluator.ParseQuery(query.seed(), query.chunks(), parameters.feature_dim, delta, Shake128);
    Require(parsed == nullptr || parsed->dimensions == parameters.feature_dim);
  }
  if (request.keys().empty()) return;
  const auto keys = evaluator.ParseKeys(request.keys(), delta, Shake128);
  Require(keys == nullptr || keys->delta == delta);
}

}  // namespace
}  // namespace privatemail::server

// The first byte has flags for Repair, the second one the dimension; a serialised request follows.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace privatemail;
  if (size < 2) return 0;
  PublicParameters parameters;
  parameters.feature_dim = 1 + data[1];
  v1::SearchEncryptedRequest request;
  if (!request.ParseFromArray(data + 2, static_cast<int>(size - 2))) return 0;
  if (request.queries_size() > 8) return 0;  // each is expanded, which is slow
  server::Repair(data[0], parameters.feature_dim, &request);
  server::Check(request, parameters);
  return 0;
}
