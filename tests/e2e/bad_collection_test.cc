// Collections, uploads and files that must be refused and leave the server as it was.
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/e2e/service.h"
#include "tests/testing/onnx_model.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr char kName[] = "things";

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class BadCollection : public Service {
 protected:
  void SetUp() override { StartDaemon(); }

  std::vector<std::string> Create(const std::vector<std::string>& settings = {}) const {
    std::vector<std::string> command = {"collection",     "create",           "things",
                                        "--anchors",      Vectors("anchors"), "--anchor-labels",
                                        Labels("anchors")};
    command.insert(command.end(), settings.begin(), settings.end());
    return command;
  }
  Labelled Anchors() const { return SeparatedClasses(kClasses * kAnchorsPerClass, 1); }
};

TEST_F(BadCollection, AnchorsWithoutADirection) {
  Labelled anchors = Anchors();
  anchors.vectors(3, 9) = kNan;
  Write("anchors", anchors);
  ExpectRefused(Create(), "INVALID_ARGUMENT",
                {"anchors row 3: value in column 9 is nan, expected finite values"});
  anchors.vectors.row(3).setZero();
  Write("anchors", anchors);
  ExpectRefused(Create(), "INVALID_ARGUMENT", {"anchors row 3: all 64 values are zero"});
}

TEST_F(BadCollection, FewerAnchorsThanTheAlignmentNeeds) {
  Write("anchors", SeparatedClasses(4, 1));
  ExpectRefused(Create({"--dim", "4"}), "INVALID_ARGUMENT",
                {"anchors must be at least embedding_dim + 1 = 5, but are 4"});
}

TEST_F(BadCollection, AnchorsOfOneClassOrWithTooFewLabels) {
  Labelled anchors = Anchors();
  anchors.labels.assign(anchors.labels.size(), 3);
  Write("anchors", anchors);
  ExpectRefused(Create(), "INVALID_ARGUMENT", {"at least two classes, but hold 1"});
  anchors = Anchors();
  anchors.labels.pop_back();
  Write("anchors", anchors);
  ExpectRefused(Create(), "INVALID_ARGUMENT",
                {"--anchor-labels must hold one label for each of the 40 anchors, but holds 39"});
}

TEST_F(BadCollection, NegativeLabels) {
  Labelled anchors = Anchors();
  anchors.labels[7] = -2;
  Write("anchors", anchors);
  ExpectRefused(Create(), "INVALID_ARGUMENT", {"labels must be 0 or more, but", "-2 in row 7"});
}

TEST_F(BadCollection, AnchorsWithoutTheirLabels) {
  Write("anchors", Anchors());
  ExpectRefused({"collection", "create", "things", "--anchors", Vectors("anchors")},
                "INVALID_ARGUMENT", {"--anchor-labels is missing"});
}

TEST_F(BadCollection, SettingsOutOfRange) {
  Write("anchors", Anchors());
  ExpectRefused(Create({"--bandwidth", "0"}), "INVALID_ARGUMENT",
                {"--bandwidth must be between 0.001 and 100000, but is 0"});
  ExpectRefused(Create({"--alpha", "nan"}), "INVALID_ARGUMENT",
                {"alpha must be between 0 and 1e+09, but is nan"});
  ExpectRefused(Create({"--steps", "0"}), "INVALID_ARGUMENT",
                {"steps must be between 1 and 10000, but is 0"});
}

TEST_F(BadCollection, ANameThatIsTaken) {
  CreateCollection();
  ExpectRefused(Create({"--alpha", "3"}), "ALREADY_EXISTS", {"collection things exists already"});
}

TEST_F(BadCollection, AMessageOverTheLimit) {
  // 16 MiB of floats and their labels pass the limit of 64 MiB.
  Labelled anchors{FloatMatrix::Ones(1 << 12, 1 << 12), {}};
  for (int i = 0; i < 1 << 12; ++i) anchors.labels.push_back(i % 2);
  Write("anchors", anchors);
  ExpectRefused(Create(), "RESOURCE_EXHAUSTED",
                {"anchors make a message of 671", "bytes, expected at most 67108864"});
}

// So many steps leave the anchors on a line, whatever they were; no release can be aligned to it.
TEST_F(BadCollection, AnchorsThatEndOnALine) {
  CreateCollection(12, 1000);
  Fill();
  ExpectRefused({"build", "things"}, "FAILED_PRECONDITION",
                {"alignment refused", "collinear", "residual"});
  EXPECT_EQ(Info()["version"], 0);
}

TEST_F(BadCollection, DeletionNeedsYesWithoutATerminal) {
  CreateCollection();
  ExpectRefused({"collection", "delete", kName}, "INVALID_ARGUMENT", {"--yes must be given"});
}

// The program on a terminal of its own, on which `typed` is typed.
Outcome RunOnTerminal(const std::vector<std::string>& command, const std::string& typed) {
  static constexpr char kScript[] = R"(
import os, sys
pid, terminal = os.forkpty()
if pid == 0: os.execv(sys.argv[2], sys.argv[2:])
os.write(terminal, sys.argv[1].encode() + b"\n")
try:
  while piece := os.read(terminal, 4096): os.write(1, piece)
except OSError: pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))";
  std::vector<std::string> words = {"/usr/bin/python3", "-c", kScript, typed};
  words.insert(words.end(), command.begin(), command.end());
  return Program(words).Wait();
}

TEST_F(BadCollection, DeletionOnATerminalNeedsTheTypedName) {
  CreateCollection();
  const std::vector<std::string> command = user_.CommandLine({"collection", "delete", kName});
  const Outcome refused = RunOnTerminal(command, "thing");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.out, HasSubstr("Delete collection things with 0 items? Type its name:"));
  EXPECT_EQ(Info()["items"], 0);
  EXPECT_EQ(RunOnTerminal(command, "things").exit_code, 0);
  EXPECT_THAT(Answer({"collection", "list"}), SizeIs(0));
}

class BadUpload : public BadCollection {
 protected:
  void SetUp() override {
    StartDaemon();
    CreateCollection();
    Write("gallery", SeparatedClasses(kItems, 2));
    Grant(10, .1);
  }

  std::vector<std::string> Upload() const {
    return {"ingest", "things", "--vectors", Vectors("gallery"), "--labels", Labels("gallery")};
  }
};

TEST_F(BadUpload, RejectsBadRowsAloneAndListsThem) {
  Labelled rows = SeparatedClasses(kItems, 2);
  rows.vectors(3, 9) = kNan;
  rows.vectors.row(50).setZero();
  rows.labels[199] = kClasses;
  Write("gallery", rows);
  const Outcome outcome = Run([&] {
    std::vector<std::string> command = Upload();
    command.push_back("--json");
    return command;
  }());
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  const json answer = outcome.json();
  EXPECT_EQ(answer["acknowledged"], kItems - 3);
  EXPECT_EQ(answer["inserted"], kItems - 3);
  EXPECT_EQ(answer["rejected"], 3);
  EXPECT_EQ(
      answer["reasons"],
      json::array(
          {{{"row", 3},
            {"id", "3"},
            {"reason", "features: value in column 9 is nan, expected finite values"}},
           {{"row", 50},
            {"id", "50"},
            {"reason", "features: all 64 values are zero, expected a vector with a direction"}},
           {{"row", 199},
            {"id", "199"},
            {"reason", "label must be one of the collection's 5 classes (0 to 4), but is 5"}}}));
  EXPECT_THAT(outcome.err, HasSubstr("rejected row 50 (50): "));
  EXPECT_EQ(Info()["items"], kItems - 3);
}

TEST_F(BadUpload, OtherItemsOfTheSameRowNumbersAreNotReplaced) {
  EXPECT_EQ(Ingest("gallery")["inserted"], kItems);
  EXPECT_EQ(Ingest("gallery")["unchanged"], kItems) << "a repeated upload is safe";
  Write("gallery", SeparatedClasses(kItems, 5));
  ExpectRefused(Upload(), "ALREADY_EXISTS",
                {"collection things has another item with id 0", "--id-prefix", "--replace"});
  std::vector<std::string> prefixed = Upload();
  prefixed.insert(prefixed.end(), {"--id-prefix", "more-"});
  EXPECT_EQ(Answer(prefixed)["inserted"], kItems);
  std::vector<std::string> replacing = Upload();
  replacing.push_back("--replace");
  EXPECT_EQ(Answer(replacing)["updated"], kItems);
}

TEST_F(BadUpload, DuplicateIdsAreRefusedBeforeSending) {
  std::vector<std::string> command = Upload();
  std::string ids;
  for (int i = 0; i < kItems; ++i) ids += std::to_string(i == 150 ? 7 : i) + "\n";
  command.insert(command.end(), {"--ids", folder_.Write("ids.txt", ids)});
  ExpectRefused(command, "INVALID_ARGUMENT", {"row 150: id 7 is the id of row 7, too"});
}

TEST_F(BadUpload, FailsWhenEveryRowIsRejected) {
  Labelled rows = SeparatedClasses(4, 2);
  rows.labels.assign(4, 77);
  Write("gallery", rows);
  ExpectRefused(Upload(), "INVALID_ARGUMENT",
                {"all 4 rows were rejected", "5 classes (0 to 4), but is 77"});
}

TEST_F(BadUpload, VectorsOfAnotherDimension) {
  Write("gallery", SeparatedClasses(kItems, 2, 128));
  ExpectRefused(Upload(), "INVALID_ARGUMENT",
                {"--vectors has the wrong dimension: expected 64, got 128"});
}

TEST_F(BadUpload, LabelsOrIdsOfAnotherNumber) {
  Labelled rows = SeparatedClasses(kItems, 2);
  rows.labels.pop_back();
  Write("gallery", rows);
  ExpectRefused(Upload(), "INVALID_ARGUMENT", {"--labels", "each of the 200 vectors", "holds 199"});
}

TEST_F(BadUpload, ATruncatedFile) {
  for (const std::string& path : {Vectors("gallery"), Labels("gallery")}) {
    const std::string whole = Contents(path);
    std::filesystem::resize_file(path, whole.size() - 100);
    ExpectRefused(Upload(), "INVALID_ARGUMENT", {path, "shape (200", "bytes"});
    std::filesystem::resize_file(path, 7);
    ExpectRefused(Upload(), "INVALID_ARGUMENT", {path, "header is cut off after 7 bytes"});
    std::ofstream(path, std::ios::binary) << whole;
  }
  EXPECT_EQ(Ingest("gallery")["inserted"], kItems);
}

TEST_F(BadUpload, AFileThatIsNotThere) {
  std::filesystem::remove(Vectors("gallery"));
  ExpectRefused(Upload(), "INVALID_ARGUMENT", {Vectors("gallery") + ": no such file"});
}

// A row of payloads over the limit; what a message may hold is named before it is sent.
TEST_F(BadUpload, APayloadOverTheLimit) {
  Write("gallery", SeparatedClasses(1, 2));
  std::vector<std::string> command = Upload();
  command.insert(
      command.end(),
      {"--payloads", folder_.Write("payloads.jsonl", '"' + std::string(67'200'000, 'x') + "\"\n")});
  ExpectRefused(command, "RESOURCE_EXHAUSTED",
                {"items make a message of 672", "expected at most 67108864"});
}

// Two classes of pictures of one colour each, in six shades.
class Images : public Service {
 protected:
  void SetUp() override {
    StartDaemon();
    for (unsigned char shade = 0; shade < 6; ++shade) {
      const std::string file = std::to_string(shade) + ".ppm";
      const auto light = static_cast<unsigned char>(150 + 15 * shade);
      folder_.Write("pictures/green/" + file, PpmOfOneColour(16, 16, 20, light, 30));
      folder_.Write("pictures/red/" + file, PpmOfOneColour(16, 16, light, 20, 30));
    }
    EXPECT_EQ(Answer({"collection", "create", "things", "--anchor-images", folder_ / "pictures",
                      "--alpha", "30"})["class_names"],
              (json{"green", "red"}));
    EXPECT_EQ(Ingest()["inserted"], 12);
    Build();
    Grant(100, .1);
  }

  json Ingest() const { return Answer({"ingest", "things", "--images", folder_ / "pictures"}); }
  std::vector<std::string> Query(const std::string& image) const {
    return {"query", "things", "--image", image, "--epsilon", "10", "--delta", "1e-5", "-k", "3"};
  }
};

TEST_F(Images, AreAskedForByTheirFiles) {
  const json answer = Answer(Query(folder_ / "pictures/red/3.ppm"));
  EXPECT_EQ(answer["class"], "red");
  EXPECT_EQ(answer["label_guessed"], true);
  ASSERT_THAT(answer["matches"], SizeIs(3));
  EXPECT_THAT(answer["matches"][0]["id"].get<std::string>(), HasSubstr("/"));
}

TEST_F(Images, OneThatCannotBeReadIsRefusedAsAQuery) {
  const std::string path = folder_.Write("broken.png", "\x89PNG\r\n\x1a\nbut nothing follows");
  ExpectRefused(Query(path), "INVALID_ARGUMENT", {path, "expected an image"});
  ExpectRefused(Query(folder_ / "none.png"), "INVALID_ARGUMENT", {"none.png: no such file"});
}

TEST_F(Images, OneThatCannotBeReadIsRejectedAloneInAFolder) {
  folder_.Write("pictures/red/broken.ppm", "P6\nnot a picture");
  folder_.Write("pictures/red/9.ppm", PpmOfOneColour(16, 16, 140, 60, 70));
  const Outcome outcome = Run({"ingest", "things", "--images", folder_ / "pictures", "--json"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  const json answer = outcome.json();
  EXPECT_EQ(answer["inserted"], 1);
  EXPECT_EQ(answer["unchanged"], 12);
  EXPECT_EQ(answer["rejected"], 1);
  ASSERT_THAT(answer["reasons"], SizeIs(1));
  EXPECT_EQ(answer["reasons"][0]["id"], "red/broken.ppm");
  EXPECT_THAT(answer["reasons"][0]["reason"].get<std::string>(), HasSubstr("expected an image"));
}

TEST_F(Images, OfAClassThatTheCollectionDoesNotHaveAreRefused) {
  folder_.Write("others/blue/1.ppm", PpmOfOneColour(16, 16, 10, 10, 200));
  ExpectRefused({"ingest", "things", "--images", folder_ / "others"}, "INVALID_ARGUMENT",
                {"--images", "sub-folder blue", "2 classes"});
}

// What --input-size, --mean and --scale of the creation were, ingest and query take from the
// collection.
TEST_F(Images, SettingsOfTheModelAreKeptInTheCollection) {
  const std::string model = folder_.Write("means.onnx", ChannelMeansModel());
  const std::string pictures = folder_ / "pictures";
  Answer({"collection", "create", "by-model", "--anchor-images", pictures, "--model", model,
          "--mean", "1,2,3", "--scale", "0.5", "--alpha", "30"});
  const std::vector<std::string> ingest = {"ingest", "by-model", "--images", pictures};
  ExpectRefused(ingest, "FAILED_PRECONDITION", {"--model must be given", "input=4x2;mean=1,2,3;"});
  EXPECT_EQ(Answer(Join(ingest, {"--model", model}))["inserted"], 12);
  ExpectRefused(Join(ingest, {"--model", model, "--scale", "1"}), "FAILED_PRECONDITION",
                {"scale=0.5", "scale=1"});
}

TEST_F(Images, AModelThatOpenCvRejectsIsNamed) {
  const std::string model = folder_.Write("model.onnx", "this is no network");
  for (std::vector<std::string> command :
       {std::vector<std::string>{"collection", "create", "more", "--anchor-images",
                                 folder_ / "pictures"},
        {"ingest", "things", "--images", folder_ / "pictures"},
        Query(folder_ / "pictures/red/3.ppm")}) {
    command.insert(command.end(), {"--model", model});
    ExpectRefused(command, "INVALID_ARGUMENT", {model, "ONNX"});
  }
}

TEST_F(Images, AClassNameThatTheCollectionDoesNotHaveIsRefused) {
  std::vector<std::string> command = Query(folder_ / "pictures/red/3.ppm");
  command.insert(command.end(), {"--label", "blue"});
  ExpectRefused(command, "INVALID_ARGUMENT", {"--label", "name of a class", "\"blue\""});
}

}  // namespace
}  // namespace privatemail::e2e
