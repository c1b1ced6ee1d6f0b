// Starts the build of a program that fits the processor: PROGRAM-x86-64-v3 with AVX2 and FMA,
// otherwise PROGRAM. A program of its own, because loading the libraries of both takes .1 s.
#include <unistd.h>

#include <cstdio>

int main(int /*argc*/, char** argv) {
  if (__builtin_cpu_supports("x86-64-v3")) ::execv(PROGRAM "-x86-64-v3", argv);
  ::execv(PROGRAM, argv);
  std::perror(PROGRAM);
  return 1;
}
