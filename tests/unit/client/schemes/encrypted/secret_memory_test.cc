// A program of its own: it replaces munmap, to see what is given back, and getpid.
#include "client/schemes/encrypted/secret_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/testing/fork.h"
#include "tests/testing/matchers.h"

namespace {

const void* watched = nullptr;  // begin of the pages whose end is awaited
bool were_zero = false;
pid_t pretended = 0;  // number of this process, if not 0

}  // namespace

extern "C" pid_t getpid() noexcept {
  return pretended != 0 ? pretended : static_cast<pid_t>(::syscall(SYS_getpid));
}

extern "C" int munmap(void* pages, size_t size) noexcept {
  if (pages == watched) {
    const auto* bytes = static_cast<const uint8_t*>(pages);
    were_zero = std::all_of(bytes, bytes + size, [](uint8_t byte) { return byte == 0; });
    watched = nullptr;
  }
  return static_cast<int>(::syscall(SYS_munmap, pages, size));
}

namespace privatemail::client {
namespace {

void* BeginOf(const SecretArray<int64_t>& secret) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(secret.data()) / page * page);
}

// The flags that the kernel reports for the pages: "rd wr mr mw me lo dd wf".
std::string FlagsOf(const void* pages) {
  std::ostringstream begin;
  begin << std::hex << reinterpret_cast<uintptr_t>(pages) << "-";
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    here = here || line.rfind(begin.str(), 0) == 0;
    if (here && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST(SecretMemory, IsZeroAtFirstAndWipedAtTheEnd) {
  {
    ASSERT_OK_AND_ASSIGN(const auto secret, SecretArray<int64_t>::Allocate(2048));
    EXPECT_TRUE(std::all_of(secret.begin(), secret.end(), [](int64_t one) { return one == 0; }));
    std::fill(secret.begin(), secret.end(), 7);
    watched = BeginOf(secret);
  }
  EXPECT_EQ(watched, nullptr) << "the pages were not given back";
  EXPECT_TRUE(were_zero);
}

TEST(SecretMemory, MovedMemoryIsWipedOnce) {
  ASSERT_OK_AND_ASSIGN(auto secret, SecretArray<int64_t>::Allocate(10));
  secret[9] = 5;
  const SecretArray<int64_t> moved = std::move(secret);
  EXPECT_EQ(moved[9], 5);
  EXPECT_THAT(moved.CheckProcess(), IsOk());
}

TEST(SecretMemory, IsLeftOutOfCoreDumpsAndOfForks) {
  ASSERT_OK_AND_ASSIGN(const auto secret, SecretArray<int64_t>::Allocate(2048));
  const std::string flags = FlagsOf(BeginOf(secret));
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
  EXPECT_NE(flags.find(" wf "), std::string::npos) << flags;
  std::fill(secret.begin(), secret.end(), 7);
  const pid_t parent = ::getpid();
  EXPECT_TRUE(HoldsInFork([&] {
    if (!absl::IsFailedPrecondition(secret.CheckProcess())) return false;
    pretended = parent;  // as a later process may have its number
    return absl::IsFailedPrecondition(secret.CheckProcess()) &&
           std::all_of(secret.begin(), secret.end(), [](int64_t one) { return one == 0; });
  }));
  EXPECT_EQ(secret[2047], 7);
  EXPECT_THAT(secret.CheckProcess(), IsOk());
}

}  // namespace
}  // namespace privatemail::client
