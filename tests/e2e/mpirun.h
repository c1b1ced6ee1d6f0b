// The command line of privatemaild-embed under mpirun.
#ifndef PRIVATEMAIL_TESTS_E2E_MPIRUN_H_
#define PRIVATEMAIL_TESTS_E2E_MPIRUN_H_

#include <unistd.h>

#include <string>
#include <vector>

namespace privatemail::e2e {

// mpirun needs flags to run as root and with more ranks than cores.
inline std::vector<std::string> Mpirun(int ranks, const std::vector<std::string>& flags) {
  std::vector<std::string> command = {MPIRUN, "--oversubscribe", "-n", std::to_string(ranks)};
  if (::geteuid() == 0) command.insert(command.begin() + 1, "--allow-run-as-root");
  command.emplace_back(PRIVATEMAILD_EMBED);
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_MPIRUN_H_
