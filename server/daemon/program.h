// The program privatemaild, which serves the collections of one store.
#ifndef PRIVATEMAIL_SERVER_DAEMON_PROGRAM_H_
#define PRIVATEMAIL_SERVER_DAEMON_PROGRAM_H_

namespace privatemail::server {

// Returns the exit code.
int RunProgram(int argc, char** argv);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_PROGRAM_H_
