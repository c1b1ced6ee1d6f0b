// The results of a private search, for every scheme.
#ifndef PRIVATEMAIL_SEARCH_RESULT_H_
#define PRIVATEMAIL_SEARCH_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/guarantee.h"
#include "privatemail/ledger.h"
#include "privatemail/match.h"
#include "privatemail/search_request.h"

namespace privatemail::client {

// Bytes of the messages of a search. encrypted: of all targets together.
struct SearchBytes {
  uint64_t up = 0;        // without keys
  uint64_t down = 0;      // without table and payloads
  uint64_t keys = 0;      // encrypted: up, once a session
  uint64_t table = 0;     // encrypted: down, what has changed since the last search
  uint64_t payloads = 0;  // encrypted: down, likewise
};

// Milliseconds. encrypted: of all targets together.
struct SearchTimes {
  double prepare_ms = 0;  // release or encryption
  double answer_ms = 0;   // from sending to the whole answer
  double server_ms = 0;   // joint: the part of it that the server reports
  double finish_ms = 0;   // decryption and ranking
};

// A class that matches are read from.
struct SearchedClass {
  int32_t label = 0;
  int64_t slot = 0;
  int64_t places = 0;    // matches that it gets, at least 1
  double posterior = 0;  // of the class, by the anchors; 1 where the label was given
};

// Counts of anchor pairs within a radius of Inference Privacy. Public: a function of the anchors.
// A radius that covers few pairs of one class hides a target among few others.
struct RadiusStats {
  double radius = 0;
  int64_t same_class_pairs = 0;
  int64_t cross_class_pairs = 0;
  int64_t same_class_pairs_within = 0;  // at most `radius` apart
  int64_t cross_class_pairs_within = 0;

  // "closer than 0.5: 3 % of pairs of one class, 0.2 % of pairs of two classes"
  std::string ToString() const;
};

// Results that joint alone has.
struct JointResult {
  std::vector<SearchedClass> classes;  // most probable first
  bool label_guessed = false;
  std::optional<double> class_recall;         // without a label: expected share of right classes
  std::optional<double> expected_recall;      // of the anchors' alignment, by public data
  std::optional<double> expected_residual;    // likewise
  std::optional<RadiusStats> radius_meaning;  // with a radius
  // These describe the release, and are absent when it was sent again.
  std::optional<double> sensitivity;
  std::optional<double> noise_stddev;
  double relative_residual = 0;  // of the anchors: 0 perfect, 1 no better than their mean
  double scale = 0;              // of the alignment
  bool truncated = false;        // fewer items than k exist or match the filter
  uint64_t embedding_version = 0;
  uint64_t changes_since_embedding = 0;
  // With request.with_alignment; (slots + anchors) x embedding_dim, anchors x embedding_dim.
  Matrix released;  // coordinates as the server aligns them
  Matrix aligned;   // mapped to the server's embedding
  Matrix server_anchors;
};

// Results that cells alone has.
struct CellsResult {
  int64_t partition = 0;
  std::vector<int64_t> cells;  // that were asked for
  int64_t candidates = 0;      // items received
  // The probability that the target's nearest cell is requested, which is what epsilon buys:
  // e^epsilon / (e^epsilon + K - 1) for one of K cells. Absent when the request was sent again.
  std::optional<double> own_cell_probability;
  uint64_t items_version = 0;
};

// The guarantee of encrypted searches: the server learns nothing of a target, under an assumption.
// There is no epsilon, and nothing is charged.
struct EncryptedGuarantee {
  std::string kind = "computational";
  int bits = 128;  // of work to tell two targets apart, by Core-SVP
  std::string assumption =
      "ring-LWE with N = 2048, q = 2^41 - 2^12 + 1, ternary secrets and errors of deviation 3.24, "
      "circular security for the automorphism keys, and SHAKE128 as a random oracle";
  std::string source = "PRIVACY.md section 9";
};

// Results that encrypted alone has.
struct EncryptedResult {
  int delta = 0;
  uint64_t items = 0;  // that were compared
  uint64_t items_version = 0;
  // These name the row table (32 bytes each), the same for every searcher. There is one unless the
  // items changed while the server answered the messages of the search.
  std::vector<std::string> tables = {};
  std::optional<std::string> unknown_path = std::nullopt;  // of the filter, which no item has
};

// The result of one target. Private: it tells what was searched for.
struct SearchResult {
  std::string target;          // its name
  absl::Status status;         // why there are no matches
  std::vector<Match> matches;  // nearest first, of joint within each class
  // cells, joint: what the release hides; set once it is charged, even if no answer came.
  std::optional<Guarantee> guarantee;
  std::optional<EncryptedGuarantee> encryption;  // encrypted
  std::optional<LedgerEntry> ledger;             // after the charge
  SearchBytes bytes;
  SearchTimes times;
  std::string sent;  // the message; encrypted: of searches of one target only
  std::optional<JointResult> joint;
  std::optional<CellsResult> cells;
  std::optional<EncryptedResult> encrypted;
};

struct SearchResponse {
  PublicParameters parameters;
  Scheme scheme = Scheme::kEncrypted;
  std::vector<SearchResult> results;  // of each target, in order
  std::vector<std::string> warnings;
  // Encrypted: no item has a label or a path of the filter: a warning names it.
  bool has_unknown_name = false;
  // OK: all targets were answered. Otherwise the first failure, with what the failures cost; the
  // others' matches are there.
  absl::Status status;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_SEARCH_RESULT_H_
