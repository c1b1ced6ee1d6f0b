// The embedding of one collection, made by all ranks together.
#ifndef PRIVATEMAIL_SERVER_MPI_EMBED_JOB_H_
#define PRIVATEMAIL_SERVER_MPI_EMBED_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/mpi/ranks.h"

namespace privatemail::server {

struct EmbedJob {
  std::string collection;  // name
  std::string conninfo;    // as PostgresStore::Open takes it
  std::string directory;   // for files of features
};

struct EmbedOutcome {
  uint64_t version = 0;  // of the saved embedding
  uint64_t items = 0;
  std::string plan;
};

// Each rank reads its own rows, all of them embed (EmbedShare), and rank 0 saves the embedding as
// one transaction: the same bits that a daemon's build of these items gives. Prints every step that
// is done (rank 0, stdout). The outcome is rank 0's; the others get an empty one. Every rank
// returns what Ranks::Agree makes of the statuses:
//
// NOT_FOUND: no collection of this name. ABORTED: it was deleted, or its items were changed while
// they were being read; an embedding of later items was saved meanwhile. FAILED_PRECONDITION: it is
// empty, needs every pair of rows (EmbedShare) or cannot be aligned with. INVALID_ARGUMENT: more
// ranks than groups of rows. Those of PostgresStore and PointFile. Nothing is saved then.
absl::StatusOr<EmbedOutcome> Run(const EmbedJob& job, const Ranks& ranks);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_MPI_EMBED_JOB_H_
