// A server of encrypted searches in the test's process: honest rows, table, payloads and scores.
#ifndef PRIVATEMAIL_TESTS_TESTING_ENCRYPTED_THINGS_H_
#define PRIVATEMAIL_TESTS_TESTING_ENCRYPTED_THINGS_H_

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digests.h"
#include "common/lattice/evaluator.h"
#include "common/lattice/modular.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/v1/encrypted.pb.h"
#include "tests/testing/published_things.h"

namespace privatemail::client {

// Thread-safe but for changes of its members. The scores are those of lattice::Evaluator, which the
// golden tests hold against an independent implementation.
class EncryptedThings {
 public:
  // An item for each row of `features`: id "item <row>", label row modulo 5, payload {"i":row}.
  explicit EncryptedThings(FloatMatrix features, int delta = 32,
                           v1::Metric metric = v1::METRIC_COSINE)
      : features_(std::move(features)), delta_(delta), metric_(metric) {}

  static std::string IdOf(int64_t row) { return absl::StrCat("item ", row); }

  // Rows that hold no item: their features count as zero.
  std::set<int64_t> empty_rows;
  // Appended to the id of each row, so that a table has another version.
  std::string id_suffix;
  bool forgets_keys = false;      // before each request
  int64_t long_payload_row = -1;  // this row's payload has a text of 100,000 bytes

  v1::GetCollectionResponse Collection() const {
    v1::GetCollectionResponse collection = PublishedThings().collection;
    v1::PublicParameters* parameters = collection.mutable_parameters();
    parameters->set_feature_dim(static_cast<uint32_t>(features_.cols()));
    parameters->set_with_encrypted(true);
    parameters->set_metric(metric_);
    collection.set_fingerprint(Fingerprint(*FromProto(*parameters)));
    collection.mutable_encrypted()->set_delta(static_cast<uint32_t>(delta_));
    collection.mutable_encrypted()->set_rows(static_cast<uint64_t>(features_.rows()));
    return collection;
  }

  int64_t blocks() const { return lattice::CountBlocks(features_.rows()); }

  std::string TableBlock(int64_t block) const {
    v1::RowTableBlock table;
    ForRows(block, [&](int64_t row, bool empty) {
      table.add_ids(empty ? "" : IdOf(row) + id_suffix);
      table.add_norms(empty ? 0 : features_.row(row).norm());
      table.add_labels(empty ? 0 : row % PublishedThings::kClasses + 1);
    });
    return table.SerializeAsString();
  }

  std::string PayloadBlock(int64_t block) const {
    v1::RowPayloadBlock payloads;
    ForRows(block, [&](int64_t row, bool empty) {
      const std::string text(row == long_payload_row ? 100'000 : 0, 'x');
      payloads.add_payloads(empty ? "" : absl::StrCat("{\"i\":", row, "}"));
      if (!text.empty()) *payloads.mutable_payloads()->rbegin() = absl::StrCat("\"", text, "\"");
    });
    return payloads.SerializeAsString();
  }

  // The honest answer.
  std::vector<v1::SearchEncryptedResponse> Answer(const v1::SearchEncryptedRequest& request) {
    std::vector<v1::SearchEncryptedResponse> answer(1);
    v1::EncryptedSearchHeader* header = answer.front().mutable_header();
    const auto keys = KeysOf(request);
    if (keys == nullptr) {
      header->set_keys_missing(true);
      return answer;
    }
    header->set_items_version(7);
    header->set_items(static_cast<uint64_t>(features_.rows()) - empty_rows.size());
    const std::set<uint64_t> table(request.known_blocks().begin(), request.known_blocks().end());
    const std::set<uint64_t> payloads(request.known_payload_blocks().begin(),
                                      request.known_payload_blocks().end());
    for (int64_t block = 0; block < blocks(); ++block) {
      AddBlock(block, TableBlock(block), table, &v1::SearchEncryptedResponse::mutable_table_block,
               answer.front().mutable_header()->mutable_table_digests(), &answer);
    }
    for (int64_t block = 0; request.with_payloads() && block < blocks(); ++block) {
      AddBlock(block, PayloadBlock(block), payloads,
               &v1::SearchEncryptedResponse::mutable_payload_block,
               answer.front().mutable_header()->mutable_payload_digests(), &answer);
    }
    const std::vector<std::string> scores = Scores(request, *keys);
    for (size_t query = 0; query < scores.size(); ++query) {
      v1::EncryptedScores* part = answer.emplace_back().mutable_scores();
      part->set_query(static_cast<uint32_t>(query));
      part->set_answers(scores[query]);
    }
    return answer;
  }

 private:
  void ForRows(int64_t block, const std::function<void(int64_t, bool)>& visit) const {
    const int64_t end = std::min<int64_t>(features_.rows(), (block + 1) * lattice::kDegree);
    for (int64_t row = block * lattice::kDegree; row < end; ++row) {
      visit(row, empty_rows.contains(row));
    }
  }

  static void AddBlock(int64_t block, const std::string& content, const std::set<uint64_t>& known,
                       v1::RowBlock* (v1::SearchEncryptedResponse::*mutable_block)(),
                       std::string* digests, std::vector<v1::SearchEncryptedResponse>* answer) {
    const std::string digest = Sha256::Of(content);
    uint64_t prefix = 0;
    for (int i = 7; i >= 0; --i) prefix = prefix << 8 | static_cast<uint8_t>(digest[i]);
    digests->append(digest);
    if (known.contains(prefix)) return;
    v1::RowBlock* sent = (answer->emplace_back().*mutable_block)();
    sent->set_block(static_cast<uint32_t>(block));
    sent->set_content(content);
  }

  // Null: it does not have them.
  std::shared_ptr<const lattice::EvaluationKeys> KeysOf(const v1::SearchEncryptedRequest& request) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (forgets_keys) keys_.clear();
    if (!request.keys().empty()) {
      EXPECT_EQ(request.keys_digest(), Sha256::Of(request.keys()));
      keys_[request.keys_digest()] =
          evaluator_.ParseKeys(request.keys(), static_cast<int>(request.delta()), Shake128);
      EXPECT_NE(keys_[request.keys_digest()], nullptr);
    }
    const auto found = keys_.find(request.keys_digest());
    return found == keys_.end() ? nullptr : found->second;
  }

  // Rows of a block as the evaluator takes them.
  std::vector<int16_t> RowsOf(int64_t block) const {
    const int64_t dim = features_.cols();
    std::vector<int16_t> rows(static_cast<size_t>(lattice::kDegree * dim));
    ForRows(block, [&](int64_t row, bool empty) {
      if (empty) return;
      const Eigen::RowVectorXd unit = features_.row(row).cast<double>().normalized();
      const int place = lattice::ReverseBits(static_cast<int>(row % lattice::kDegree));
      for (int64_t i = 0; i < dim; ++i) {
        rows[static_cast<size_t>(place * dim + i)] =
            static_cast<int16_t>(std::lround(unit[i] * (1 << lattice::kItemScaleBits)));
      }
    });
    return rows;
  }

  std::vector<std::string> Scores(const v1::SearchEncryptedRequest& request,
                                  const lattice::EvaluationKeys& keys) const {
    std::vector<std::vector<int16_t>> rows;
    std::vector<const int16_t*> row_blocks;
    for (int64_t block = 0; block < blocks(); ++block) rows.push_back(RowsOf(block));
    for (const auto& block : rows) row_blocks.push_back(block.data());
    std::vector<std::shared_ptr<const lattice::Query>> queries;
    std::vector<std::string> scores;
    for (const v1::EncryptedQuery& query : request.queries()) {
      queries.push_back(evaluator_.ParseQuery(query.seed(), query.chunks(), features_.cols(),
                                              static_cast<int>(request.delta()), Shake128));
      EXPECT_NE(queries.back(), nullptr);
      scores.emplace_back(rows.size() * lattice::kAnswerBytes, '\0');
    }
    std::vector<lattice::Target> targets;
    for (size_t i = 0; i < queries.size(); ++i) {
      targets.push_back({&keys, queries[i].get(), scores[i].data()});
    }
    evaluator_.Score(row_blocks, features_.cols(), targets,
                     [](int count, const std::function<void(int)>& task) {
                       for (int i = 0; i < count; ++i) task(i);
                     });
    return scores;
  }

  const FloatMatrix features_;
  const int delta_;
  const v1::Metric metric_;
  const lattice::Evaluator& evaluator_ = lattice::Evaluator::Best();
  std::mutex mutex_;  // guards keys_
  std::map<std::string, std::shared_ptr<const lattice::EvaluationKeys>> keys_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_TESTING_ENCRYPTED_THINGS_H_
