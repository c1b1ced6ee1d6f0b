// Apart from the library, which is compiled with precompiled headers.
#include "server/daemon/program.h"

int main(int argc, char** argv) { return privatemail::server::RunProgram(argc, argv); }
