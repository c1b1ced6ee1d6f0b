#include "server/image/image.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/image/image_header.h"
#include "common/image/item_list.h"

namespace privatemail::server {
namespace {

constexpr absl::string_view kFileMagic("\x89PMIMG1\n", 8);
constexpr size_t kDigestBytes = 32;
constexpr uint64_t kMaxFileHeaderBytes = 1 << 20;  // as ReadImageHeader

int64_t SectionBytes(const v1::ImageHeader& header, v1::ImageSection section) {
  const v1::ImageSectionHeader* found = FindSection(header, section);
  return found == nullptr ? 0 : static_cast<int64_t>(found->bytes());
}

constexpr int64_t kTextBytes = 56;  // of a parsed id or payload, in addition to its bytes

int64_t AllSectionBytes(const v1::ImageHeader& header) {
  int64_t bytes = 0;
  for (const v1::ImageSectionHeader& section : header.sections()) {
    bytes += static_cast<int64_t>(section.bytes());
  }
  return bytes;
}

uint32_t CountGroups(const v1::ImageHeader& header) {
  return PayloadGroup(header) + (header.has_payloads() ? 1 : 0);
}

// Of all lists, one after the other.
size_t GroupBytes(const v1::ListGroup& group) { return group.lists() * group.list_bytes(); }

// Sizes and digests.
absl::Status CheckSections(const v1::ImageHeader& header, const ImageParts& parts) {
  if (std::ssize(parts.sections) != header.sections_size()) {
    return absl::DataLossError(absl::StrCat("the image must have ", header.sections_size(),
                                            " sections, but has ", parts.sections.size()));
  }
  for (int i = 0; i < header.sections_size(); ++i) {
    const v1::ImageSectionHeader& section = header.sections(i);
    const std::string& bytes = parts.sections[static_cast<size_t>(i)];
    const std::string name = absl::StrCat("the image's section ", section.section());
    if (bytes.size() != section.bytes()) {
      return absl::DataLossError(
          absl::StrCat(name, " must have ", section.bytes(), " bytes, but has ", bytes.size()));
    }
    if (Sha256::Of(bytes) != section.sha256()) {
      return absl::DataLossError(absl::StrCat(name, " does not match its digest"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTable(const v1::ImageHeader& header, const v1::ImageTable& table) {
  for (int row = 0; row < table.ids_size(); ++row) {
    const std::string& id = table.ids(row);
    if (id.size() > header.id_bytes() || (row > 0 && !(table.ids(row - 1) < id))) {
      return absl::DataLossError(absl::StrCat("the image's table: id of row ", row,
                                              " is longer than id_bytes (", header.id_bytes(),
                                              ") or does not ascend"));
    }
  }
  return absl::OkStatus();
}

uint32_t RowAt(absl::string_view rows, size_t place) {
  uint32_t row;
  std::memcpy(&row, rows.data() + place * sizeof(row), sizeof(row));
  return row;
}

// rows: of all lists of the group, `sizeof(uint32_t)` bytes each.
absl::StatusOr<std::string> ExpandLists(const v1::ImageHeader& header, uint32_t group,
                                        absl::string_view rows, absl::string_view codes,
                                        const v1::ImageTable& table) {
  const v1::ListGroup& of = *FindListGroup(header, group);
  const size_t length = of.rows(), code_bytes = header.code_bytes();
  std::string lists(GroupBytes(of), '\0');
  const auto expand = [&](int list, TaskGroup&) -> absl::Status {
    std::vector<ListedItem> items(length);
    for (size_t i = 0; i < length; ++i) {
      const uint32_t row = RowAt(rows, static_cast<size_t>(list) * length + i);
      if (row >= header.items()) {
        return absl::DataLossError(absl::StrCat("list ", list, " of group ", group,
                                                " of the image: a row must be below ",
                                                header.items(), ", but is ", row));
      }
      items[i] = {.row = row,
                  .label = table.labels(static_cast<int>(row)),
                  .id = table.ids(static_cast<int>(row)),
                  .code = codes.substr(row * code_bytes, code_bytes)};
    }
    WriteItemList(header, group, static_cast<uint32_t>(list), items,
                  lists.data() + static_cast<size_t>(list) * of.list_bytes());
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(ParallelFor(static_cast<int>(of.lists()), expand, nullptr));
  return lists;
}

absl::Status PayloadsError(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the image's payloads ", why));
}

absl::StatusOr<std::string> ExpandPayloads(const v1::ImageHeader& header,
                                           absl::string_view section) {
  const v1::ListGroup& of = header.payloads();
  const std::optional<SectionEntries> entries = CountSectionEntries(section);
  v1::ImagePayloads message;
  if (!entries || entries->texts != header.items() || entries->numbers != 0 ||
      !message.ParseFromArray(section.data(), static_cast<int>(section.size()))) {
    return PayloadsError("cannot be parsed, or are not one an item");
  }
  std::string lists(GroupBytes(of), '\0');
  for (size_t list = 0; list < of.lists(); ++list) {
    const size_t first = list * of.rows();
    const size_t last = std::min<size_t>(first + of.rows(), header.items());
    std::vector<absl::string_view> payloads;
    size_t bytes = kListChecksumBytes;
    for (size_t row = first; row < last; ++row) {
      payloads.emplace_back(message.payloads(static_cast<int>(row)));
      bytes += sizeof(uint32_t) + payloads.back().size();
    }
    if (bytes > of.list_bytes()) return PayloadsError(absl::StrCat("exceed list ", list));
    WritePayloadList(header, static_cast<uint32_t>(list), payloads,
                     lists.data() + list * of.list_bytes());
  }
  return lists;
}

// The section of lists.
std::string ListedRows(const Image& image) {
  const v1::ImageHeader& header = image.header();
  const size_t record = ItemRecordBytes(header.id_bytes(), header.code_bytes());
  std::string rows;
  rows.reserve(static_cast<size_t>(SectionBytes(header, v1::IMAGE_SECTION_LISTS)));
  for (uint32_t group = 0; group < PayloadGroup(header); ++group) {
    const v1::ListGroup& of = *FindListGroup(header, group);
    for (size_t list = 0; list < of.lists(); ++list) {
      const char* next = image.lists(group).data() + list * of.list_bytes() + kListChecksumBytes;
      for (size_t i = 0; i < of.rows(); ++i, next += record) rows.append(next, sizeof(uint32_t));
    }
  }
  return rows;
}

// The section of payloads; of an image without them, nothing.
std::string SerialisePayloads(const Image& image) {
  const v1::ImageHeader& header = image.header();
  const v1::ListGroup& of = header.payloads();
  v1::ImagePayloads message;
  for (uint32_t list = 0; list < of.lists(); ++list) {
    const absl::string_view bytes =
        image.lists(PayloadGroup(header)).substr(list * of.list_bytes(), of.list_bytes());
    const auto payloads = ReadPayloadList(header, list, bytes).value();
    for (const absl::string_view payload : payloads) {
      message.add_payloads(payload.data(), payload.size());
    }
  }
  return message.SerializeAsString();
}

// A file that is read from its beginning.
class FileReader {
 public:
  // NOT_FOUND, FAILED_PRECONDITION.
  static absl::StatusOr<FileReader> Open(const std::string& path) {
    std::error_code error;
    const auto kind = std::filesystem::status(path, error).type();
    if (kind == std::filesystem::file_type::not_found) {
      return absl::NotFoundError(absl::StrCat(path, ": no such file"));
    }
    FileReader reader(path);
    if (kind == std::filesystem::file_type::regular) {
      reader.left_ = std::filesystem::file_size(path, error);
      reader.file_.open(path, std::ios::binary);
    }
    if (error || !reader.file_.is_open()) {
      return absl::FailedPreconditionError(absl::StrCat(path, ": it cannot be read"));
    }
    return reader;
  }

  uint64_t left() const { return left_; }

  // DATA_LOSS: the file ends before.
  absl::StatusOr<std::string> Read(uint64_t bytes) {
    if (bytes > left_) return Damaged("it is too short");
    std::string read(bytes, '\0');
    if (!file_.read(read.data(), static_cast<std::streamsize>(bytes))) {
      return Damaged("it cannot be read");
    }
    left_ -= bytes;
    return read;
  }

  absl::Status Damaged(absl::string_view why) const {
    return absl::DataLossError(absl::StrCat("the image's file ", path_, " is damaged: ", why));
  }

 private:
  explicit FileReader(const std::string& path) : path_(path) {}

  std::string path_;
  std::ifstream file_;
  uint64_t left_ = 0;
};

// The bytes of the checked header. The rest of the file is as long as its sections.
absl::StatusOr<std::string> ReadHeaderBytes(FileReader* file) {
  PM_ASSIGN_OR_RETURN(const std::string magic, file->Read(kFileMagic.size()));
  if (magic != kFileMagic) return file->Damaged("first bytes");
  PM_ASSIGN_OR_RETURN(const std::string length_bytes, file->Read(sizeof(uint64_t)));
  uint64_t length;
  std::memcpy(&length, length_bytes.data(), sizeof(length));
  if (length > kMaxFileHeaderBytes) return file->Damaged("length of the header");
  PM_ASSIGN_OR_RETURN(const std::string digest, file->Read(kDigestBytes));
  PM_ASSIGN_OR_RETURN(std::string bytes, file->Read(length));
  if (ImageDigest(bytes) != digest) return file->Damaged("digest of the header");
  PM_ASSIGN_OR_RETURN(const v1::ImageHeader header, ReadImageHeader(bytes));
  const auto expected = static_cast<uint64_t>(AllSectionBytes(header));
  if (file->left() != expected) {
    return file->Damaged(
        absl::StrCat("its sections must have ", expected, " bytes, but have ", file->left()));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Image>> Image::Create(ImageParts parts) {
  const std::shared_ptr<Image> image(new Image);
  PM_ASSIGN_OR_RETURN(image->header_, ReadImageHeader(parts.header));
  const v1::ImageHeader& header = image->header_;
  PM_RETURN_IF_ERROR(CheckSections(header, parts));
  const auto take = [&](v1::ImageSection section) {
    for (int i = 0; i < header.sections_size(); ++i) {
      if (header.sections(i).section() == section) {
        return std::move(parts.sections[static_cast<size_t>(i)]);
      }
    }
    return std::string();
  };
  image->digest_ = ImageDigest(parts.header);
  image->header_bytes_ = std::move(parts.header);
  image->table_ = take(v1::IMAGE_SECTION_TABLE);
  image->codes_ = take(v1::IMAGE_SECTION_CODES);
  image->scores_ = take(v1::IMAGE_SECTION_SCORES);
  {
    PM_ASSIGN_OR_RETURN(const v1::ImageTable table, ReadImageTable(header, image->table_));
    PM_RETURN_IF_ERROR(CheckTable(header, table));
    const std::string listed = take(v1::IMAGE_SECTION_LISTS);
    absl::string_view rows = listed;
    for (uint32_t group = 0; group < PayloadGroup(header); ++group) {
      PM_ASSIGN_OR_RETURN(std::string lists,
                          ExpandLists(header, group, rows, image->codes_, table));
      image->lists_.push_back(std::move(lists));
      const v1::ListGroup& of = header.partitions(static_cast<int>(group));
      rows.remove_prefix(of.lists() * size_t{of.rows()} * sizeof(uint32_t));
    }
  }
  if (header.has_payloads()) {
    const std::string section = take(v1::IMAGE_SECTION_PAYLOADS);
    PM_ASSIGN_OR_RETURN(std::string lists, ExpandPayloads(header, section));
    image->lists_.push_back(std::move(lists));
    // A message has many serialisations; whoever mirrors this image gets ours.
    if (image->Section(v1::IMAGE_SECTION_PAYLOADS) != section) {
      return PayloadsError("are not serialised as this server does");
    }
  }
  return image;
}

int64_t Image::MemoryToKeep(const v1::ImageHeader& header) {
  int64_t bytes = SectionBytes(header, v1::IMAGE_SECTION_TABLE) +
                  SectionBytes(header, v1::IMAGE_SECTION_CODES) +
                  SectionBytes(header, v1::IMAGE_SECTION_SCORES);
  for (uint32_t group = 0; group < CountGroups(header); ++group) {
    bytes += static_cast<int64_t>(GroupBytes(*FindListGroup(header, group)));
  }
  return bytes;
}

int64_t Image::MemoryToCreate(const v1::ImageHeader& header) {
  const int64_t texts = std::max(SectionBytes(header, v1::IMAGE_SECTION_TABLE),
                                 2 * SectionBytes(header, v1::IMAGE_SECTION_PAYLOADS));
  return MemoryToKeep(header) + SectionBytes(header, v1::IMAGE_SECTION_LISTS) +
         SectionBytes(header, v1::IMAGE_SECTION_PAYLOADS) + texts +
         kTextBytes * static_cast<int64_t>(header.items());
}

const int16_t* Image::scores() const {
  return header_.has_scores() ? reinterpret_cast<const int16_t*>(scores_.data()) : nullptr;
}

std::optional<absl::string_view> Image::KeptSection(v1::ImageSection section) const {
  switch (section) {
    case v1::IMAGE_SECTION_TABLE:
      return table_;
    case v1::IMAGE_SECTION_CODES:
      return codes_;
    case v1::IMAGE_SECTION_SCORES:
      return scores_;
    default:
      return std::nullopt;
  }
}

std::string Image::Section(v1::ImageSection section) const {
  if (const auto kept = KeptSection(section)) return std::string(*kept);
  return section == v1::IMAGE_SECTION_LISTS ? ListedRows(*this) : SerialisePayloads(*this);
}

int64_t Image::MemoryOfSection(v1::ImageSection section) const {
  const int64_t bytes = SectionBytes(header_, section);
  if (section != v1::IMAGE_SECTION_PAYLOADS) return bytes;
  return 2 * bytes + kTextBytes * static_cast<int64_t>(header_.items());
}

absl::Status WriteImageFile(const Image& image, const std::string& path) {
  const uint64_t length = image.header_bytes().size();
  const std::string start = absl::StrCat(
      kFileMagic, absl::string_view(reinterpret_cast<const char*>(&length), sizeof(length)),
      image.digest(), image.header_bytes());
  std::vector<absl::string_view> pieces = {start};
  std::list<std::string> made;  // whose elements stay where they are
  for (const v1::ImageSectionHeader& section : image.header().sections()) {
    const auto kept = image.KeptSection(section.section());
    pieces.push_back(kept ? *kept : made.emplace_back(image.Section(section.section())));
  }
  constexpr mode_t kOwnerOnly = 0600;
  return WriteFileAtomically(path, pieces, kOwnerOnly);
}

absl::StatusOr<v1::ImageHeader> ReadImageFileHeader(const std::string& path) {
  PM_ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  PM_ASSIGN_OR_RETURN(const std::string bytes, ReadHeaderBytes(&file));
  return ReadImageHeader(bytes);
}

absl::StatusOr<std::shared_ptr<const Image>> ReadImageFile(const std::string& path) {
  PM_ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  ImageParts parts;
  PM_ASSIGN_OR_RETURN(parts.header, ReadHeaderBytes(&file));
  PM_ASSIGN_OR_RETURN(const v1::ImageHeader header, ReadImageHeader(parts.header));
  for (const v1::ImageSectionHeader& section : header.sections()) {
    PM_ASSIGN_OR_RETURN(parts.sections.emplace_back(), file.Read(section.bytes()));
  }
  return Image::Create(std::move(parts));
}

}  // namespace privatemail::server
