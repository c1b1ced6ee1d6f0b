#include "common/image/image_header.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/image/item_list.h"
#include "common/image/score_shares.h"
#include "common/items/item_text.h"

namespace privatemail {
namespace {

constexpr size_t kDigestBytes = 32;
constexpr uint32_t kMaxIdBytes = 512;

absl::Status Malformed(absl::string_view field, absl::string_view expected, uint64_t actual) {
  return absl::DataLossError(
      absl::StrCat("image header: ", field, " must be ", expected, ", but is ", actual));
}

absl::Status CheckBetween(absl::string_view field, uint64_t value, uint64_t lowest,
                          uint64_t highest) {
  if (value >= lowest && value <= highest) return absl::OkStatus();
  return Malformed(field, absl::StrCat("between ", lowest, " and ", highest), value);
}

absl::Status CheckEqual(absl::string_view field, uint64_t value, uint64_t expected) {
  if (value == expected) return absl::OkStatus();
  return Malformed(field, absl::StrCat(expected), value);
}

absl::Status CheckPartition(const v1::ImageHeader& header, int partition) {
  const v1::ListGroup& group = header.partitions(partition);
  const std::string field = absl::StrCat("partitions[", partition, "]");
  PM_RETURN_IF_ERROR(CheckBetween(field + ".lists", group.lists(), 2, kMaxLists));
  PM_RETURN_IF_ERROR(CheckBetween(field + ".rows", group.rows(), 1, header.items()));
  PM_RETURN_IF_ERROR(CheckBetween(field + ".list_bytes", group.list_bytes(), 0, kMaxListBytes));
  return CheckEqual(
      field + ".list_bytes", group.list_bytes(),
      kListChecksumBytes + group.rows() * ItemRecordBytes(header.id_bytes(), header.code_bytes()));
}

absl::Status CheckPayloads(const v1::ImageHeader& header) {
  const v1::ListGroup& group = header.payloads();
  PM_RETURN_IF_ERROR(CheckBetween("payloads.rows", group.rows(), 1, header.items()));
  PM_RETURN_IF_ERROR(CheckEqual("payloads.lists", group.lists(),
                                (header.items() + group.rows() - 1) / group.rows()));
  PM_RETURN_IF_ERROR(CheckBetween("payloads.lists", group.lists(), 1, kMaxLists));
  return CheckBetween("payloads.list_bytes", group.list_bytes(),
                      kListChecksumBytes + 4 * uint64_t{group.rows()}, kMaxListBytes);
}

// Of a section of fixed size.
std::optional<uint64_t> ExpectedBytes(const v1::ImageHeader& header, v1::ImageSection section) {
  switch (section) {
    case v1::IMAGE_SECTION_CODES:
      return header.items() * header.code_bytes();
    case v1::IMAGE_SECTION_SCORES:
      return header.items() * header.feature_dim() * sizeof(int16_t);
    case v1::IMAGE_SECTION_LISTS: {
      uint64_t rows = 0;
      for (const v1::ListGroup& group : header.partitions())
        rows += group.lists() * uint64_t{group.rows()};
      return rows * sizeof(uint32_t);
    }
    default:
      return std::nullopt;
  }
}

absl::Status CheckSections(const v1::ImageHeader& header) {
  int before = 0;
  for (const v1::ImageSectionHeader& section : header.sections()) {
    const std::string field = absl::StrCat("section ", section.section());
    if (section.section() <= before || !v1::ImageSection_IsValid(section.section())) {
      return absl::DataLossError(
          absl::StrCat("image header: ", field, " is unknown, repeated or out of order"));
    }
    before = section.section();
    PM_RETURN_IF_ERROR(
        CheckEqual(field + ".sha256 in bytes", section.sha256().size(), kDigestBytes));
    const std::optional<uint64_t> bytes = ExpectedBytes(header, section.section());
    if (bytes) {
      PM_RETURN_IF_ERROR(CheckEqual(field + ".bytes", section.bytes(), *bytes));
    } else {
      PM_RETURN_IF_ERROR(CheckBetween(
          field + ".bytes", section.bytes(), 0,
          section.section() == v1::IMAGE_SECTION_TABLE ? kMaxTableBytes : kMaxPayloadBytes));
    }
  }
  for (const auto section :
       {v1::IMAGE_SECTION_TABLE, v1::IMAGE_SECTION_CODES, v1::IMAGE_SECTION_LISTS}) {
    PM_RETURN_IF_ERROR(CheckEqual(absl::StrCat("number of sections ", section),
                                  FindSection(header, section) != nullptr, 1));
  }
  PM_RETURN_IF_ERROR(CheckEqual("has_scores", header.has_scores(),
                                FindSection(header, v1::IMAGE_SECTION_SCORES) != nullptr));
  if (header.has_scores()) {  // the sums of larger ones could wrap around
    PM_RETURN_IF_ERROR(CheckBetween("feature_dim with scores", header.feature_dim(), 1,
                                    static_cast<uint64_t>(kMaxScoreDim)));
  }
  return CheckEqual("number of sections of payloads",
                    FindSection(header, v1::IMAGE_SECTION_PAYLOADS) != nullptr,
                    header.has_payloads());
}

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string ImageDigest(absl::string_view header) { return Sha256::Of(header); }

std::string ImageSignatureText(absl::string_view digest) {
  return absl::StrCat("privatemail image 1\n", digest);
}

absl::Status CheckImageSignature(absl::string_view digest, absl::string_view signer,
                                 absl::string_view signature) {
  if (signer.size() != kSignerBytes || signature.size() != kSignatureBytes) {
    return absl::DataLossError(absl::StrCat(
        "signer and signature of the image must have ", kSignerBytes, " and ", kSignatureBytes,
        " bytes, but have ", signer.size(), " and ", signature.size()));
  }
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(signer), signer.size()),
      EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const std::string text = ImageSignatureText(digest);
  if (key != nullptr && context != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(text),
                       text.size()) == 1) {
    return absl::OkStatus();
  }
  return absl::DataLossError("the image's signature is not that of its signer");
}

absl::StatusOr<v1::ImageHeader> ReadImageHeader(absl::string_view bytes) {
  v1::ImageHeader header;
  if (!header.ParseFromArray(bytes.data(),
                             static_cast<int>(std::min<size_t>(bytes.size(), 1 << 20))) ||
      bytes.size() > (1 << 20)) {
    return absl::DataLossError("image header: it cannot be parsed");
  }
  PM_RETURN_IF_ERROR(CheckEqual("version", header.version(), kImageVersion));
  PM_RETURN_IF_ERROR(CheckEqual("fingerprint in bytes", header.fingerprint().size(), kDigestBytes));
  PM_RETURN_IF_ERROR(CheckBetween("items", header.items(), 1, kMaxImageItems));
  PM_RETURN_IF_ERROR(CheckBetween("feature_dim", header.feature_dim(), 1, 1 << 20));
  PM_RETURN_IF_ERROR(CheckBetween("id_bytes", header.id_bytes(), 1, kMaxIdBytes));
  PM_RETURN_IF_ERROR(CheckBetween("code_bytes", header.code_bytes(), 1, 4 << 20));
  PM_RETURN_IF_ERROR(
      CheckBetween("number of partitions", static_cast<uint64_t>(header.partitions_size()), 1, 8));
  for (int partition = 0; partition < header.partitions_size(); ++partition) {
    PM_RETURN_IF_ERROR(CheckPartition(header, partition));
  }
  if (header.has_payloads()) PM_RETURN_IF_ERROR(CheckPayloads(header));
  PM_RETURN_IF_ERROR(CheckSections(header));
  return header;
}

const v1::ImageSectionHeader* FindSection(const v1::ImageHeader& header, v1::ImageSection section) {
  const auto found =
      std::find_if(header.sections().begin(), header.sections().end(),
                   [&](const v1::ImageSectionHeader& one) { return one.section() == section; });
  return found == header.sections().end() ? nullptr : &*found;
}

const v1::ListGroup* FindListGroup(const v1::ImageHeader& header, uint32_t group) {
  const uint32_t payloads = PayloadGroup(header);
  if (group < payloads) return &header.partitions(static_cast<int>(group));
  return group == payloads && header.has_payloads() ? &header.payloads() : nullptr;
}

uint32_t PayloadGroup(const v1::ImageHeader& header) {
  return static_cast<uint32_t>(header.partitions_size());
}

std::optional<SectionEntries> CountSectionEntries(absl::string_view bytes) {
  using google::protobuf::internal::WireFormatLite;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  google::protobuf::io::CodedInputStream in(data, static_cast<int>(bytes.size()));
  SectionEntries entries;
  while (const uint32_t tag = in.ReadTag()) {
    uint32_t length = 0;
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED ||
        !in.ReadVarint32(&length)) {
      return std::nullopt;
    }
    const int begin = in.CurrentPosition();
    if (!in.Skip(static_cast<int>(length))) return std::nullopt;
    switch (WireFormatLite::GetTagFieldNumber(tag)) {
      case v1::ImageTable::kIdsFieldNumber:  // as ImagePayloads::kPayloadsFieldNumber
        ++entries.texts;
        break;
      case v1::ImageTable::kLabelsFieldNumber:
        entries.numbers += static_cast<uint64_t>(std::count_if(
            data + begin, data + begin + length, [](uint8_t byte) { return byte < 0x80; }));
        break;
      default:
        return std::nullopt;
    }
  }
  if (!in.ConsumedEntireMessage()) return std::nullopt;
  return entries;
}

absl::StatusOr<v1::ImageTable> ReadImageTable(const v1::ImageHeader& header,
                                              absl::string_view bytes) {
  const v1::ImageSectionHeader* section = FindSection(header, v1::IMAGE_SECTION_TABLE);
  if (section == nullptr || bytes.size() > kMaxTableBytes ||
      Sha256::Of(bytes) != section->sha256()) {
    return absl::DataLossError(
        "the table of ids and labels does not have the digest of the image's header");
  }
  const std::optional<SectionEntries> entries = CountSectionEntries(bytes);
  if (!entries) return absl::DataLossError("the table of ids and labels cannot be parsed");
  PM_RETURN_IF_ERROR(CheckEqual("ids of the table", entries->texts, header.items()));
  PM_RETURN_IF_ERROR(CheckEqual("labels of the table", entries->numbers, header.items()));
  v1::ImageTable table;
  if (!table.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("the table of ids and labels cannot be parsed");
  }
  for (const std::string& id : table.ids()) {
    if (!IsUtf8(id)) return absl::DataLossError("the table of ids and labels: an id is not UTF-8");
  }
  return table;
}

}  // namespace privatemail
