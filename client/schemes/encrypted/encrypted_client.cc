#include "client/schemes/encrypted/encrypted_client.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/schemes/encrypted/secret_key.h"
#include "client/schemes/encrypted/secret_memory.h"
#include "client/schemes/memory_budget.h"
#include "common/base/digests.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/items/item_checks.h"
#include "common/lattice/scores.h"

namespace privatemail::client {
namespace {

using lattice::kDegree;

// A row of the table, while rows are ranked.
struct Candidate {
  double order;  // smaller is nearer
  uint32_t row;  // kDegree a block
  int32_t score;
};

// The factors of an item's score and of its norm in the order.
class Order {
 public:
  Order(Metric metric, double target_norm) : metric_(metric), target_norm_(target_norm) {}

  double Of(double cosine, double norm) const {
    switch (metric_) {
      case Metric::kDot:
        return -Similarity(cosine, norm);
      case Metric::kEuclidean:
        // Without the target's squared norm, which is the same for all items, and next to which
        // their differences would be lost if the target is long.
        return norm * norm - 2 * Similarity(cosine, norm);
      default:
        return -cosine;
    }
  }
  double Similarity(double cosine, double norm) const {
    return metric_ == Metric::kCosine ? cosine : cosine * norm * target_norm_;
  }
  // The distance of unit vectors with the metric cosine.
  double SquaredDistance(double cosine, double norm) const {
    if (metric_ == Metric::kCosine) return 2 - 2 * cosine;
    return norm * norm + target_norm_ * target_norm_ - 2 * cosine * norm * target_norm_;
  }

 private:
  Metric metric_;
  double target_norm_;
};

// A score as it is shown: 4 decimals of a cosine.
double RoundScore(int32_t score) {
  constexpr double kShown = 1e4;
  return std::clamp(std::round(ScoreOf(score) * kShown) / kShown, -1., 1.);
}

// The rows that may match, without a look at their scores.
std::vector<uint32_t> EligibleRows(const RowTable& table, const EncryptedRanking& ranking) {
  std::vector<uint32_t> rows = ranking.rows == nullptr ? CandidateRows(table) : *ranking.rows;
  if (ranking.label.has_value()) {
    std::erase_if(rows, [&](uint32_t row) {
      return table.blocks()[row / kDegree]->label(row % kDegree) != *ranking.label;
    });
  }
  return rows;
}

float NormOf(const RowTable& table, uint32_t row) {
  return table.blocks()[row / kDegree]->norm(row % kDegree);
}

}  // namespace

int64_t QueriesPerMessage(int64_t dimensions, int delta, int64_t rows) {
  constexpr size_t kQueryBytes = size_t{16} << 20, kScoreBytes = size_t{64} << 20;
  const size_t query = lattice::kSeedBytes + lattice::QueryChunkBytes(dimensions, delta);
  const size_t scores =
      static_cast<size_t>(std::max<int64_t>(1, lattice::CountBlocks(rows))) * lattice::kAnswerBytes;
  return static_cast<int64_t>(
      std::max<size_t>(1, std::min(kQueryBytes / query, kScoreBytes / scores)));
}

std::vector<uint32_t> CandidateRows(const RowTable& table, const MatchesFilter& filter) {
  std::vector<uint32_t> rows;
  for (size_t i = 0; i < table.blocks().size(); ++i) {
    const TableBlock& block = *table.blocks()[i];
    for (size_t row = 0; row < block.rows(); ++row) {
      if (block.id(row).empty()) continue;
      if (filter && !filter(std::string(table.payload(i, row)))) continue;
      rows.push_back(static_cast<uint32_t>(i * kDegree + row));
    }
  }
  return rows;
}

SearchWork RankingWork(const RowTable& table, int64_t targets, bool with_payloads) {
  SearchWork work{.queries = targets, .blocks = std::ssize(table.blocks())};
  if (with_payloads) {
    work.payload_bytes =
        targets * std::min(table.payload_bytes(), kMaxNeighbors * table.longest_payload());
  }
  return work;
}

EncryptedSession::EncryptedSession(int delta, std::unique_ptr<const SecretKey> secret,
                                   std::string keys)
    : delta_(delta),
      secret_(std::move(secret)),
      keys_(std::move(keys)),
      keys_digest_(Sha256::Of(keys_)) {}

EncryptedSession::~EncryptedSession() = default;

absl::StatusOr<std::shared_ptr<const EncryptedSession>> EncryptedSession::Create(int delta,
                                                                                 BitSource& bits) {
  PM_ASSIGN_OR_RETURN(SecretKey secret, SecretKey::Generate(bits));
  PM_ASSIGN_OR_RETURN(std::string keys, secret.MakeEvaluationKeys(delta, bits));
  return std::shared_ptr<const EncryptedSession>(new EncryptedSession(
      delta, std::make_unique<const SecretKey>(std::move(secret)), std::move(keys)));
}

absl::StatusOr<EncryptedClient> EncryptedClient::Create(EncryptedCollection collection) {
  if (collection.dimensions == 0 || collection.rows == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("collection ", collection.name, " has no items yet"));
  }
  if (!lattice::IsDelta(collection.delta)) {
    return absl::FailedPreconditionError(absl::StrCat("delta of collection ", collection.name,
                                                      " must be 32, 64, 128 or 256, but is ",
                                                      collection.delta));
  }
  return EncryptedClient(std::move(collection));
}

int64_t EncryptedClient::queries_per_message() const {
  return QueriesPerMessage(collection_.dimensions, delta(), static_cast<int64_t>(collection_.rows));
}

absl::Status EncryptedClient::CheckAnswerMemory(size_t targets, bool with_payloads,
                                                int64_t max_memory) const {
  const auto rows = static_cast<double>(collection_.rows);
  const double bytes = static_cast<double>(targets) * (rows / kDegree + 1) *
                           static_cast<double>(lattice::kAnswerBytes) +
                       static_cast<double>(collection_.table_bytes) +
                       (with_payloads ? static_cast<double>(collection_.payload_bytes) : 0);
  return CheckMemory(bytes, absl::StrCat(targets, " targets"), max_memory);
}

absl::Status EncryptedClient::CheckRanking(const EncryptedRanking& ranking) const {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", ranking.k, 1, kMaxNeighbors));
  if (ranking.label.has_value()) {
    // kNoLabel stands for items without a label.
    PM_RETURN_IF_ERROR(CheckIntegerBetween("label", *ranking.label, int64_t{kNoLabel} + 1,
                                           std::numeric_limits<int32_t>::max()));
  }
  return absl::OkStatus();
}

absl::StatusOr<PreparedEncryptedQuery> EncryptedClient::Prepare(
    const Eigen::RowVectorXf& features, std::shared_ptr<const EncryptedSession> session,
    BitSource& bits) const {
  if (session->delta() != delta()) {
    return absl::InvalidArgumentError(
        absl::StrCat("delta of the session must be ", delta(), ", but is ", session->delta()));
  }
  PM_RETURN_IF_ERROR(CheckColumns("query", collection_.dimensions, features.size()));
  PM_RETURN_IF_ERROR(
      CheckHasSimilarity("query", collection_.metric, features.data(), features.size()));
  // No float is so large or small that the square of a double overflows or is subnormal.
  const double norm = std::sqrt(features.cast<double>().squaredNorm());
  const double scale = norm > 0 ? QueryScale(delta()) / norm : 0;
  const int64_t chunks = lattice::CountChunks(features.size(), delta());
  PM_ASSIGN_OR_RETURN(const auto messages,
                      SecretArray<int64_t>::Allocate(static_cast<size_t>(chunks * kDegree)));
  // Coordinate i of a chunk is the coefficient of X^-i, which is -X^(N - i) for i > 0.
  for (int64_t i = 0; i < features.size(); ++i) {
    const int64_t place = i % delta();
    // llrint rounds without a branch, unlike other functions.
    const int64_t value = std::llrint(features[i] * scale);
    messages[static_cast<size_t>(i / delta() * kDegree + (kDegree - place) % kDegree)] =
        place == 0 ? value : -value;
  }
  PM_ASSIGN_OR_RETURN(EncryptedQuery request, session->secret_->EncryptQuery(messages, bits));
  return PreparedEncryptedQuery{std::move(request), EncryptedState(std::move(session), norm)};
}

absl::StatusOr<std::vector<Match>> EncryptedClient::Finish(EncryptedState state,
                                                           absl::string_view scores,
                                                           const RowTable& table,
                                                           const EncryptedRanking& ranking) const {
  PM_RETURN_IF_ERROR(CheckRanking(ranking));
  const size_t expected = table.blocks().size() * lattice::kAnswerBytes;
  if (scores.size() != expected) {
    return InvalidField("scores",
                        absl::StrCat("must have ", expected, " bytes, ", lattice::kAnswerBytes,
                                     " for each block, but have ", scores.size()));
  }
  PM_ASSIGN_OR_RETURN(const auto decrypted, state.session_->secret_->Decrypt(scores));
  const std::vector<uint32_t> eligible = EligibleRows(table, ranking);
  PM_ASSIGN_OR_RETURN(const auto candidates, SecretArray<Candidate>::Allocate(eligible.size()));
  const Order order(collection_.metric, state.target_norm_);
  for (size_t i = 0; i < eligible.size(); ++i) {
    const uint32_t row = eligible[i];
    candidates[i] = {order.Of(ScoreOf(decrypted[row]), NormOf(table, row)), row, decrypted[row]};
  }
  // Equal scores are rare, since each has an error of its own, but a server can send them:
  // comparing rows takes no longer than comparing scores.
  const auto nearer = [](const Candidate& one, const Candidate& other) {
    if (one.order != other.order) return one.order < other.order;
    return one.row < other.row;
  };
  const auto count = std::min<size_t>(eligible.size(), static_cast<size_t>(ranking.k));
  std::partial_sort(candidates.begin(), candidates.begin() + count, candidates.end(), nearer);
  std::vector<Match> matches;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t row = candidates[i].row;
    const double cosine = RoundScore(candidates[i].score), norm = NormOf(table, row);
    matches.push_back({.id = std::string(table.blocks()[row / kDegree]->id(row % kDegree)),
                       .label = table.blocks()[row / kDegree]->label(row % kDegree),
                       .squared_distance = std::max(0., order.SquaredDistance(cosine, norm)),
                       .payload = ranking.with_payloads
                                      ? std::string(table.payload(row / kDegree, row % kDegree))
                                      : "",
                       .similarity = order.Similarity(cosine, norm)});
  }
  return matches;
}

}  // namespace privatemail::client
