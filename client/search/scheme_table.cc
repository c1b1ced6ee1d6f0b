#include "client/search/scheme_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/schemes/cells/cells_search.h"
#include "client/schemes/joint/joint_search.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"

namespace privatemail::client {

const std::map<std::string, Scheme> kSchemeNames = {
    {"cells", Scheme::kCells}, {"encrypted", Scheme::kEncrypted}, {"joint", Scheme::kJoint}};

const std::string& NameOf(Scheme scheme) {
  return std::find_if(kSchemeNames.begin(), kSchemeNames.end(),
                      [&](const auto& named) { return named.second == scheme; })
      ->first;
}

Scheme DefaultScheme(const std::vector<std::string>& offered) {
  for (const Scheme scheme : {Scheme::kEncrypted, Scheme::kJoint}) {
    if (std::find(offered.begin(), offered.end(), NameOf(scheme)) != offered.end()) return scheme;
  }
  return Scheme::kCells;
}

namespace {

// A field that some schemes take.
struct Field {
  const char* name;
  bool given;
  std::vector<Scheme> schemes;
  bool is_cost = false;
};

std::vector<Field> FieldsOf(const SearchRequest& r) {
  using enum Scheme;
  return {{"epsilon", r.epsilon.has_value(), {kCells, kJoint}, true},
          {"delta", r.delta.has_value(), {kJoint}, true},
          {"mechanism", r.mechanism.has_value(), {kJoint}, true},
          {"radius", r.radius.has_value(), {kJoint}},
          {"private_iterations", r.private_iterations.has_value(), {kJoint}},
          {"post_process", r.post_process.has_value(), {kJoint}},
          {"classes", r.classes.has_value(), {kJoint}},
          {"dummies", r.dummies.has_value(), {kJoint}},
          {"own_anchors", r.own_anchors.has_value(), {kJoint}},
          {"with_alignment", r.with_alignment.has_value(), {kJoint}},
          {"accept_misalignment", r.accept_misalignment, {kJoint}},
          {"filter", !r.filter.empty(), {kEncrypted, kJoint}},
          {"label",
           std::any_of(r.targets.begin(), r.targets.end(),
                       [](const SearchTarget& target) { return target.label.has_value(); }),
           {kEncrypted, kJoint}},
          {"partition", r.partition.has_value(), {kCells}},
          {"ask", r.ask.has_value(), {kCells}},
          {"focus", r.focus.has_value(), {kCells}},
          {"items", r.items.has_value(), {kCells}}};
}

bool Takes(const Field& field, Scheme scheme) {
  return std::find(field.schemes.begin(), field.schemes.end(), scheme) != field.schemes.end();
}

}  // namespace

absl::StatusOr<Scheme> ResolveScheme(const SearchRequest& request,
                                     const PublicParameters& parameters) {
  const Scheme scheme = request.scheme.value_or(DefaultScheme(OfferedSchemes(parameters)));
  for (const Field& field : FieldsOf(request)) {
    if (!field.given || Takes(field, scheme)) continue;
    std::vector<std::string> takers;
    for (const std::string& offered : OfferedSchemes(parameters)) {
      if (Takes(field, kSchemeNames.at(offered))) takers.push_back(offered);
    }
    if (request.scheme.has_value() || !field.is_cost || takers.empty()) {
      return FieldError(field.name, absl::StrCat("absent with the scheme ", NameOf(scheme)),
                        "given");
    }
    return FieldError(
        "scheme",
        absl::StrCat("given together with ", field.name, ", because the collection is searched by ",
                     NameOf(scheme),
                     ", which does not take it (those that do: ", absl::StrJoin(takers, ", "), ")"),
        "absent");
  }
  if (scheme != Scheme::kEncrypted && !request.epsilon.has_value()) {
    return FieldError("epsilon", absl::StrCat("given with the scheme ", NameOf(scheme)), "absent");
  }
  return scheme;
}

namespace {

// A collection's public side. The anchors and what was computed from them come from the cache
// unless the server has other anchors or another embedding by now.
template <typename Collection, typename Create>
absl::StatusOr<std::shared_ptr<const Collection>> FetchCollection(
    SchemeContext& context, std::map<std::string, std::shared_ptr<const Collection>>* cached,
    const v1::GetCollectionResponse& published, Create create) {
  if (cached != nullptr) {
    const std::lock_guard<std::mutex> lock(context.mutex);
    const auto found = cached->find(published.name());
    if (found != cached->end() && found->second->IsOf(published)) {
      Collection renewed = *found->second;
      renewed.published = published;
      return found->second = std::make_shared<const Collection>(std::move(renewed));
    }
  }
  PM_ASSIGN_OR_RETURN(const std::vector<v1::GetAnchorsResponse> anchors,
                      context.transport.GetAnchors(published.name(), published.fingerprint()));
  PM_ASSIGN_OR_RETURN(std::shared_ptr<const Collection> collection, create(anchors));
  if (cached == nullptr) return collection;
  const std::lock_guard<std::mutex> lock(context.mutex);
  return (*cached)[published.name()] = std::move(collection);
}

// DATA_LOSS: the file is damaged.
template <typename Message>
absl::StatusOr<Message> SavedMessage(const LastSearch& last) {
  Message message;
  if (message.ParseFromString(last.message)) return message;
  return absl::DataLossError("the saved release is not a message of its scheme");
}

// joint

absl::StatusOr<std::unique_ptr<SchemeSearch>> OpenJoint(SchemeContext& context,
                                                        const v1::GetCollectionResponse& published,
                                                        const SearchRequest& request) {
  const OwnRows own{.dummies = request.dummies, .anchors = request.own_anchors};
  const bool is_shared = !own.dummies.has_value() && !own.anchors.has_value();
  PM_RETURN_IF_ERROR(CheckJointMemory(published, own, context.limits));
  PM_ASSIGN_OR_RETURN(std::shared_ptr<const JointCollection> collection,
                      FetchCollection(context, is_shared ? &context.joint : nullptr, published,
                                      [&](const std::vector<v1::GetAnchorsResponse>& anchors) {
                                        return JointCollection::Create(published, anchors, own,
                                                                       context.limits);
                                      }));
  return JointSearch::Create(std::move(collection), request);
}

absl::StatusOr<SearchAnswer> SendJoint(SchemeContext& context, const PublicParameters&,
                                       google::protobuf::Message* message, SearchResult* result,
                                       const WarnFunction&) {
  result->sent = message->SerializeAsString();
  result->bytes.up = result->sent.size();
  PM_ASSIGN_OR_RETURN(
      v1::RetrieveResponse response,
      context.transport.Retrieve(static_cast<const v1::RetrieveRequest&>(*message)));
  result->bytes.down = response.ByteSizeLong();
  const auto memory = static_cast<int64_t>(response.SpaceUsedLong());
  return SearchAnswer{.value = std::move(response), .memory = memory};
}

absl::Status ResendJoint(SchemeContext& context, const PublicParameters& parameters,
                         const LastSearch& last, const SearchTarget& target,
                         std::optional<int64_t> k, SearchResult* result) {
  if (target.features.size() > 0) {
    return FieldError("target", "absent with the scheme joint", "given");
  }
  if (!target.label.has_value()) {
    return FieldError("label", "given with the scheme joint", "absent");
  }
  const absl::StatusOr<int64_t> slot = parameters.SlotOf(*target.label);
  if (!slot.ok()) {  // the label is private, so the message does not name it
    return FieldError(
        "label",
        absl::StrCat("one of the collection's ", parameters.slot_labels.size(), " classes"),
        "another one");
  }
  PM_ASSIGN_OR_RETURN(auto message, SavedMessage<v1::RetrieveRequest>(last));
  if (k.has_value()) message.set_k(static_cast<uint32_t>(*k));
  const absl::Time sent = absl::Now();
  PM_ASSIGN_OR_RETURN(const SearchAnswer answer,
                      SendJoint(context, parameters, &message, result, nullptr));
  result->times.answer_ms = absl::ToDoubleMilliseconds(absl::Now() - sent);
  return ReadJointAnswer(parameters, {{.slot = *slot, .places = message.k(), .posterior = 1}},
                         {message.k(), message.with_payloads(), message.with_alignment()},
                         std::any_cast<const v1::RetrieveResponse&>(answer.value), result);
}

// cells

absl::StatusOr<std::unique_ptr<SchemeSearch>> OpenCells(SchemeContext& context,
                                                        const v1::GetCollectionResponse& published,
                                                        const SearchRequest& request) {
  PM_RETURN_IF_ERROR(CheckCellsMemory(published, context.limits));
  PM_ASSIGN_OR_RETURN(std::shared_ptr<const CellsCollection> collection,
                      FetchCollection(context, &context.cells, published,
                                      [&](const std::vector<v1::GetAnchorsResponse>& anchors) {
                                        return CellsCollection::Create(published, anchors,
                                                                       context.limits);
                                      }));
  return CellsSearch::Create(std::move(collection), request);
}

absl::StatusOr<SearchAnswer> SendCells(SchemeContext& context, const PublicParameters& parameters,
                                       google::protobuf::Message* message, SearchResult* result,
                                       const WarnFunction&) {
  const auto& cells = static_cast<const v1::RetrieveCellsRequest&>(*message);
  result->sent = message->SerializeAsString();
  result->bytes.up = result->sent.size();
  // Reading stops at the first item beyond what the message allows.
  PM_ASSIGN_OR_RETURN(CellsAnswer response, context.transport.RetrieveCells(cells, [&] {
    return [limit = CellAnswerLimit(parameters, cells)](
               const v1::RetrieveCellsResponse& one) mutable { return limit.Add(one); };
  }));
  SearchAnswer answer;
  for (const v1::RetrieveCellsResponse& one : response) {
    result->bytes.down += one.ByteSizeLong();
    answer.memory += static_cast<int64_t>(one.SpaceUsedLong());
  }
  answer.value = std::move(response);
  return answer;
}

absl::Status ResendCells(SchemeContext& context, const PublicParameters& parameters,
                         const LastSearch& last, const SearchTarget& target,
                         std::optional<int64_t> k, SearchResult* result) {
  if (target.features.size() == 0) {
    return FieldError("target", "given again, because no file names it", "absent");
  }
  if (target.label.has_value()) {
    return FieldError("label", "absent with the scheme cells", "given");
  }
  PM_ASSIGN_OR_RETURN(const CellTarget point,
                      CellTarget::From(parameters, target.features, k.value_or(SearchRequest().k)));
  PM_ASSIGN_OR_RETURN(auto message, SavedMessage<v1::RetrieveCellsRequest>(last));
  const absl::Time sent = absl::Now();
  PM_ASSIGN_OR_RETURN(const SearchAnswer answer,
                      SendCells(context, parameters, &message, result, nullptr));
  result->times.answer_ms = absl::ToDoubleMilliseconds(absl::Now() - sent);
  return ReadCellAnswer(parameters, message, point, std::any_cast<const CellsAnswer&>(answer.value),
                        result);
}

// encrypted

absl::StatusOr<std::unique_ptr<SchemeSearch>> OpenEncrypted(
    SchemeContext& context, const v1::GetCollectionResponse& published,
    const SearchRequest& request) {
  PM_ASSIGN_OR_RETURN(EncryptedClient client, EncryptedClient::Create(published));
  PM_ASSIGN_OR_RETURN(std::shared_ptr<const EncryptedSession> session,
                      context.encrypted.Get(client.delta()));
  const auto add_known_blocks =
      [&context, uuid = client.parameters().collection_uuid](v1::SearchEncryptedRequest* message) {
        context.encrypted.AddKnownBlocks(uuid, message);
      };
  return EncryptedSearch::Create(published, std::move(client), std::move(session), request,
                                 context.limits, add_known_blocks);
}

absl::StatusOr<SearchAnswer> SendEncrypted(SchemeContext& context,
                                           const PublicParameters& parameters,
                                           google::protobuf::Message* message, SearchResult* result,
                                           const WarnFunction& warn) {
  PM_ASSIGN_OR_RETURN(EncryptedExchange exchange,
                      context.encrypted.Exchange(parameters.collection_uuid,
                                                 static_cast<v1::SearchEncryptedRequest*>(message),
                                                 context.departures, &result->bytes, warn));
  const auto memory = static_cast<int64_t>(exchange.answer.memory());
  return SearchAnswer{.value = std::move(exchange), .memory = memory};
}

absl::StatusOr<nlohmann::json> ExplainEncrypted(const LastSearch& last, const PublicParameters&) {
  nlohmann::json view = nlohmann::json::parse(last.message);
  view["not_saved"] =
      "the ciphertexts, the session's secret key, and everything that was decrypted";
  return view;
}

}  // namespace

const SchemeEntry& EntryOf(Scheme scheme) {
  static const std::map<Scheme, SchemeEntry> kEntries = {
      {Scheme::kJoint,
       {OpenJoint, SendJoint, ResendJoint, AddJointJson,
        [](const LastSearch& last,
           const PublicParameters& parameters) -> absl::StatusOr<nlohmann::json> {
          PM_ASSIGN_OR_RETURN(const auto message, SavedMessage<v1::RetrieveRequest>(last));
          return ExplainJoint(message, parameters);
        }}},
      {Scheme::kCells,
       {OpenCells, SendCells, ResendCells, AddCellsJson,
        [](const LastSearch& last,
           const PublicParameters& parameters) -> absl::StatusOr<nlohmann::json> {
          PM_ASSIGN_OR_RETURN(const auto message, SavedMessage<v1::RetrieveCellsRequest>(last));
          return ExplainCells(message, parameters);
        }}},
      {Scheme::kEncrypted,
       {OpenEncrypted, SendEncrypted, nullptr, AddEncryptedJson, ExplainEncrypted}}};
  return kEntries.at(scheme);
}

}  // namespace privatemail::client
