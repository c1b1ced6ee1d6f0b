// Snapshot files: taken, restored, and damaged.
#include <filesystem>
#include <fstream>

#include "tests/e2e/service.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Snapshots : public FilledService {
 protected:
  json Take() const { return Answer({"snapshot", "things", "--out", file_}); }
  const std::string file_ = folder_ / "things.snapshot";
};

TEST_F(Snapshots, LostCollectionIsRestoredWithDigestAndBudget) {
  const json before = Info();
  const json taken = Take();
  EXPECT_EQ(taken["items"], kItems);
  EXPECT_EQ(taken["bytes"], std::filesystem::file_size(file_));
  EXPECT_EQ(ModeOf(file_), 0600u);

  daemon_.reset();
  std::filesystem::rename(folder_ / "data", folder_ / "lost");
  StartDaemon();
  const json restored = Answer({"restore", "things", "--in", file_});
  EXPECT_EQ(restored["same_digest"], true);
  EXPECT_EQ(restored["built"], true);
  const json after = Info();
  EXPECT_EQ(after["digest"], before["digest"]);
  EXPECT_EQ(after["embedded"], kItems);
  const json answer =
      Answer(Query({"--row", "2", "--label", "2", "-k", "5", "--epsilon", "5", "--delta", "1e-3"}));
  EXPECT_EQ(answer["matches"].size(), 5u);
}

// PrivateFile's tests have drafts and failures while writing.
TEST_F(Snapshots, ExistingFileIsReplacedOnlyWithForce) {
  std::ofstream(file_) << "precious";
  ExpectRefused({"snapshot", "things", "--out", file_}, "ALREADY_EXISTS",
                {"exists already: replace it with --force"});
  ExpectRefused({"snapshot", "nothing", "--out", file_, "--force"}, "NOT_FOUND", {"nothing"});
  EXPECT_EQ(Contents(file_), "precious") << "a failure keeps the old file";
  ExpectRefused({"snapshot", "things", "--out", folder_ / "none/here"}, "INVALID_ARGUMENT",
                {"cannot be written"});
  EXPECT_EQ(Answer({"snapshot", "things", "--out", file_, "--force"})["items"], kItems);
  EXPECT_THAT(Contents(file_), Not(HasSubstr("precious")));
}

TEST_F(Snapshots, DamagedFileIsRefusedWithoutServer) {
  Take();
  const std::string file = folder_.Write("damaged", Contents(file_).substr(0, 100));
  ExpectRefused({"restore", "new", "--in", folder_ / "none"}, "INVALID_ARGUMENT",
                {"cannot be read: No such file"});
  daemon_.reset();
  const Outcome outcome = Run({"restore", "new", "--in", file});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(file + ": block "), HasSubstr("(DATA_LOSS)")));
}

}  // namespace
}  // namespace privatemail::e2e
