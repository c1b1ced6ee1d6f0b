#include "common/base/process_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/testing/temporary_folder.h"

namespace privatemail::testing {
namespace {

TEST(ProcessMemory, ContainerLimitCounts) {
  const TemporaryFolder root;
  const int64_t machine = AvailableMemory(root.path());
  EXPECT_GT(machine, 1 << 28);
  root.Write("memory.max", "max\n");
  EXPECT_EQ(AvailableMemory(root.path()), machine);
  root.Write("memory.max", "1073741824\n");
  EXPECT_EQ(AvailableMemory(root.path()), std::min<int64_t>(machine, 1 << 30));
  root.Write("memory/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(AvailableMemory(root.path()), 1 << 20);
}

}  // namespace
}  // namespace privatemail::testing
