// A distributed build of one collection.
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

// Each rank reads its rows, all embed (EmbedShare), and rank 0 saves the embedding in one
// transaction, bit for bit that of a daemon's build. Rank 0 prints its progress to stdout and
// returns the outcome; the others return an empty one. All ranks return the status of Ranks::Agree;
// on an error nothing is saved:
//   NOT_FOUND            no collection of this name
//   ABORTED              deleted or changed while ranks read it, or an embedding of later items is
//                        stored
//   FAILED_PRECONDITION  empty, needs every pair of rows (EmbedShare), or cannot be aligned
//   INVALID_ARGUMENT     more ranks than groups of rows
//   and errors of PostgresStore and PointFile
absl::StatusOr<EmbedOutcome> Run(const EmbedJob& job, const Ranks& ranks);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_MPI_EMBED_JOB_H_
