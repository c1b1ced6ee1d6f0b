// privatemaild-embed: builds a collection in PostgreSQL with as many processes as mpirun starts.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "server/config/settings.h"
#include "server/mpi/embed_job.h"
#include "server/mpi/ranks.h"

namespace privatemail::server {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

struct Flags {
  std::string collection;
  std::string config;
  std::string postgres_file;
  std::string data_directory;
};

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("--collection", flags->collection, "Name of the collection to build")->required();
  app->add_option("--config", flags->config,
                  "The daemon's TOML file; postgres_file and data_dir are read from it");
  app->add_option("--postgres-file", flags->postgres_file,
                  "File with the libpq connection string, readable by you alone; instead of the "
                  "configuration's");
  app->add_option("--data-dir", flags->data_directory,
                  "Directory for a file without a name of this process's features, 4 bytes a value "
                  "of its rows, while it runs; instead of the configuration's");
}

absl::Status CheckPostgres(const DaemonOptions& options) {
  if (options.postgres_file.empty()) {
    return absl::InvalidArgumentError(
        "the collection must be in PostgreSQL: postgres_file must be in the file of --config, or "
        "--postgres-file be given");
  }
  if (options.data_directory.empty()) {
    return absl::InvalidArgumentError(
        "data_dir must be in the file of --config, or --data-dir be given");
  }
  return absl::OkStatus();
}

absl::StatusOr<EmbedJob> ReadJob(const Flags& flags) {
  DaemonOptions options;
  if (!flags.config.empty()) {
    PM_ASSIGN_OR_RETURN(const std::string text, ReadFile("--config", flags.config));
    PM_ASSIGN_OR_RETURN(const Problems wrong, ParseConfig(text, flags.config, &options));
    PM_RETURN_IF_ERROR(wrong.status());
  }
  if (!flags.postgres_file.empty()) options.postgres_file = flags.postgres_file;
  if (!flags.data_directory.empty()) options.data_directory = flags.data_directory;
  PM_RETURN_IF_ERROR(CheckPostgres(options));
  PM_ASSIGN_OR_RETURN(const std::string conninfo,
                      ReadFile("--postgres-file", options.postgres_file));
  return EmbedJob{flags.collection, conninfo, options.data_directory};
}

absl::StatusOr<EmbedOutcome> RunJob(const Flags& flags, const Ranks& ranks) {
  const absl::StatusOr<EmbedJob> job = ReadJob(flags);
  PM_RETURN_IF_ERROR(ranks.Agree(job.status()));
  return Run(*job, ranks);
}

int Main(int argc, char** argv) {
  ::umask(077);
  CLI::App app(
      "privatemaild-embed builds a collection in PostgreSQL, as the daemon's build does and with "
      "the same result to the last bit, sharing its rows out to the processes that mpirun -n N "
      "starts",
      "privatemaild-embed");
  app.set_version_flag("--version", "privatemaild-embed " PRIVATEMAIL_VERSION);
  Flags flags;
  AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const Ranks ranks(&argc, &argv);
  try {
    const absl::StatusOr<EmbedOutcome> outcome = RunJob(flags, ranks);
    if (outcome.ok() && ranks.rank() == 0) {
      std::printf("embedded %s: version %llu, %llu items, %d ranks; %s\n", flags.collection.c_str(),
                  static_cast<unsigned long long>(outcome->version),
                  static_cast<unsigned long long>(outcome->items), ranks.size(),
                  outcome->plan.c_str());
    } else if (!outcome.ok() && ranks.rank() == 0) {
      std::fprintf(stderr, "privatemaild-embed: %s\n",
                   std::string(outcome.status().message()).c_str());
    }
    return outcome.ok() ? 0 : kExitFailure;
  } catch (const std::exception& error) {
    // For example std::bad_alloc. Without an abort the others would wait for this rank.
    std::fprintf(stderr, "privatemaild-embed: rank %d: %s\n", ranks.rank(), error.what());
    Ranks::Abort();
  }
}

}  // namespace
}  // namespace privatemail::server

int main(int argc, char** argv) { return privatemail::server::Main(argc, argv); }
