#include "server/image/image_maker.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/cancellation.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/image/image_header.h"
#include "common/image/item_list.h"
#include "common/image/score_shares.h"
#include "common/items/item_code.h"
#include "common/items/quantised_row.h"

namespace privatemail::server {
namespace {

absl::Status CheckCanBeMade(const PublicParameters& parameters, const ImageOptions& options,
                            bool empty) {
  if (options.list_items == 0) {
    return absl::InvalidArgumentError("list_items must be at least 1, but is 0");
  }
  if (parameters.cell_partitions.empty()) {
    return absl::FailedPreconditionError(
        "an image holds the lists of cells, but the collection has no cells");
  }
  if (parameters.SendsCoordinates()) {
    return absl::FailedPreconditionError(
        "an image needs codes of features, but the collection's cell_code is none");
  }
  if (empty) {
    return absl::FailedPreconditionError(
        "an image needs items, but all that were built are deleted: upload items and build");
  }
  return absl::OkStatus();
}

class Maker {
 public:
  Maker(const PublicParameters& parameters, const CellContents& contents,
        const std::vector<bool>* hidden)
      : parameters_(parameters), contents_(contents) {
    new_rows_.assign(contents.gallery.ids.size(), kHidden);
    for (size_t row = 0; row < new_rows_.size(); ++row) {
      if (hidden != nullptr && (*hidden)[row]) continue;
      new_rows_[row] = static_cast<uint32_t>(rows_.size());
      rows_.push_back(static_cast<uint32_t>(row));
    }
  }

  absl::StatusOr<ImageParts> Make(const ImageOptions& options, const std::atomic<bool>& stopped) {
    PM_RETURN_IF_ERROR(CheckCanBeMade(parameters_, options, rows_.empty()));
    PM_RETURN_IF_ERROR(CheckPayloadBytes());
    header_.set_version(kImageVersion);
    header_.set_fingerprint(Fingerprint(parameters_));
    header_.set_items(rows_.size());
    header_.set_items_version(contents_.gallery.version);
    header_.set_feature_dim(static_cast<uint32_t>(parameters_.feature_dim));
    header_.set_code_bytes(static_cast<uint32_t>(ItemCodeBytes(parameters_)));
    header_.set_has_scores(options.unit_rows != nullptr);
    AddTable();
    DescribeLists(options.list_items);
    DescribePayloads();
    if (options.check_memory) PM_RETURN_IF_ERROR(options.check_memory(PlannedHeader()));
    AddCodes();
    PM_RETURN_IF_ERROR(AddLists(stopped));
    if (options.unit_rows != nullptr) PM_RETURN_IF_ERROR(AddScores(*options.unit_rows, stopped));
    AddPayloads();
    parts_.header = header_.SerializeAsString();
    if (const auto read = ReadImageHeader(parts_.header); !read.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the collection does not fit into an image: ", read.status().message()));
    }
    return std::move(parts_);
  }

 private:
  static constexpr uint32_t kHidden = UINT32_MAX;

  const std::string& IdOf(uint32_t row) const { return contents_.gallery.ids[row]; }
  const std::string& PayloadOf(uint32_t row) const { return contents_.gallery.payloads[row]; }

  void Add(v1::ImageSection section, std::string bytes) {
    v1::ImageSectionHeader* added = header_.add_sections();
    added->set_section(section);
    added->set_bytes(bytes.size());
    added->set_sha256(Sha256::Of(bytes));
    parts_.sections.push_back(std::move(bytes));
  }

  uint64_t PayloadBytes() const {
    uint64_t bytes = 0;
    for (const uint32_t row : rows_) bytes += PayloadOf(row).size();
    return bytes;
  }

  // Before they are copied.
  absl::Status CheckPayloadBytes() const {
    const uint64_t bytes = PayloadBytes();
    if (bytes <= kMaxPayloadBytes) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "payloads of an image must have at most ", kMaxPayloadBytes, " bytes, but have ", bytes));
  }

  void AddTable() {
    v1::ImageTable table;
    size_t id_bytes = 0;
    for (const uint32_t row : rows_) {
      table.add_ids(IdOf(row));
      table.add_labels(contents_.gallery.labels[row]);
      id_bytes = std::max(id_bytes, IdOf(row).size());
    }
    header_.set_id_bytes(static_cast<uint32_t>(id_bytes));
    Add(v1::IMAGE_SECTION_TABLE, table.SerializeAsString());
  }

  void AddCodes() {
    const size_t code_bytes = header_.code_bytes();
    std::string codes;
    codes.reserve(rows_.size() * code_bytes);
    for (const uint32_t row : rows_) codes.append(contents_.codes, row * code_bytes, code_bytes);
    Add(v1::IMAGE_SECTION_CODES, std::move(codes));
  }

  void DescribeLists(uint32_t list_items) {
    const auto length = static_cast<uint32_t>(std::min<size_t>(list_items, rows_.size()));
    for (const PartitionDemand& partition : contents_.partitions) {
      v1::ListGroup* group = header_.add_partitions();
      group->set_lists(static_cast<uint32_t>(partition.demand.cells()));
      group->set_rows(length);
      group->set_list_bytes(kListChecksumBytes +
                            length * ItemRecordBytes(header_.id_bytes(), header_.code_bytes()));
    }
  }

  size_t CountPlaces() const {
    size_t places = 0;
    for (const v1::ListGroup& group : header_.partitions()) {
      places += size_t{group.lists()} * group.rows();
    }
    return places;
  }

  v1::ImageHeader PlannedHeader() const {
    constexpr size_t kFieldBytes = 6;  // number and length of a serialised payload, at most
    v1::ImageHeader planned = header_;
    const auto plan = [&](v1::ImageSection section, size_t bytes) {
      v1::ImageSectionHeader* added = planned.add_sections();
      added->set_section(section);
      added->set_bytes(bytes);
    };
    plan(v1::IMAGE_SECTION_CODES, rows_.size() * header_.code_bytes());
    plan(v1::IMAGE_SECTION_LISTS, CountPlaces() * sizeof(uint32_t));
    if (header_.has_scores()) {
      plan(v1::IMAGE_SECTION_SCORES, rows_.size() * header_.feature_dim() * sizeof(int16_t));
    }
    if (header_.has_payloads()) {
      plan(v1::IMAGE_SECTION_PAYLOADS, PayloadBytes() + rows_.size() * kFieldBytes);
    }
    return planned;
  }

  absl::Status AddLists(const std::atomic<bool>& stopped) {
    std::vector<uint32_t> listed;
    listed.reserve(CountPlaces());
    for (int i = 0; i < header_.partitions_size(); ++i) {
      PM_RETURN_IF_ERROR(AppendLists(contents_.partitions[static_cast<size_t>(i)],
                                     header_.partitions(i).rows(), stopped, &listed));
    }
    Add(v1::IMAGE_SECTION_LISTS, std::string(reinterpret_cast<const char*>(listed.data()),
                                             listed.size() * sizeof(uint32_t)));
    return absl::OkStatus();
  }

  absl::Status AppendLists(const PartitionDemand& partition, size_t length,
                           const std::atomic<bool>& stopped, std::vector<uint32_t>* listed) const {
    const std::vector<float>& distances = partition.item_cells.squared_distances;
    std::vector<std::vector<uint32_t>> own(static_cast<size_t>(partition.demand.cells()));
    for (const uint32_t row : rows_) {
      own[static_cast<size_t>(partition.item_cells.cells[row])].push_back(row);
    }
    const Eigen::RowVectorXf& total = partition.demand.total();
    std::vector<uint32_t> by_total = rows_;
    std::stable_sort(by_total.begin(), by_total.end(),
                     [&](uint32_t a, uint32_t b) { return total[a] > total[b]; });
    std::vector<size_t> taken_by(new_rows_.size());  // list, from 1
    for (size_t cell = 0; cell < own.size(); ++cell) {
      PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
      const size_t end = listed->size() + length;
      const auto append = [&](uint32_t row) {
        const bool available = new_rows_[row] != kHidden && taken_by[row] != cell + 1;
        if (!available || listed->size() == end) return;
        taken_by[row] = cell + 1;
        listed->push_back(new_rows_[row]);
      };
      std::stable_sort(own[cell].begin(), own[cell].end(), [&](uint32_t a, uint32_t b) {
        return total[a] != total[b] ? total[a] > total[b] : distances[a] < distances[b];
      });
      for (const uint32_t row : own[cell]) append(row);
      std::vector<Demand::ItemWeight> wanted =
          partition.demand.FromCell(static_cast<int64_t>(cell));
      std::stable_sort(wanted.begin(), wanted.end(),
                       [](const auto& a, const auto& b) { return a.weight > b.weight; });
      for (const Demand::ItemWeight& one : wanted) append(static_cast<uint32_t>(one.item));
      for (size_t next = 0; listed->size() < end; ++next) append(by_total[next]);
    }
    return absl::OkStatus();
  }

  absl::Status AddScores(const RowSource& unit_rows, const std::atomic<bool>& stopped) {
    std::string scores;
    scores.reserve(rows_.size() * static_cast<size_t>(unit_rows.cols()) * sizeof(int16_t));
    PM_RETURN_IF_ERROR(
        VisitBlocks(unit_rows, [&](Eigen::Index first, const FloatMatrix& block) -> absl::Status {
          for (Eigen::Index row = 0; row < block.rows(); ++row) {
            if (new_rows_[static_cast<size_t>(first + row)] == kHidden) continue;
            const std::vector<int16_t> values = QuantiseUnitRow(block.row(row).cast<double>());
            scores.append(reinterpret_cast<const char*>(values.data()),
                          values.size() * sizeof(int16_t));
          }
          return CheckNotStopped(stopped);
        }));
    Add(v1::IMAGE_SECTION_SCORES, std::move(scores));
    return absl::OkStatus();
  }

  void DescribePayloads() {
    if (PayloadBytes() == 0) return;
    const size_t rows = (rows_.size() + kMaxLists - 1) / kMaxLists;
    size_t fullest = 0;
    for (size_t first = 0; first < rows_.size(); first += rows) {
      size_t bytes = kListChecksumBytes;
      for (const uint32_t row : absl::MakeConstSpan(rows_).subspan(first, rows)) {
        bytes += sizeof(uint32_t) + PayloadOf(row).size();
      }
      fullest = std::max(fullest, bytes);
    }
    v1::ListGroup* group = header_.mutable_payloads();
    group->set_rows(static_cast<uint32_t>(rows));
    group->set_lists(static_cast<uint32_t>((rows_.size() + rows - 1) / rows));
    group->set_list_bytes(fullest);
  }

  void AddPayloads() {
    if (!header_.has_payloads()) return;
    v1::ImagePayloads payloads;
    for (const uint32_t row : rows_) payloads.add_payloads(PayloadOf(row));
    Add(v1::IMAGE_SECTION_PAYLOADS, payloads.SerializeAsString());
  }

  const PublicParameters& parameters_;
  const CellContents& contents_;
  std::vector<uint32_t> rows_;      // of the contents that the image holds, ascending
  std::vector<uint32_t> new_rows_;  // of each row of the contents its row in the image, or kHidden
  v1::ImageHeader header_;
  ImageParts parts_;
};

}  // namespace

absl::StatusOr<ImageParts> MakeImage(const PublicParameters& parameters,
                                     const CellContents& contents, const std::vector<bool>* hidden,
                                     const ImageOptions& options,
                                     const std::atomic<bool>& stopped) {
  return Maker(parameters, contents, hidden).Make(options, stopped);
}

}  // namespace privatemail::server
