// Private queries by the joint scheme: checks, charges, sending, answers.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_JOINT_QUERIES_H_
#define PRIVATEMAIL_CLIENT_QUERIES_JOINT_QUERIES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/queries/query_batch.h"
#include "privatemail/joint_client.h"
#include "privatemail/transport.h"

namespace privatemail::client {

struct JointOutcome : Attempt {
  std::string class_name;
  PreparedQuery prepared;
  v1::RetrieveResponse response;
  QueryResult result;                          // once finished
  std::optional<RadiusStats> radius_meaning;   // with a radius: its meaning on the collection
  std::optional<ExpectedAlignment> alignment;  // nullopt: not known
  // Without a label: ClassRanker::ExpectedRecall. NaN: none.
  double class_recall = std::numeric_limits<double>::quiet_NaN();

  size_t bytes_down() const { return response.ByteSizeLong(); }
  double server_ms() const { return response.server_seconds() * 1e3; }
  double network_ms() const { return std::max(0.0, round_trip_ms - server_ms()); }
};

// Queries to one collection. Held by the client; sees targets while they are labelled and sent.
class JointQueries {
 public:
  // Fetches parameters and anchors. transport must outlive it.
  // Errors of Transport::GetCollection and GetAnchors, and of JointClient::Create.
  static absl::StatusOr<JointQueries> Create(const Transport& transport, QuerySettings settings,
                                             const std::string& collection,
                                             const std::optional<Anchors>& dummies = std::nullopt);

  const JointClient& client() const { return client_; }
  const v1::GetCollectionResponse& collection() const { return collection_; }

  // For `guessed` targets: the classes that fit best (JointClient::AllotClasses), `classes` of
  // them for k matches, or as many as it takes if 0.
  absl::Status AllotClasses(int64_t k, int64_t classes, std::vector<NamedTarget>* targets) const;

  // FAILED_PRECONDITION: public data shows that queries find little; the same for every target.
  absl::Status CheckAlignment() const;

  // Charges and sends a query for each target in turn, then reads the answers.
  // - classes: as in AllotClasses, for the expected recall.
  // - warn: called before the first charge.
  // - Every failure that this machine can detect comes before the first charge: then it is the
  //   returned status. Later ones are in the outcomes.
  absl::StatusOr<std::vector<JointOutcome>> Run(const std::vector<NamedTarget>& targets,
                                                const QueryOptions& options, int64_t classes,
                                                const WarnFunction& warn) const;

 private:
  JointQueries(const Transport& transport, QuerySettings settings,
               v1::GetCollectionResponse collection, JointClient client)
      : transport_(&transport),
        settings_(std::move(settings)),
        collection_(std::move(collection)),
        client_(std::move(client)),
        alignment_(client_.ExpectAlignment()) {}

  std::vector<std::string> Warnings(const QueryOptions& options) const;
  absl::Status Release(Ledger& ledger, const QueryOptions& options, JointOutcome* outcome) const;
  absl::Status Send(JointOutcome* outcome) const;

  const Transport* transport_;
  QuerySettings settings_;
  v1::GetCollectionResponse collection_;
  JointClient client_;
  // Of the client with the server's anchors, or why it is not known.
  absl::StatusOr<std::optional<ExpectedAlignment>> alignment_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_JOINT_QUERIES_H_
