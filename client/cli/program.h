// The program privatemail: the client's and operator's command line.
#ifndef PRIVATEMAIL_CLIENT_CLI_PROGRAM_H_
#define PRIVATEMAIL_CLIENT_CLI_PROGRAM_H_

namespace privatemail::client::cli {

// Returns the exit code.
int RunProgram(int argc, char** argv);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PROGRAM_H_
