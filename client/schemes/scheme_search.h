// The interface of the schemes: one search, from a checked request to its results.
//
// A new scheme derives a class from SchemeSearch, which knows no transport, no file and no flag,
// and has an entry in client/search/scheme_table.cc.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_SCHEME_SEARCH_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_SCHEME_SEARCH_H_

#include <google/protobuf/message.h>

#include <any>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/search_interval.h"
#include "privatemail/ledger.h"
#include "privatemail/search_request.h"
#include "privatemail/search_result.h"

namespace privatemail::client {

// The whole answer to a message. value: what the scheme's Finish reads.
struct SearchAnswer {
  std::any value;
  int64_t memory = 0;  // bytes that it takes; the server chooses them, the same for all targets
};

// The private state of a scheme between Prepare and Finish.
class SearchState {
 public:
  virtual ~SearchState() = default;
};

struct PreparedSearch {
  std::unique_ptr<google::protobuf::Message> message;  // all that leaves the machine
  std::unique_ptr<SearchState> state;
};

// The facts that public data tells of a search before anything is charged or sent.
struct Expectation {
  std::optional<Budget> cost = std::nullopt;  // of each target; absent: nothing is charged
  std::vector<std::string> warnings = {};
  std::optional<double> recall = std::nullopt;  // that is expected without noise; absent: not known
  int64_t targets_per_message = 1;
  int64_t message_bytes = 0;  // most bytes of a message that is charged for, but for 1,024
};

// One search by one scheme. The derived class's Create checks the request and says what to expect;
// nothing that Prepare refuses afterwards is the caller's fault. Held by the client; sees the
// request's targets. Used by one thread.
class SchemeSearch {
 public:
  virtual ~SchemeSearch() = default;

  const Expectation& expectation() const { return expectation_; }

  // Charges, releases or encrypts the targets first .. first + count - 1 of the request, as one
  // message. Charges once for each target if the expectation has a cost, and never otherwise. An
  // error after the charge says so.
  virtual absl::StatusOr<PreparedSearch> Prepare(size_t first, size_t count,
                                                 const ChargeFunction& charge, BitSource& bits) = 0;

  // The work of Finish on the answer, by public sizes.
  virtual SearchWork WorkOf(const SearchAnswer&) const { return {}; }

  // Reads the answer into the results of the same targets. Whether it succeeds does not depend on
  // a target: a server could corrupt an answer in one place and see who complains.
  // DATA_LOSS: the answer is malformed.
  virtual absl::Status Finish(PreparedSearch prepared, const SearchAnswer& answer,
                              absl::Span<SearchResult> results) const = 0;

 protected:
  Expectation expectation_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_SCHEME_SEARCH_H_
