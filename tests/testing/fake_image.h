// A small image of the collection "things", and answers to its calls by plain loops.
#ifndef PRIVATEMAIL_TESTS_TESTING_FAKE_IMAGE_H_
#define PRIVATEMAIL_TESTS_TESTING_FAKE_IMAGE_H_

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/sha256.h"
#include "common/image/image_header.h"
#include "common/image/item_list.h"
#include "common/image/score_shares.h"
#include "common/items/quantised_row.h"
#include "privatemail/two_server_image.h"
#include "tests/testing/published_things.h"

namespace privatemail::client {

// 30 items, "item 00" to "item 29". List c of the only partition holds the rows 3 c to 3 c + 5
// (modulo 30), so that every item is in two lists of 10. Payloads of 4 rows a list: {"i":row}, and
// none for row 5.
struct FakeImage {
  static constexpr int kItems = 30;
  static constexpr int kListRows = 6;
  static constexpr int kPayloadRows = 4;

  PublishedThings things;
  FloatMatrix rows;  // unit features, as decoded from their codes
  v1::ImageTable table;
  std::string table_bytes;
  v1::ImageHeader header;
  std::vector<std::vector<std::string>> groups;  // lists of the partition, then of payloads
  std::vector<std::vector<int16_t>> scores;

  explicit FakeImage(uint64_t items_version = 17, CellCode code = CellCode::kFloat16)
      : things(1, code) {
    const auto columns = static_cast<Eigen::Index>(ItemColumns(things.parameters));
    rows.resize(kItems, columns);
    std::vector<std::string> codes(kItems);
    std::string section_codes;
    for (int row = 0; row < kItems; ++row) {
      AppendItemCode(things.parameters, RowOfItem(things.parameters, row), &codes[Index(row)]);
      rows.row(row) = DecodeItemCodes(things.parameters, codes[Index(row)])->row(0);
      section_codes += codes[Index(row)];
      table.add_ids(IdOf(row));
      table.add_labels(row % PublishedThings::kClasses);
      if (things.parameters.SendsCoordinates()) {
        scores.emplace_back(PublishedThings::kDim);
      } else {
        scores.push_back(
            QuantiseUnitRow(RowOfItem(things.parameters, row).cast<double>().normalized()));
      }
    }
    table_bytes = table.SerializeAsString();
    header.set_version(kImageVersion);
    header.set_fingerprint(Fingerprint(things.parameters));
    header.set_items(kItems);
    header.set_items_version(items_version);
    header.set_feature_dim(PublishedThings::kDim);
    header.set_id_bytes(7);
    header.set_code_bytes(static_cast<uint32_t>(codes[0].size()));
    v1::ListGroup* group = header.add_partitions();
    group->set_lists(10);
    group->set_rows(kListRows);
    group->set_list_bytes(kListChecksumBytes + kListRows * ItemRecordBytes(7, header.code_bytes()));
    group = header.mutable_payloads();
    group->set_lists((kItems + kPayloadRows - 1) / kPayloadRows);
    group->set_rows(kPayloadRows);
    group->set_list_bytes(100);
    header.set_has_scores(true);
    AddSection(v1::IMAGE_SECTION_TABLE, table_bytes);
    AddSection(v1::IMAGE_SECTION_CODES, section_codes);
    AddSection(v1::IMAGE_SECTION_LISTS, std::string(10 * kListRows * 4, '\0'));
    AddSection(v1::IMAGE_SECTION_SCORES, std::string(kItems * PublishedThings::kDim * 2, '\0'));
    AddSection(v1::IMAGE_SECTION_PAYLOADS, "");
    WriteLists(codes);
  }

  static size_t Index(int64_t at) { return static_cast<size_t>(at); }
  static std::string IdOf(int64_t row) { return absl::StrFormat("item %02d", row); }
  static std::string PayloadOf(int64_t row) {
    return row == 5 ? "" : absl::StrFormat("{\"i\":%d}", row);
  }

  v1::GetImageResponse Served(const std::string& operator_name) const {
    v1::GetImageResponse response;
    response.set_header(header.SerializeAsString());
    response.set_operator_name(operator_name);
    response.set_allows_scores(true);
    return response;
  }

  std::string Answer(const v1::ScoreRequest& request) const {
    std::vector<uint32_t> share(PublishedThings::kDim);
    if (request.has_seed()) {
      share = ExpandScoreSeed(request.seed(), PublishedThings::kDim);
    } else {
      std::memcpy(share.data(), request.values().data(), request.values().size());
    }
    std::string answer;
    for (const std::vector<int16_t>& row : scores) {
      int64_t product = 0;
      for (size_t i = 0; i < row.size(); ++i) product += int64_t{share[i]} * row[i];
      const uint32_t sent = SentScore(static_cast<uint32_t>(product));
      answer.append(reinterpret_cast<const char*>(&sent), kScoreBytes);
    }
    return answer;
  }

  std::string Answer(const v1::FetchListsRequest& request) const {
    const std::vector<std::string>& lists = groups[request.group()];
    std::string answer;
    for (const std::string& selection : request.selections()) {
      std::string sum(lists[0].size(), '\0');
      for (size_t c = 0; c < lists.size(); ++c) {
        if ((static_cast<uint8_t>(selection[c / 8]) >> (c % 8) & 1) == 0) continue;
        std::transform(sum.begin(), sum.end(), lists[c].begin(), sum.begin(), std::bit_xor<>());
      }
      answer += sum;
    }
    return answer;
  }

  template <typename Request>
  Halves<std::string> Answers(const Halves<Request>& requests) const {
    return {Answer(requests.a), Answer(requests.b)};
  }

 private:
  void AddSection(v1::ImageSection section, const std::string& bytes) {
    v1::ImageSectionHeader* one = header.add_sections();
    one->set_section(section);
    one->set_bytes(bytes.size());
    one->set_sha256(Sha256::Of(bytes));
  }

  void WriteLists(const std::vector<std::string>& codes) {
    groups.assign(2, {});
    for (uint32_t list = 0; list < header.partitions(0).lists(); ++list) {
      std::vector<std::string> ids;
      std::vector<ListedItem> items;
      for (uint32_t i = 0; i < kListRows; ++i) {
        const uint32_t row = (3 * list + i) % kItems;
        ids.push_back(IdOf(row));
        items.push_back({row, table.labels(static_cast<int>(row)), "", codes[row]});
      }
      for (size_t i = 0; i < items.size(); ++i) items[i].id = ids[i];
      std::string& bytes = groups[0].emplace_back(header.partitions(0).list_bytes(), '\0');
      WriteItemList(header, 0, list, items, bytes.data());
    }
    for (uint32_t list = 0; list < header.payloads().lists(); ++list) {
      std::vector<std::string> texts;
      for (int row = static_cast<int>(list) * kPayloadRows;
           row < std::min(kItems, static_cast<int>(list + 1) * kPayloadRows); ++row) {
        texts.push_back(PayloadOf(row));
      }
      const std::vector<absl::string_view> payloads(texts.begin(), texts.end());
      std::string& bytes = groups[1].emplace_back(header.payloads().list_bytes(), '\0');
      WritePayloadList(header, list, payloads, bytes.data());
    }
  }
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_TESTING_FAKE_IMAGE_H_
