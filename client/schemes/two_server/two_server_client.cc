#include "privatemail/two_server_client.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/privacy/sampling/exact_sampling.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/query_limits.h"
#include "client/schemes/release_noise.h"
#include "client/schemes/two_server/shares.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/image/image_header.h"
#include "common/image/item_list.h"
#include "common/image/score_shares.h"
#include "common/items/item_code.h"
#include "common/items/item_text.h"
#include "common/items/quantised_row.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {
namespace {

constexpr char kSection[] = "PRIVACY.md section 9";

// Of an item of a list while lists are ranked, beside its bytes and its decoded row.
constexpr double kItemMemory = 2 * sizeof(ListedItem) + 32;

TwoServerGuarantee GuaranteeOf(const TwoServerOptions& options, bool fetches_payloads) {
  TwoServerGuarantee guarantee;
  guarantee.source = kSection;
  if (options.mode == TwoServerMode::kScores) {
    guarantee.one.b = Secrecy::kComputational;
    guarantee.assumption = "AES-128 under a random key cannot be told from a random permutation";
    guarantee.both = "the query";
    return guarantee;
  }
  guarantee.both = absl::StrCat(
      "the ", options.lists, " fetched lists",
      options.epsilon.has_value() ? ", a random choice"
                                  : ", which are those of the cells nearest to the query",
      fetches_payloads ? absl::StrCat(", and the ", options.k, " fetched lists of payloads") : "");
  return guarantee;
}

absl::Status CheckTable(const PublicParameters& parameters, const TwoServerImage& image,
                        const v1::ImageTable& table) {
  const auto items = static_cast<int64_t>(image.header().items());
  if (table.ids_size() != items || table.labels_size() != items) {
    return absl::DataLossError(absl::StrCat("the table must have ", items,
                                            " ids and labels as the image, but has ",
                                            table.ids_size(), " and ", table.labels_size()));
  }
  for (const int32_t label : table.labels()) {
    const absl::StatusOr<int64_t> slot = parameters.SlotOf(label);
    if (!slot.ok()) {
      return absl::DataLossError(
          absl::StrCat("the table of ids and labels: ", slot.status().message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAnswerBytes(const Halves<std::string>& answers, uint64_t expected) {
  for (const auto& [server, bytes] : {std::pair{"A", answers.a.size()}, {"B", answers.b.size()}}) {
    if (bytes == expected) continue;
    return absl::DataLossError(absl::StrCat("the answer of server ", server, " must have ",
                                            expected, " bytes, but has ", bytes));
  }
  return absl::OkStatus();
}

// Which of the two servers was wrong cannot be told.
absl::Status WrongAnswer(const absl::Status& status) {
  return absl::DataLossError(
      absl::StrCat("an answer of server A or B is wrong: ", status.message()));
}

// Without the number of the list: users paste error messages into reports.
absl::Status WrongList() {
  return absl::DataLossError(
      "a fetched list does not match its checksum, or contradicts the image's header");
}

uint32_t ScoreOf(const std::string& answer, size_t row) {
  uint32_t score = 0;
  std::memcpy(&score, answer.data() + row * kScoreBytes, kScoreBytes);  // little-endian
  return score;
}

struct ListedRows {
  std::vector<ListedItem> items;
  FloatMatrix rows;  // decoded, one an item
};

// Checks all of a list, so that whether it is accepted does not depend on the target.
absl::StatusOr<ListedRows> ReadList(const PublicParameters& parameters,
                                    const v1::ImageHeader& header, uint32_t group, uint32_t list,
                                    absl::string_view bytes) {
  ListedRows listed;
  PM_ASSIGN_OR_RETURN(listed.items, ReadItemList(header, group, list, bytes));
  std::string codes;
  for (const ListedItem& item : listed.items) {
    PM_RETURN_IF_ERROR(parameters.SlotOf(item.label).status());
    absl::StrAppend(&codes, item.code);
  }
  PM_ASSIGN_OR_RETURN(listed.rows, DecodeItemCodes(parameters, codes));
  return listed;
}

// Reads all lists, also after a wrong one: the time must not tell which was wrong.
absl::StatusOr<std::vector<std::vector<absl::string_view>>> ReadPayloadLists(
    const v1::ImageHeader& header, const std::vector<int64_t>& lists, absl::string_view bytes) {
  const uint64_t list_bytes = header.payloads().list_bytes();
  std::vector<std::vector<absl::string_view>> read;
  absl::Status wrong;
  for (size_t i = 0; i < lists.size(); ++i) {
    absl::StatusOr<std::vector<absl::string_view>> payloads = ReadPayloadList(
        header, static_cast<uint32_t>(lists[i]), bytes.substr(i * list_bytes, list_bytes));
    if (!payloads.ok()) {
      wrong.Update(payloads.status());
      continue;
    }
    for (const absl::string_view payload : *payloads) {
      wrong.Update(CheckPayload(std::string(payload)));
    }
    read.push_back(*std::move(payloads));
  }
  if (!wrong.ok()) return wrong;
  return read;
}

}  // namespace

TwoServerClient::TwoServerClient(std::string name, CellScheme scheme, TwoServerImage image,
                                 std::optional<v1::ImageTable> table, int64_t max_memory)
    : name_(std::move(name)),
      scheme_(std::move(scheme)),
      image_(std::move(image)),
      table_(table.has_value() ? std::make_shared<const v1::ImageTable>(*std::move(table))
                               : nullptr),
      max_memory_(max_memory) {}

absl::StatusOr<TwoServerClient> TwoServerClient::Create(
    const v1::GetCollectionResponse& collection, const std::vector<v1::GetAnchorsResponse>& anchors,
    TwoServerImage image, std::optional<v1::ImageTable> table, const ClientLimits& limits) {
  PM_ASSIGN_OR_RETURN(PublicParameters parameters, ReadBuiltCollection(collection));
  PM_RETURN_IF_ERROR(CheckFingerprint(Fingerprint(parameters), image.header().fingerprint()));
  PM_RETURN_IF_ERROR(CheckQueryMemory(parameters, CellQueryMemory(parameters), limits));
  if (table.has_value()) PM_RETURN_IF_ERROR(CheckTable(parameters, image, *table));
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(parameters, anchors));
  PM_ASSIGN_OR_RETURN(CellScheme scheme, CellScheme::Create(std::move(parameters), joined));
  return TwoServerClient(collection.name(), std::move(scheme), std::move(image), std::move(table),
                         limits.max_memory);
}

bool TwoServerClient::FetchesPayloads(const TwoServerOptions& options) const {
  return options.with_payloads && image_.header().has_payloads();
}

absl::Status TwoServerClient::CheckLists(const TwoServerOptions& options) const {
  if (parameters().SendsCoordinates()) {
    return absl::FailedPreconditionError(
        "lists need items coded by their features, but the collection's cell_code is none; use "
        "mode scores");
  }
  PM_RETURN_IF_ERROR(CheckIntegerBetween("partition", options.partition, 0,
                                         std::ssize(parameters().cell_partitions) - 1));
  const auto group = static_cast<int>(options.partition);
  PM_RETURN_IF_ERROR(CheckIntegerBetween(
      "lists", options.lists, 1,
      std::min<int64_t>(image_.header().partitions(group).lists(), kMaxFetches)));
  if (options.epsilon.has_value() && options.with_payloads) {
    return absl::InvalidArgumentError(
        "payloads must not be fetched with epsilon, which does not cover which ones: fetch them "
        "without epsilon, or only ids");
  }
  return absl::OkStatus();
}

absl::Status TwoServerClient::CheckScores(const TwoServerOptions& options) const {
  PM_RETURN_IF_ERROR(image_.CheckScoresAllowed());
  if (table_ == nullptr) {
    return absl::FailedPreconditionError(
        "mode scores needs the image's table of ids and labels, which was not given");
  }
  if (!options.epsilon.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "epsilon must not be given with mode scores: both servers together would learn the query "
      "whatever it is");
}

double TwoServerClient::AnswerMemory(const TwoServerOptions& options) const {
  const v1::ImageHeader& header = image_.header();
  double memory = 0;
  if (options.mode == TwoServerMode::kScores) {
    memory += 2 * static_cast<double>(image_.AnswerBytes(v1::ScoreRequest()));
  } else {
    const v1::ListGroup& group = header.partitions(static_cast<int>(options.partition));
    const double rows = group.rows();
    const auto lists = static_cast<double>(options.lists);
    memory += 3 * lists * static_cast<double>(group.list_bytes()) + lists * rows * kItemMemory +
              rows * (sizeof(float) * header.feature_dim() + header.code_bytes());
  }
  if (FetchesPayloads(options)) {
    memory +=
        static_cast<double>(options.k) * (3 * static_cast<double>(header.payloads().list_bytes()) +
                                          header.payloads().rows() * sizeof(absl::string_view));
  }
  return memory;
}

absl::Status TwoServerClient::CheckOptions(const TwoServerOptions& options) const {
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("k", options.k, 1, options.with_payloads ? kMaxFetches : kMaxNeighbors));
  PM_RETURN_IF_ERROR(options.mode == TwoServerMode::kScores ? CheckScores(options)
                                                            : CheckLists(options));
  const double memory = AnswerMemory(options);
  if (memory <= static_cast<double>(max_memory_)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "memory of the answers must be at most %d bytes (--max-memory), but is up to %.0f",
      max_memory_, memory));
}

absl::StatusOr<Halves<v1::ScoreRequest>> TwoServerClient::ShareQuery(const RowVector& point,
                                                                     BitSource& bits) const {
  std::string seed(kScoreSeedBytes, '\0');
  PM_RETURN_IF_ERROR(
      bits.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(seed.data()), seed.size())));
  const std::vector<int16_t> query = QuantiseUnitRow(point);
  std::vector<uint32_t> values = ExpandScoreSeed(seed, std::ssize(query));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<uint32_t>(int32_t{query[i]}) - values[i];
  }
  Halves<v1::ScoreRequest> requests;
  for (v1::ScoreRequest* request : {&requests.a, &requests.b}) {
    request->set_collection(name_);
    request->set_digest(image_.digest());
  }
  requests.a.set_seed(std::move(seed));
  requests.b.set_values(values.data(), values.size() * sizeof(uint32_t));
  return requests;
}

absl::StatusOr<Halves<v1::FetchListsRequest>> TwoServerClient::ShareFetches(
    uint32_t group, const std::vector<int64_t>& lists, BitSource& bits) const {
  Halves<v1::FetchListsRequest> requests;
  for (v1::FetchListsRequest* request : {&requests.a, &requests.b}) {
    request->set_collection(name_);
    request->set_digest(image_.digest());
    request->set_group(group);
  }
  const int64_t count = FindListGroup(image_.header(), group)->lists();
  for (const int64_t list : lists) {
    PM_ASSIGN_OR_RETURN(Halves<std::string> shares, ShareSelection(count, list, bits));
    requests.a.add_selections(std::move(shares.a));
    requests.b.add_selections(std::move(shares.b));
  }
  return requests;
}

absl::StatusOr<PreparedTwoServerQuery> TwoServerClient::Prepare(const Eigen::RowVectorXf& features,
                                                                const TwoServerOptions& options,
                                                                Ledger* ledger,
                                                                BitSource& bits) const {
  PM_RETURN_IF_ERROR(CheckOptions(options));
  PM_RETURN_IF_ERROR(CheckColumns("query", parameters().feature_dim, features.size()));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("query", FloatMatrix(features)));
  TwoServerState state;
  state.options_ = options;
  state.guarantee_ = GuaranteeOf(options, FetchesPayloads(options));
  state.point_ = unit.row(0);
  if (options.mode == TwoServerMode::kScores) {
    PM_ASSIGN_OR_RETURN(Halves<v1::ScoreRequest> requests, ShareQuery(state.point_, bits));
    return PreparedTwoServerQuery{std::move(requests), std::move(state)};
  }
  if (options.epsilon.has_value()) {
    if (ledger == nullptr) return absl::InvalidArgumentError("epsilon needs a ledger to charge");
    const CellCost cost{.partition = options.partition,
                        .ask = options.lists,
                        .focus = options.lists,
                        .epsilon = *options.epsilon};
    PM_ASSIGN_OR_RETURN(CellRelease release, scheme_.Release(features, cost, *ledger, bits));
    state.lists_ = std::move(release.cells);
    state.guarantee_.both_bounded = std::move(release.guarantee);
  } else {
    PM_ASSIGN_OR_RETURN(state.lists_,
                        scheme_.NearestCells(features, options.partition, options.lists));
    std::sort(state.lists_.begin(), state.lists_.end());
  }
  absl::StatusOr<Halves<v1::FetchListsRequest>> requests =
      ShareFetches(static_cast<uint32_t>(options.partition), state.lists_, bits);
  if (!requests.ok()) {
    return options.epsilon.has_value() ? ChargedWithoutRelease(requests.status())
                                       : requests.status();
  }
  return PreparedTwoServerQuery{*std::move(requests), std::move(state)};
}

absl::Status TwoServerClient::RankScores(const Halves<std::string>& answers,
                                         TwoServerState* state) const {
  const auto items = static_cast<int64_t>(image_.header().items());
  PM_RETURN_IF_ERROR(CheckAnswerBytes(answers, static_cast<uint64_t>(items) * kScoreBytes));
  TopK nearest(state->options_.k, nullptr);
  for (int64_t row = 0; row < items; ++row) {
    const auto at = static_cast<size_t>(row);
    const double cosine = CombineScores(ScoreOf(answers.a, at), ScoreOf(answers.b, at));
    nearest.Offer({row, 2 - 2 * cosine});
  }
  for (const Neighbor& neighbor : nearest.Sorted()) {
    const auto row = static_cast<int>(neighbor.row);
    // Roundings can make a cosine larger than 1.
    state->matches_.push_back(
        {table_->ids(row), table_->labels(row), std::max(neighbor.squared_distance, 0.), ""});
    state->rows_.push_back(static_cast<uint32_t>(row));
  }
  state->candidates_ = items;
  return absl::OkStatus();
}

absl::Status TwoServerClient::RankLists(const Halves<std::string>& answers,
                                        TwoServerState* state) const {
  const auto group = static_cast<uint32_t>(state->options_.partition);
  const v1::ListGroup& of = image_.header().partitions(static_cast<int>(group));
  PM_RETURN_IF_ERROR(CheckAnswerBytes(answers, state->lists_.size() * of.list_bytes()));
  const std::string bytes = XorBytes(answers.a, answers.b);
  TopK nearest(state->options_.k, nullptr);
  std::vector<ListedItem> items;  // without repetitions
  std::unordered_map<uint32_t, size_t> place_of_row;
  RowVector decoded;
  absl::Status wrong;
  for (size_t i = 0; i < state->lists_.size(); ++i) {
    const absl::StatusOr<ListedRows> listed =
        ReadList(parameters(), image_.header(), group, static_cast<uint32_t>(state->lists_[i]),
                 absl::string_view(bytes).substr(i * of.list_bytes(), of.list_bytes()));
    // The others are ranked all the same: the time must not tell which was wrong.
    if (!listed.ok()) {
      wrong = WrongList();
      continue;
    }
    for (size_t j = 0; j < listed->items.size(); ++j) {
      const ListedItem& item = listed->items[j];
      if (!place_of_row.emplace(item.row, items.size()).second) continue;
      items.push_back(item);
      decoded = listed->rows.row(static_cast<Eigen::Index>(j)).cast<double>();
      nearest.Offer(
          {item.row, SquaredDistance(decoded.data(), state->point_.data(), decoded.size())});
    }
  }
  if (!wrong.ok()) return wrong;  // without matches, so that payloads are fetched at random
  for (const Neighbor& neighbor : nearest.Sorted()) {
    const auto row = static_cast<uint32_t>(neighbor.row);
    const ListedItem& item = items[place_of_row.at(row)];
    state->matches_.push_back({std::string(item.id), item.label, neighbor.squared_distance, ""});
    state->rows_.push_back(row);
  }
  state->candidates_ = std::ssize(items);
  return absl::OkStatus();
}

// One list for each of k matches; a match that is missing has a random one.
absl::StatusOr<std::vector<int64_t>> TwoServerClient::PayloadLists(const TwoServerState& state,
                                                                   BitSource& bits) const {
  const v1::ListGroup& group = image_.header().payloads();
  std::vector<int64_t> lists;
  for (const uint32_t row : state.rows_) lists.push_back(row / group.rows());
  const std::vector<uint64_t> missing(static_cast<size_t>(state.options_.k) - lists.size(),
                                      group.lists());
  PM_ASSIGN_OR_RETURN(const std::vector<uint64_t> random, SampleUniform(missing, bits));
  lists.insert(lists.end(), random.begin(), random.end());
  std::sort(lists.begin(), lists.end());
  return lists;
}

absl::StatusOr<std::optional<Halves<v1::FetchListsRequest>>> TwoServerClient::Rank(
    const Halves<std::string>& answers, TwoServerState* state, BitSource& bits) const {
  state->answers_ = state->options_.mode == TwoServerMode::kScores ? RankScores(answers, state)
                                                                   : RankLists(answers, state);
  if (!FetchesPayloads(state->options_)) return std::nullopt;
  PM_ASSIGN_OR_RETURN(state->payload_lists_, PayloadLists(*state, bits));
  return ShareFetches(PayloadGroup(image_.header()), state->payload_lists_, bits);
}

absl::Status TwoServerClient::ReadPayloads(const Halves<std::string>& answers,
                                           TwoServerState* state) const {
  const v1::ListGroup& group = image_.header().payloads();
  const std::vector<int64_t>& lists = state->payload_lists_;
  PM_RETURN_IF_ERROR(CheckAnswerBytes(answers, lists.size() * group.list_bytes()));
  const std::string bytes = XorBytes(answers.a, answers.b);
  const absl::StatusOr<std::vector<std::vector<absl::string_view>>> read =
      ReadPayloadLists(image_.header(), lists, bytes);
  if (!read.ok()) return WrongList();
  for (size_t i = 0; i < state->rows_.size(); ++i) {
    const uint32_t row = state->rows_[i];
    const auto list = std::lower_bound(lists.begin(), lists.end(), row / group.rows());
    const size_t in_list = row % group.rows();
    state->matches_[i].payload =
        std::string((*read)[static_cast<size_t>(list - lists.begin())][in_list]);
  }
  return absl::OkStatus();
}

absl::StatusOr<TwoServerResult> TwoServerClient::Finish(TwoServerState state,
                                                        const Halves<std::string>& payloads) const {
  if (FetchesPayloads(state.options_)) state.answers_.Update(ReadPayloads(payloads, &state));
  if (!state.answers_.ok()) return WrongAnswer(state.answers_);
  return TwoServerResult{.matches = std::move(state.matches_),
                         .candidates = state.candidates_,
                         .items_version = image_.header().items_version()};
}

}  // namespace privatemail::client
