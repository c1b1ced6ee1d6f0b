// The vectors and ids of a FAISS index in a file of the user's own: no data of a server reaches
// FAISS here.
#ifndef PRIVATEMAIL_CLIENT_CLI_FAISS_INDEX_H_
#define PRIVATEMAIL_CLIENT_CLI_FAISS_INDEX_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/embedding/public_parameters.h"

namespace faiss {
struct Index;
}

namespace privatemail::client::cli {

// n x d vectors, n, d >= 1, which are reconstructed where they are copied; the index itself is in
// memory. Not thread-safe.
class FaissIndex {
 public:
  // Reads flat and IVF indexes, and others that reconstruct their vectors, below IndexIDMap,
  // IndexPreTransform or neither.
  // trial: a command that calls TryFaissIndex with the path as a further argument; empty: the file
  // is trusted, and FAISS may end the process on a damaged one.
  // INVALID_ARGUMENT naming the file: it cannot be read, is damaged, has no vectors, or is of a
  // kind that cannot reconstruct them.
  static absl::StatusOr<FaissIndex> Open(const std::string& path, std::vector<std::string> trial);

  int64_t rows() const;
  int64_t cols() const;
  // Writes rows first, ..., first + count - 1 to `out`, count x cols.
  void Copy(int64_t first, int64_t count, float* out) const;

  // The id of each row, in its order: of IndexIDMap, or of an IVF index to which they were given.
  // Empty: FAISS numbers the vectors from 0.
  const std::vector<int64_t>& ids() const { return ids_; }
  // By what the index ranks; nullopt: neither inner product nor Euclidean distance.
  std::optional<Metric> metric() const;
  // Whether it keeps the vectors as they were added.
  bool is_exact() const;

 private:
  // Takes an index that FAISS read. Throws its exceptions.
  explicit FaissIndex(std::unique_ptr<faiss::Index> index);

  std::shared_ptr<faiss::Index> index_;
  const faiss::Index* vectors_;  // without IndexIDMap
  std::vector<int64_t> ids_;
  bool ids_are_keys_ = false;  // of `vectors_`
};

// The word after which `privatemail` takes a path for TryFaissIndex.
inline constexpr char kTryFaissIndex[] = "--try-faiss-index";
// Reads and reconstructs all of an index in a process of its own, with limits of time and memory,
// and prints a verdict. Returns the exit code.
int TryFaissIndex(const std::string& path);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_FAISS_INDEX_H_
