#include "server/cells/cell_image.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digests.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/items/item_code.h"

namespace privatemail::server {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they are");

constexpr absl::string_view kMagic("\x89PMCELL\n", 8);
constexpr uint32_t kVersion = 1;
constexpr size_t kFingerprintBytes = 32, kDigestBytes = 32;
constexpr size_t kSections = 4, kSectionsOfPartition = 5;

struct Header {
  uint32_t version = kVersion;
  uint32_t sections = 0;
  uint64_t items = 0;
  uint64_t items_version = 0;
  uint64_t embedding_version = 0;
};
constexpr size_t kTableOffset = kMagic.size() + sizeof(Header) + kFingerprintBytes;
static_assert(kTableOffset == 72, "Header has no padding");

struct Section {
  uint64_t offset = 0;
  uint64_t length = 0;
};

size_t CountSections(const PublicParameters& parameters) {
  return kSections + kSectionsOfPartition * parameters.cell_partitions.size();
}

size_t Aligned(size_t bytes) { return (bytes + 7) / 8 * 8; }

size_t CountPairs(const Demand& demand) {
  size_t pairs = 0;
  for (int64_t cell = 0; cell < demand.cells(); ++cell) pairs += demand.FromCell(cell).size();
  return pairs;
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the stored cell index is damaged: ", what));
}

// Ends of groups that follow each other: ascending, the last one `all`.
absl::Status CheckEnds(const std::vector<uint64_t>& ends, size_t all, absl::string_view what) {
  uint64_t last = 0;
  for (const uint64_t end : ends) {
    if (end < last || end > all) return Damaged(absl::StrCat("ends of ", what));
    last = end;
  }
  return last == all ? absl::OkStatus() : Damaged(absl::StrCat("number of ", what));
}

class Reader {
 public:
  explicit Reader(const PublicParameters& parameters) : parameters_(parameters) {}

  absl::StatusOr<CellContents> Read(absl::string_view image) {
    PM_RETURN_IF_ERROR(ReadHeader(image));
    CellContents contents;
    contents.embedding_version = header_.embedding_version;
    contents.gallery.version = header_.items_version;
    PM_RETURN_IF_ERROR(ReadGallery(&contents.gallery));
    const auto row_bytes = static_cast<size_t>(ItemCodeBytes(parameters_));
    PM_ASSIGN_OR_RETURN(const absl::string_view codes, Next(row_bytes, "codes"));
    if (codes.size() / row_bytes != n_) return Damaged("number of codes");
    contents.codes = std::string(codes);
    for (const CellPartition& partition : parameters_.cell_partitions) {
      PM_ASSIGN_OR_RETURN(ItemCells items, ReadItemCells(partition.cells));
      PM_ASSIGN_OR_RETURN(Demand demand, ReadDemand(partition.cells));
      contents.partitions.push_back({std::move(items), std::move(demand)});
    }
    if (Aligned(end_) != content_.size()) return Damaged("bytes after the last section");
    return contents;
  }

 private:
  absl::Status ReadHeader(absl::string_view image) {
    end_ = kTableOffset + CountSections(parameters_) * sizeof(Section);
    if (image.size() < end_ + kDigestBytes) return Damaged("it is too short");
    content_ = image.substr(0, image.size() - kDigestBytes);
    if (Sha256::Of(content_) != image.substr(content_.size())) return Damaged("checksum");
    if (content_.substr(0, kMagic.size()) != kMagic) return Damaged("first bytes");
    std::memcpy(&header_, content_.data() + kMagic.size(), sizeof(header_));
    if (header_.version != kVersion) {
      return Damaged(absl::StrCat("version ", header_.version, ", expected ", kVersion));
    }
    if (content_.substr(kTableOffset - kFingerprintBytes, kFingerprintBytes) !=
        Fingerprint(parameters_)) {
      return Damaged("it is of other parameters");
    }
    n_ = header_.items;
    const bool fits = n_ <= static_cast<size_t>(std::numeric_limits<int32_t>::max());
    return fits && header_.sections == CountSections(parameters_) ? absl::OkStatus()
                                                                  : Damaged("sizes");
  }

  // The next section: a whole number of values of this size.
  absl::StatusOr<absl::string_view> Next(size_t value_bytes, absl::string_view what) {
    Section entry;
    std::memcpy(&entry, content_.data() + kTableOffset + next_++ * sizeof(entry), sizeof(entry));
    const size_t padding = Aligned(end_) - end_;
    if (entry.offset != end_ + padding || entry.offset > content_.size() ||
        entry.length > content_.size() - entry.offset || entry.length % value_bytes != 0 ||
        content_.substr(end_, padding).find_first_not_of('\0') != absl::string_view::npos) {
      return Damaged(absl::StrCat("place of ", what));
    }
    end_ = entry.offset + entry.length;
    return content_.substr(entry.offset, entry.length);
  }
  // The values of the next section, of which there are `count` if it is given.
  template <typename Value>
  absl::StatusOr<std::vector<Value>> NextColumn(std::optional<size_t> count,
                                                absl::string_view what) {
    PM_ASSIGN_OR_RETURN(const absl::string_view section, Next(sizeof(Value), what));
    const size_t values = section.size() / sizeof(Value);
    if (count && values != *count) return Damaged(absl::StrCat("number of ", what));
    std::vector<Value> column(values);
    std::copy(section.begin(), section.end(), reinterpret_cast<char*>(column.data()));
    return column;
  }

  absl::Status ReadGallery(Gallery* gallery) {
    PM_ASSIGN_OR_RETURN(const auto ends, NextColumn<uint64_t>(n_, "ends of ids"));
    PM_ASSIGN_OR_RETURN(const absl::string_view ids, Next(1, "ids"));
    PM_ASSIGN_OR_RETURN(gallery->labels, NextColumn<int32_t>(n_, "labels"));
    PM_RETURN_IF_ERROR(CheckEnds(ends, ids.size(), "ids"));
    gallery->ids.reserve(n_);
    uint64_t first = 0;
    for (size_t row = 0; row < n_; ++row) {
      std::string id(ids.substr(first, ends[row] - first));
      first = ends[row];
      const bool valid = !id.empty() && id.size() <= kMaxItemIdBytes && IsUtf8(id) &&
                         (row == 0 || gallery->ids.back() < id);
      if (!valid) return Damaged("an id");
      if (!CheckItemLabel(gallery->labels[row], parameters_).ok()) return Damaged("a label");
      gallery->ids.push_back(std::move(id));
    }
    gallery->payloads.resize(n_);
    return absl::OkStatus();
  }

  absl::StatusOr<ItemCells> ReadItemCells(int64_t cells) {
    PM_ASSIGN_OR_RETURN(const auto of_items, NextColumn<uint32_t>(n_, "cells"));
    ItemCells read;
    PM_ASSIGN_OR_RETURN(read.squared_distances, NextColumn<float>(n_, "distances"));
    for (size_t row = 0; row < n_; ++row) {
      // A NaN would make the order of a list inconsistent.
      if (of_items[row] >= cells || !(read.squared_distances[row] >= 0)) {
        return Damaged("an item's cell");
      }
    }
    read.cells.assign(of_items.begin(), of_items.end());
    return read;
  }

  absl::StatusOr<Demand> ReadDemand(int64_t cells) {
    PM_ASSIGN_OR_RETURN(const auto ends,
                        NextColumn<uint64_t>(static_cast<size_t>(cells), "ends of pairs"));
    PM_ASSIGN_OR_RETURN(const auto rows, NextColumn<uint32_t>(std::nullopt, "rows of pairs"));
    PM_ASSIGN_OR_RETURN(const auto weights, NextColumn<float>(rows.size(), "weights of pairs"));
    PM_RETURN_IF_ERROR(CheckEnds(ends, rows.size(), "pairs"));
    std::vector<std::vector<Demand::ItemWeight>> of_cells(ends.size());
    size_t pair = 0;
    for (size_t cell = 0; cell < ends.size(); ++cell) {
      of_cells[cell].reserve(ends[cell] - pair);
      for (; pair < ends[cell]; ++pair) {
        const Demand::ItemWeight one{rows[pair], weights[pair]};
        const bool ascends = of_cells[cell].empty() || of_cells[cell].back().item < one.item;
        if (one.item >= static_cast<int64_t>(n_) || !ascends || !(one.weight > 0) ||
            !std::isfinite(one.weight)) {
          return Damaged("a pair");
        }
        of_cells[cell].push_back(one);
      }
    }
    return Demand(std::move(of_cells), static_cast<int64_t>(n_));
  }

  const PublicParameters& parameters_;
  absl::string_view content_;  // the image without its checksum
  Header header_;
  size_t n_ = 0;
  size_t next_ = 0;  // section
  size_t end_ = 0;   // of the section before
};

}  // namespace

std::string WriteCellImage(const PublicParameters& parameters, const CellContents& contents) {
  const Gallery& gallery = contents.gallery;
  const size_t n = gallery.ids.size();
  size_t bytes = n * (sizeof(uint64_t) + sizeof(int32_t)) + contents.codes.size();
  for (const std::string& id : gallery.ids) bytes += id.size();
  for (const PartitionDemand& partition : contents.partitions) {
    bytes += 8 * (n + static_cast<size_t>(partition.demand.cells()) + CountPairs(partition.demand));
  }
  const Header header{.sections = static_cast<uint32_t>(CountSections(parameters)),
                      .items = n,
                      .items_version = gallery.version,
                      .embedding_version = contents.embedding_version};
  const size_t table_end = kTableOffset + header.sections * sizeof(Section);
  std::string image(kMagic);
  image.reserve(table_end + bytes + (header.sections + 1) * 8 + kDigestBytes);
  image.append(reinterpret_cast<const char*>(&header), sizeof(header));
  image.append(Fingerprint(parameters));
  image.resize(table_end);
  size_t next = kTableOffset;  // place of the next section's entry in the table
  const auto add = [&](const auto& values) {
    const Section entry{Aligned(image.size()), values.size() * sizeof(values[0])};
    image.resize(entry.offset);
    image.append(reinterpret_cast<const char*>(values.data()), entry.length);
    std::memcpy(image.data() + next, &entry, sizeof(entry));
    next += sizeof(entry);
  };
  std::vector<uint64_t> ends;
  std::string ids;
  for (const std::string& id : gallery.ids) {
    ids += id;
    ends.push_back(ids.size());
  }
  add(ends);
  add(ids);
  add(gallery.labels);
  add(contents.codes);
  for (const auto& [item_cells, demand] : contents.partitions) {
    add(std::vector<uint32_t>(item_cells.cells.begin(), item_cells.cells.end()));
    add(item_cells.squared_distances);
    ends.clear();
    std::vector<uint32_t> rows;
    std::vector<float> weights;
    for (int64_t cell = 0; cell < demand.cells(); ++cell) {
      for (const Demand::ItemWeight& one : demand.FromCell(cell)) {
        rows.push_back(static_cast<uint32_t>(one.item));
        weights.push_back(one.weight);
      }
      ends.push_back(rows.size());
    }
    add(ends);
    add(rows);
    add(weights);
  }
  image.resize(Aligned(image.size()));
  image.append(Sha256::Of(image));
  return image;
}

absl::StatusOr<CellContents> ReadCellImage(const PublicParameters& parameters,
                                           absl::string_view image) {
  return Reader(parameters).Read(image);
}

}  // namespace privatemail::server
