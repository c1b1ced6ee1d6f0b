// Apart from the library, which is compiled with precompiled headers.
#include "client/cli/program.h"

int main(int argc, char** argv) { return privatemail::client::cli::RunProgram(argc, argv); }
