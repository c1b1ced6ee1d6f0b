// A private search: what is asked for, for every scheme.
#ifndef PRIVATEMAIL_SEARCH_REQUEST_H_
#define PRIVATEMAIL_SEARCH_REQUEST_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/mechanism_kind.h"

namespace privatemail::client {

enum class Scheme { kCells, kEncrypted, kJoint };

// The schemes by name: "cells", "encrypted", "joint".
extern const std::map<std::string, Scheme> kSchemeNames;
const std::string& NameOf(Scheme scheme);

// The scheme of searches that name none: the first of encrypted, joint and cells that the
// collection offers. offered: their names (OfferedSchemes).
Scheme DefaultScheme(const std::vector<std::string>& offered);

// The item that somebody searches for. Private: it never leaves the client.
struct SearchTarget {
  std::string name = {};                        // in results and errors; "target 3" if empty
  Eigen::RowVectorXf features = {};             // as many finite values as the collection has
  std::optional<int32_t> label = std::nullopt;  // encrypted: only items with this label.
                                                // joint: the target's class
  std::optional<std::string> label_text = std::nullopt;  // its number or name, in place of label
};

// The party that runs the iterations after the noise of `joint`. Both give the same coordinates up
// to one rounding to float.
enum class PostProcessing {
  kClient,  // the request carries finished coordinates
  kServer,  // the request carries the noisy rows
};

// Settings of one search. All but the targets are public: choose them independently of the targets,
// since the server sees them or can tell them from the noise.
struct SearchRequest {
  std::string collection = {};
  std::vector<SearchTarget> targets = {};
  std::optional<Scheme> scheme = std::nullopt;  // absent: DefaultScheme
  // The collection's fingerprint, if the request was made for it alone, as a plan is.
  std::optional<std::string> fingerprint = std::nullopt;

  int64_t k = 8;  // matches of each target
  // Fetches payloads, of all items alike. Absent: yes, but for encrypted no.
  std::optional<bool> with_payloads = std::nullopt;
  // Only items whose payload matches this JSON text (kFilterForm in common/items/payload_filter.h
  // has the form); empty: all. encrypted: applied on this machine. joint: SENT IN THE CLEAR and not
  // covered by the guarantee.
  std::string filter = {};
  // Searches although public data alone shows that little will be found.
  bool accept_misalignment = false;

  // cells and joint: the cost of each target; required.
  std::optional<double> epsilon = std::nullopt;

  // joint. delta belongs to the Gaussian laws, and to strong composition over several iterations of
  // a pure law; radius, in (0, 2], to the mechanisms of Inference Privacy.
  std::optional<MechanismKind> mechanism = std::nullopt;  // absent: kGaussian
  std::optional<double> delta = std::nullopt;
  std::optional<double> radius = std::nullopt;
  std::optional<int64_t> private_iterations = std::nullopt;   // absent: 1
  std::optional<PostProcessing> post_process = std::nullopt;  // absent: kClient
  // Without labels: classes to read matches of, the best by the anchors; absent: as many as it
  // takes. Neither sent nor charged, since the server sends the matches of every class.
  std::optional<int64_t> classes = std::nullopt;
  // Public vectors from which dummies are drawn; absent: the anchors.
  std::optional<Anchors> dummies = std::nullopt;
  // The collection's anchors, in its order, by the model that made the targets (any number of
  // columns); absent: the published ones.
  std::optional<FloatMatrix> own_anchors = std::nullopt;
  // Returns the released rows and the server's anchors, for plots.
  std::optional<bool> with_alignment = std::nullopt;

  // cells.
  std::optional<int64_t> partition = std::nullopt;  // absent: 0
  std::optional<int64_t> ask = std::nullopt;        // cells in each request; absent: 1
  std::optional<int64_t> focus = std::nullopt;      // nearest cells that are preferred; absent: 1
  std::optional<int64_t> items = std::nullopt;      // to receive; absent: by the published quality
};

// Shows a warning to the caller.
using WarnFunction = std::function<void(const std::string&)>;
using ProgressFunction = std::function<void(int64_t done)>;
// Asks the caller about a charge, which the text describes. After an error nothing is charged.
using ConfirmFunction = std::function<absl::Status(const std::string& charge)>;

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_SEARCH_REQUEST_H_
