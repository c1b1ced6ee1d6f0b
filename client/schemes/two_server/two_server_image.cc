#include "privatemail/two_server_image.h"

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/image/image_header.h"
#include "common/image/score_shares.h"
#include "common/items/item_code.h"

namespace privatemail::client {
namespace {

std::string Named(absl::string_view server, const std::string& name) {
  return absl::StrCat("server ", server, " (", Printable(TruncateUtf8(name, 100)), ")");
}

absl::StatusOr<v1::ImageHeader> ReadHeader(const std::string& server,
                                           const PublicParameters& parameters,
                                           const std::string& bytes) {
  absl::StatusOr<v1::ImageHeader> header = ReadImageHeader(bytes);
  if (!header.ok()) {
    return absl::DataLossError(absl::StrCat(server, ": ", header.status().message()));
  }
  const std::string fingerprint = Fingerprint(parameters);
  if (header->fingerprint() == fingerprint) return header;
  return absl::FailedPreconditionError(
      absl::StrCat("the image of ", server, " is of another collection: its fingerprint must be ",
                   ToHex(fingerprint), ", but is ", ToHex(header->fingerprint())));
}

// The header must describe the collection's cells; its own sizes were checked.
absl::Status CheckDescribes(const PublicParameters& parameters, const v1::ImageHeader& header) {
  const auto check = [](const std::string& field, int64_t expected, int64_t actual) {
    if (expected == actual) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("image header: ", field, " must be ", expected,
                                            " as in the collection, but is ", actual));
  };
  PM_RETURN_IF_ERROR(check("feature_dim", parameters.feature_dim, header.feature_dim()));
  PM_RETURN_IF_ERROR(check("number of partitions", std::ssize(parameters.cell_partitions),
                           header.partitions_size()));
  for (int i = 0; i < header.partitions_size(); ++i) {
    PM_RETURN_IF_ERROR(check(absl::StrCat("partitions[", i, "].lists"),
                             parameters.cell_partitions[static_cast<size_t>(i)].cells,
                             header.partitions(i).lists()));
  }
  return check("code_bytes", ItemCodeBytes(parameters), header.code_bytes());
}

absl::Status CheckSameImage(const Halves<v1::ImageHeader>& headers,
                            const Halves<std::string>& digests) {
  if (digests.a == digests.b) return absl::OkStatus();
  const uint64_t a = headers.a.items_version();
  const uint64_t b = headers.b.items_version();
  if (a == b) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the two servers must serve one image, but serve different ones of items_version ", a,
        ", with ", headers.a.items(), " and ", headers.b.items(),
        " items: the copy has not followed yet, try again later; or both were made, and one must "
        "be copied (privatemail mirror), since builds differ between machines"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the two servers must serve one image, but server A serves items_version ", a,
                   " and server B ", b, ": the copy of server ", a < b ? "A" : "B",
                   " has not followed yet; try again later"));
}

absl::Status CheckScores(const Halves<v1::GetImageResponse>& images,
                         const v1::ImageHeader& header) {
  if (!header.has_scores()) {
    return absl::FailedPreconditionError(
        "the image has no scores: it was made without; use mode lists");
  }
  for (const auto& [server, image] : {std::pair{"A", &images.a}, {"B", &images.b}}) {
    if (image->allows_scores()) continue;
    return absl::FailedPreconditionError(absl::StrCat(Named(server, image->operator_name()),
                                                      " does not allow scores; use mode lists"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDifferentOperators(const Halves<std::string>& names) {
  for (const auto& [server, name] : {std::pair{"A", names.a}, {"B", names.b}}) {
    if (!name.empty()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the operator of server ", server,
                     " must have a name, but says none: two operators cannot be told from one"));
  }
  if (names.a != names.b) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the two servers must have different operators, but both are of ",
                   Printable(TruncateUtf8(names.a, 100)), ", who would see both halves"));
}

absl::StatusOr<TwoServerImage> TwoServerImage::Create(const PublicParameters& parameters,
                                                      const Halves<v1::GetImageResponse>& images) {
  if (parameters.cell_partitions.empty()) {
    return absl::FailedPreconditionError(
        "the collection has no cells: it was created without --cells");
  }
  TwoServerImage image;
  image.operators_ = {images.a.operator_name(), images.b.operator_name()};
  PM_RETURN_IF_ERROR(CheckDifferentOperators(image.operators_));
  Halves<v1::ImageHeader> headers;
  PM_ASSIGN_OR_RETURN(headers.a,
                      ReadHeader(Named("A", image.operators_.a), parameters, images.a.header()));
  PM_ASSIGN_OR_RETURN(headers.b,
                      ReadHeader(Named("B", image.operators_.b), parameters, images.b.header()));
  image.digest_ = ImageDigest(images.a.header());
  PM_RETURN_IF_ERROR(CheckSameImage(headers, {image.digest_, ImageDigest(images.b.header())}));
  PM_RETURN_IF_ERROR(CheckDescribes(parameters, headers.a));
  image.scores_ = CheckScores(images, headers.a);
  image.header_ = std::move(headers.a);
  return image;
}

TwoServerMode TwoServerImage::DefaultMode() const {
  return scores_.ok() && header_.items() <= kMaxDefaultScoreItems ? TwoServerMode::kScores
                                                                  : TwoServerMode::kLists;
}

uint64_t TwoServerImage::AnswerBytes(const v1::ScoreRequest& /*request*/) const {
  return header_.items() * kScoreBytes;
}

uint64_t TwoServerImage::AnswerBytes(const v1::FetchListsRequest& request) const {
  const v1::ListGroup* group = FindListGroup(header_, request.group());
  return group == nullptr ? 0
                          : group->list_bytes() * static_cast<uint64_t>(request.selections_size());
}

}  // namespace privatemail::client
