#include "client/audit/request_attack.h"

#include <time.h>

#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/audit/joint_pair.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "client/schemes/encrypted/encrypted_client.h"
#include "client/schemes/encrypted/encrypted_messages.h"
#include "client/schemes/encrypted/secret_key.h"
#include "common/base/status_macros.h"
#include "common/lattice/wire.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client::audit {
namespace {

using lattice::kDegree;

// The bytes of a client's messages for a neighbour. Thread-safe.
using Send = std::function<absl::StatusOr<std::vector<std::string>>(Neighbour, BitSource&)>;

size_t TotalBytes(const std::vector<std::string>& messages) {
  size_t bytes = 0;
  for (const std::string& message : messages) bytes += message.size();
  return bytes;
}

// The work of this thread: a wait for a core, of which an audit keeps all busy, is not counted.
double ThreadSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

absl::StatusOr<double> SecondsOf(const Send& send, Neighbour neighbour, BitSource& bits) {
  const double start = ThreadSeconds();
  PM_RETURN_IF_ERROR(send(neighbour, bits).status());
  return ThreadSeconds() - start;
}

absl::StatusOr<Attack> MakeSizeAttack(const Send& send, int64_t max_releases) {
  SecureBits bits;
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> first, send(Neighbour::kOther, bits));
  return Attack{.description = "another size than a request of the other target had",
                .event = [send, size = TotalBytes(first)](
                             Neighbour neighbour, BitSource& source) -> absl::StatusOr<bool> {
                  PM_ASSIGN_OR_RETURN(const auto messages, send(neighbour, source));
                  return TotalBytes(messages) != size;
                },
                .max_releases = max_releases};
}

// Compares with a request that is prepared just before or after, because a machine's speed changes.
Attack MakeTimeAttack(const Send& send, bool longer, int64_t max_releases) {
  return {.description = absl::StrCat("prepared for ", longer ? "longer" : "no longer",
                                      " than a request of the one target next to it"),
          .event = [send, longer](Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
            uint8_t coin = 0;
            PM_RETURN_IF_ERROR(bits.Fill(absl::MakeSpan(&coin, 1)));
            double seconds[2];
            for (const bool compared : {coin % 2 == 0, coin % 2 != 0}) {
              PM_ASSIGN_OR_RETURN(seconds[compared],
                                  SecondsOf(send, compared ? Neighbour::kOne : neighbour, bits));
            }
            return (seconds[0] > seconds[1]) == longer;
          },
          .max_releases = max_releases};
}

absl::Status AddSizeAndTime(const Send& send, int64_t max_releases, Subject* subject) {
  PM_ASSIGN_OR_RETURN(subject->attacks.emplace_back(), MakeSizeAttack(send, max_releases));
  for (const bool longer : {false, true}) {
    subject->attacks.push_back(MakeTimeAttack(send, longer, max_releases));
  }
  return absl::OkStatus();
}

absl::StatusOr<Eigen::VectorXd> CoordinatesIn(const std::string& message) {
  v1::RetrieveRequest request;
  if (!request.ParseFromString(message)) return absl::InternalError("a request is malformed");
  PM_ASSIGN_OR_RETURN(const FloatMatrix rows, FromProto("release", request.release()));
  return Eigen::VectorXd(rows.cast<double>().reshaped());
}

// A linear discriminant with the variance of each coordinate, and what it scores.
struct Discriminant {
  Eigen::VectorXd direction;
  double threshold = 0;

  double Score(const Eigen::VectorXd& x) const { return direction.dot(x) - threshold; }
};

absl::StatusOr<Discriminant> Learn(const Send& send) {
  constexpr int kPilot = 500;
  SecureBits bits;
  const auto mean_and_square = [&](Neighbour neighbour,
                                   Eigen::VectorXd* square) -> absl::StatusOr<Eigen::VectorXd> {
    Eigen::VectorXd sum;
    for (int i = 0; i < kPilot; ++i) {
      PM_ASSIGN_OR_RETURN(const std::vector<std::string> messages, send(neighbour, bits));
      PM_ASSIGN_OR_RETURN(const Eigen::VectorXd x, CoordinatesIn(messages.front()));
      if (i == 0) sum = *square = Eigen::VectorXd::Zero(x.size());
      sum += x / kPilot;
      *square += x.cwiseAbs2() / kPilot;
    }
    *square -= sum.cwiseAbs2();
    return sum;
  };
  Eigen::VectorXd one_variance, other_variance;
  PM_ASSIGN_OR_RETURN(const Eigen::VectorXd one, mean_and_square(Neighbour::kOne, &one_variance));
  PM_ASSIGN_OR_RETURN(const Eigen::VectorXd other,
                      mean_and_square(Neighbour::kOther, &other_variance));
  const Eigen::VectorXd variance = (one_variance + other_variance).cwiseMax(1e-30);
  Discriminant learned{.direction = (one - other).cwiseQuotient(variance)};
  learned.threshold = learned.direction.dot(one + other) / 2;
  return learned;
}

// The message of a query (EncryptedClient::Prepare) for a unit target of one chunk.
std::vector<int64_t> PlainMessage(const Eigen::RowVectorXf& target, int delta) {
  std::vector<int64_t> message(kDegree);
  for (int64_t i = 0; i < target.size(); ++i) {
    const int64_t value = std::llrint(target[i] * QueryScale(delta));
    message[static_cast<size_t>((kDegree - i) % kDegree)] = i == 0 ? value : -value;
  }
  return message;
}

absl::StatusOr<std::vector<int64_t>> CiphertextIn(const std::string& message) {
  v1::EncryptedQuery query;
  std::vector<int64_t> values(kDegree);
  if (!query.ParseFromString(message) || query.chunks().size() != lattice::kPolynomialBytes ||
      !lattice::ReadPolynomial(query.chunks().data(), values.data())) {
    return absl::InternalError("a query is malformed");
  }
  return values;
}

double SquaredDistance(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t difference = (a[i] - b[i]) % lattice::kModulus;
    sum += std::pow(
        std::remainder(static_cast<double>(difference), static_cast<double>(lattice::kModulus)), 2);
  }
  return sum;
}

constexpr int kQueryDelta = 32;  // of the encrypted queries, whose targets have as many dimensions

absl::StatusOr<EncryptedClient> MakeEncryptedClient() {
  v1::GetCollectionResponse collection;
  PM_ASSIGN_OR_RETURN(PublicParameters parameters,
                      MakeParametersWithoutAnchors("audit", "vectors", Metric::kCosine));
  parameters.feature_dim = kQueryDelta;
  ToProto(parameters, collection.mutable_parameters());
  collection.set_name("audit");
  collection.set_fingerprint(Fingerprint(parameters));
  collection.mutable_encrypted()->set_delta(kQueryDelta);
  collection.mutable_encrypted()->set_rows(1);
  return EncryptedClient::Create(collection);
}

}  // namespace

absl::StatusOr<v1::RetrieveRequest> PrepareJointRequest(
    const std::shared_ptr<const JointCollection>& collection, const SearchRequest& request,
    BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<SchemeSearch> search,
                      JointSearch::Create(collection, request));
  const auto charge = [](const Guarantee&) { return absl::OkStatus(); };
  PM_ASSIGN_OR_RETURN(PreparedSearch prepared, search->Prepare(0, 1, charge, bits));
  return std::move(static_cast<v1::RetrieveRequest&>(*prepared.message));
}

absl::StatusOr<Subject> AttackJointRequest(double epsilon, double delta,
                                           const JointRequestFn& prepare) {
  constexpr int64_t kMaxReleases = 20'000;
  PM_ASSIGN_OR_RETURN(NewCollectionPair pair, MakeNewCollectionPair());
  PM_ASSIGN_OR_RETURN(JointScheme scheme, JointScheme::Create(pair.parameters, pair.anchors));
  v1::GetCollectionResponse published;
  published.set_name("audit");
  const auto collection = std::make_shared<const JointCollection>(
      JointCollection{published, std::move(scheme), std::nullopt});
  const auto request_for = [&](int64_t slot) {
    SearchRequest request{.collection = "audit"};
    request.targets.push_back({.features = pair.features,
                               .label = pair.parameters.slot_labels[static_cast<size_t>(slot)]});
    request.scheme = Scheme::kJoint;
    request.epsilon = epsilon;
    request.delta = delta;
    return request;
  };
  const Send send = [=, one = request_for(pair.one), other = request_for(pair.other)](
                        Neighbour neighbour,
                        BitSource& bits) -> absl::StatusOr<std::vector<std::string>> {
    PM_ASSIGN_OR_RETURN(const v1::RetrieveRequest message,
                        prepare(collection, neighbour == Neighbour::kOne ? one : other, bits));
    return std::vector<std::string>{message.SerializeAsString()};
  };

  SecureBits bits;
  PM_ASSIGN_OR_RETURN(JointSetting setting, MakeJointSetting(pair.parameters, pair.anchors));
  PM_ASSIGN_OR_RETURN(
      const TargetIndependentPart part,
      DrawTargetIndependentPart(setting, {.epsilon = epsilon, .delta = delta}, bits));
  Subject subject{.mechanism = "joint request, settings of a new collection",
                  .claim = part.guarantee};
  PM_ASSIGN_OR_RETURN(Discriminant learned, Learn(send));
  subject.attacks.push_back(
      {.description = "coordinates that a linear discriminant takes for the one class's",
       .event = [send, learned = std::move(learned)](Neighbour neighbour,
                                                     BitSource& source) -> absl::StatusOr<bool> {
         PM_ASSIGN_OR_RETURN(const std::vector<std::string> messages, send(neighbour, source));
         PM_ASSIGN_OR_RETURN(const Eigen::VectorXd x, CoordinatesIn(messages.front()));
         return learned.Score(x) > 0;
       },
       .max_releases = kMaxReleases});
  PM_RETURN_IF_ERROR(AddSizeAndTime(send, kMaxReleases, &subject));
  return subject;
}

absl::StatusOr<std::vector<v1::EncryptedQuery>> PrepareEncryptedQueries(
    const std::vector<Eigen::RowVectorXf>& targets, BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const EncryptedClient client, MakeEncryptedClient());
  PM_ASSIGN_OR_RETURN(const auto session, EncryptedSession::Create(kQueryDelta, bits));
  std::vector<v1::EncryptedQuery> queries;
  for (const Eigen::RowVectorXf& target : targets) {
    PM_ASSIGN_OR_RETURN(PreparedEncryptedQuery prepared, client.Prepare(target, session, bits));
    queries.push_back(ToMessage(std::move(prepared.request)));
  }
  return queries;
}

absl::StatusOr<Subject> AttackEncryptedQueries(const EncryptedRequestFn& prepare) {
  constexpr int64_t kMaxReleases = 5'000;  // each makes a key
  const Eigen::RowVectorXf one = Eigen::RowVectorXf::Unit(kQueryDelta, 0);
  const Eigen::RowVectorXf other = -one;
  const Send send = [=](Neighbour neighbour,
                        BitSource& bits) -> absl::StatusOr<std::vector<std::string>> {
    PM_ASSIGN_OR_RETURN(const std::vector<v1::EncryptedQuery> queries,
                        prepare({one, neighbour == Neighbour::kOne ? one : other}, bits));
    std::vector<std::string> messages;
    for (const v1::EncryptedQuery& query : queries) {
      messages.push_back(query.SerializeAsString());
    }
    return messages;
  };
  Subject subject{.mechanism = "encrypted",
                  .claim = {.epsilon = 0,
                            .delta = 0,
                            .neighbours = kAnyTargetNeighbours,
                            .proven = true,
                            .source = "ring-LWE, 128 bits (PRIVACY.md section 9)"}};
  const std::vector<int64_t> plain_one = PlainMessage(one, kQueryDelta);
  const std::vector<int64_t> plain_other = PlainMessage(other, kQueryDelta);
  for (const bool difference : {false, true}) {
    std::vector<int64_t> of_one = plain_one, of_other = plain_other;
    if (difference) {
      for (size_t i = 0; i < of_one.size(); ++i) {
        of_one[i] -= plain_one[i];
        of_other[i] -= plain_one[i];
      }
    }
    subject.attacks.push_back(
        {.description = difference ? "two queries of a session differ as two equal targets do"
                                   : "a query lies nearer to the one target's message",
         .event = [=](Neighbour neighbour, BitSource& source) -> absl::StatusOr<bool> {
           PM_ASSIGN_OR_RETURN(const std::vector<std::string> messages, send(neighbour, source));
           PM_ASSIGN_OR_RETURN(const std::vector<int64_t> first, CiphertextIn(messages[0]));
           PM_ASSIGN_OR_RETURN(std::vector<int64_t> second, CiphertextIn(messages[1]));
           if (difference) {
             for (size_t i = 0; i < second.size(); ++i) second[i] -= first[i];
           }
           return SquaredDistance(second, of_one) < SquaredDistance(second, of_other);
         },
         .max_releases = kMaxReleases});
  }
  PM_RETURN_IF_ERROR(AddSizeAndTime(send, kMaxReleases, &subject));
  return subject;
}

}  // namespace privatemail::client::audit
