// Fuzzes the parsers of messages. An accepted message is equal after another round trip.
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/embedding/public_parameters.h"
#include "common/items/item_checks.h"
#include "common/items/item_code.h"
#include "common/items/payload_filter.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/v1/collections.pb.h"
#include "privatemail/v1/retrieval.pb.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail {
namespace {

void CheckMatrix(const v1::Matrix& proto) {
  const absl::StatusOr<FloatMatrix> matrix = FromProto("matrix", proto);
  if (!matrix.ok()) return;
  Require(matrix->size() > 0 && matrix->allFinite());
  v1::Matrix again;
  ToProto(*matrix, &again);
  Require(*FromProto("matrix", again) == *matrix);
}

void CheckParameters(const v1::PublicParameters& proto) {
  const absl::StatusOr<PublicParameters> parameters = FromProto(proto);
  if (!parameters.ok()) return;
  v1::PublicParameters again;
  ToProto(*parameters, &again);
  Require(Fingerprint(*FromProto(again)) == Fingerprint(*parameters));
  if (!parameters->cell_codebook) return;
  // Every code decodes.
  std::string codes;
  for (int byte = 0; byte < 256; ++byte) codes.push_back(static_cast<char>(byte));
  Require(DecodeItemCodes(*parameters, codes).ok());
}

}  // namespace
}  // namespace privatemail

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace privatemail;
  const int length = static_cast<int>(size);
  if (v1::GetCollectionResponse message; message.ParseFromArray(data, length)) {
    CheckParameters(message.parameters());
    (void)CheckFingerprint(std::string(32, 'x'), message.fingerprint());
  }
  if (v1::RetrieveRequest message; message.ParseFromArray(data, length)) {
    CheckMatrix(message.release());
  }
  if (v1::CreateCollectionRequest message; message.ParseFromArray(data, length)) {
    CheckMatrix(message.anchors());
    (void)FromProto(message.settings());
  }
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (CheckPayload(text).ok() && !text.empty()) Require(IsUtf8(text));
  if (const auto filter = PayloadFilter::Parse(text); filter.ok()) (void)filter->Matches(text);
  return 0;
}
