// Collections, uploads and files that must be refused and leave the server as it was.
#include <csignal>
#include <filesystem>

#include "absl/time/clock.h"
#include "tests/e2e/service.h"
#include "tests/testing/onnx_model.h"
#include "tests/testing/pictures.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kName[] = "things";

class BadCollection : public Service {
 protected:
  void SetUp() override { StartDaemon(); }

  Command Create(const Command& settings = {}) const {
    return Join({"collection", "create", kName, "--anchors", Vectors("anchors"), "--anchor-labels",
                 Labels("anchors")},
                settings);
  }
};

TEST_F(BadCollection, InvalidAnchorOrSettingIsRefusedByItsFlag) {
  Labelled anchors = SeparatedClasses(kClasses * kAnchorsPerClass, 1);
  Write("anchors", anchors);
  ExpectRefused(Create({"--bandwidth", "0"}), "INVALID_ARGUMENT",
                {"--bandwidth must be between 0.001 and 100000, but is 0"});
  anchors.labels[7] = -2;
  Write("anchors", anchors);
  ExpectRefused(Create(), "INVALID_ARGUMENT",
                {"labels must be 0 or more, but --anchor-labels has -2 in row 7"});
}

TEST_F(BadCollection, OversizedMessageIsNotSent) {
  // 16 MiB of floats and their labels pass the limit of 64 MiB.
  Labelled anchors{FloatMatrix::Ones(1 << 12, 1 << 12), {}};
  for (int i = 0; i < 1 << 12; ++i) anchors.labels.push_back(i % 2);
  Write("anchors", anchors);
  ExpectRefused(Create(), "RESOURCE_EXHAUSTED",
                {"anchors make a message of 671", "bytes, expected at most 67108864"});
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

TEST_F(BadCollection, DeletionNeedsYesOrTheTypedName) {
  CreateCollection();
  ExpectRefused({"collection", "delete", kName}, "INVALID_ARGUMENT", {"--yes must be given"});
  const Command command = user_.CommandLine({"collection", "delete", kName});
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
  }

  Command Upload(const Command& more = {}) const {
    return Join({"ingest", kName, "--vectors", Vectors("gallery"), "--labels", Labels("gallery")},
                more);
  }
};

// CatalogTest.MalformedItemIsRejectedAlone has the other reasons.
TEST_F(BadUpload, InvalidRowIsRejectedAlone) {
  Labelled rows = SeparatedClasses(kItems, 2);
  rows.vectors.row(50).setZero();
  rows.labels[199] = kClasses;
  Write("gallery", rows);
  const Outcome outcome = Run(Upload({"--json"}));
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  const json answer = outcome.json();
  EXPECT_EQ(answer["acknowledged"], kItems - 2);
  EXPECT_EQ(answer["rejected"], 2);
  EXPECT_EQ(answer["reasons"][0]["row"], 50);
  EXPECT_EQ(answer["reasons"][1]["id"], "199");
  EXPECT_THAT(answer["reasons"][1]["reason"].get<std::string>(), HasSubstr("but is 5"));
  EXPECT_EQ(Info()["items"], kItems - 2);
  EXPECT_EQ(
      Run(Upload({"--id-prefix", "x", "--dry-run"})).out,
      "nothing was sent: 198 rows can be stored\n"
      "2 rows would be rejected:\n"
      "  1 row: features: all 64 values are zero, expected a vector with a direction (row 50)\n"
      "  1 row: label must be one of the collection's 5 labels (0 to 4), but is 5 (row 199)\n");
  EXPECT_THAT(Run(Upload()).out, HasSubstr("\n2 rows were rejected:\n  1 row: "));
  rows.labels.assign(kItems, 77);
  Write("gallery", rows);
  ExpectRefused(Upload({"--id-prefix", "x"}), "INVALID_ARGUMENT",
                {"all 200 rows were rejected", "but is 77"});
}

TEST_F(BadUpload, OtherItemsOfSameRowNumbersAreNotReplaced) {
  EXPECT_EQ(Ingest("gallery")["inserted"], kItems);
  EXPECT_EQ(Ingest("gallery")["unchanged"], kItems) << "a repeated upload is safe";
  Write("gallery", SeparatedClasses(kItems, 5));
  ExpectRefused(Upload(), "ALREADY_EXISTS",
                {"collection things has an item with id 0", "--id-prefix", "--replace"});
  EXPECT_EQ(Answer(Upload({"--id-prefix", "more-"}))["inserted"], kItems);
  EXPECT_EQ(Answer(Upload({"--replace"}))["updated"], kItems);
  // Nor are payloads removed.
  std::string payloads;
  for (int i = 0; i < kItems; ++i) payloads += "{\"n\":1}\n";
  const std::string file = folder_.Write("payloads.jsonl", payloads);
  EXPECT_EQ(Answer(Upload({"--payloads", file}))["updated"], kItems);
  ExpectRefused(Upload(), "ALREADY_EXISTS", {"a payload that this file does not have"});
  EXPECT_EQ(Answer(Upload({"--payloads", file}))["unchanged"], kItems);
}

// No server can read a message with bytes that are not UTF-8.
TEST_F(BadUpload, InvalidIdOrPayloadIsNotSent) {
  std::string latin, payloads, repeated;
  for (int i = 0; i < kItems; ++i) {
    latin += i == 150 ? "h\xe9ron\n" : std::to_string(i) + "\n";
    payloads += i == 151 ? "\"h\xe9ron\"\n" : "\"h\xc3\xa9ron\"\n";
    repeated += std::to_string(i == 150 ? 7 : i) + "\n";
  }
  ExpectRefused(Upload({"--ids", folder_.Write("latin", latin)}), "INVALID_ARGUMENT",
                {"row 150: id must be UTF-8, but its 5 bytes are not; nothing was sent"});
  ExpectRefused(Upload({"--payloads", folder_.Write("payloads", payloads)}), "INVALID_ARGUMENT",
                {"row 151: payload must be UTF-8, but its 7 bytes are not"});
  ExpectRefused(Upload({"--ids", folder_.Write("repeated", repeated)}), "INVALID_ARGUMENT",
                {"row 150: id 7 is the id of row 7, too"});
}

// Two classes of pictures of one colour each, in six shades.
class Images : public Service {
 protected:
  void SetUp() override {
    StartDaemon();
    for (unsigned char shade = 0; shade < 6; ++shade) {
      const std::string file = std::to_string(shade) + ".png";
      const auto light = static_cast<unsigned char>(150 + 15 * shade);
      folder_.Write("pictures/green/" + file, PngOfOneColour(16, 16, 20, light, 30));
      folder_.Write("pictures/red/" + file, PngOfOneColour(16, 16, light, 20, 30));
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

TEST_F(Images, QueryByFileFindsItsClass) {
  const absl::Time start = absl::Now();
  const json answer = Answer(Query(folder_ / "pictures/red/3.png"));
  EXPECT_GE(absl::Now() - start, absl::Seconds(1)) << "the time of extraction must not show";
  EXPECT_EQ(answer["class"], "red");
  EXPECT_EQ(answer["label_guessed"], true);
  ASSERT_THAT(answer["matches"], SizeIs(3));
  EXPECT_THAT(answer["matches"][0]["id"].get<std::string>(), HasSubstr("/"));
}

TEST_F(Images, SubFoldersNameLabelsAndOtherPicturesHaveNone) {
  const Command create = {"collection", "create", "own", "--extractor", "builtin:hog-colour/1"};
  const Command ingest = {"ingest", "own", "--images", folder_ / "pictures", "--json"};
  folder_.Write("flat/1.png", PngOfOneColour(16, 16, 20, 30, 200));
  folder_.Write("pictures/beside.png", PngOfOneColour(16, 16, 90, 30, 200));
  const auto labels = [&] {
    json labels = json::array();
    const json items = Answer({"items", "get", "own", "1.png", "beside.png", "red/3.png"})["items"];
    for (const json& item : items) labels.push_back(item["label"]);
    return labels;
  };
  Answer(create);
  EXPECT_EQ(Answer(ingest)["new_classes"], (json{"green", "red"}));
  EXPECT_EQ(Answer({"ingest", "own", "--images", folder_ / "flat"})["inserted"], 1);
  EXPECT_EQ(labels(), (json{nullptr, nullptr, 1}));
  EXPECT_EQ(Answer({"query", "own", "--image", folder_ / "flat/1.png", "--label", "red", "-k",
                    "1"})["matches"][0]["class"],
            "red");
  // Labels without names may be numbers.
  Answer({"collection", "delete", "own", "--yes"});
  Answer(create);
  EXPECT_EQ(Answer({"ingest", "own", "--images", folder_ / "flat"})["inserted"], 1);
  const Outcome unnamed = Run(ingest);
  EXPECT_THAT(unnamed.err, HasSubstr("warning: the sub-folders give no labels"));
  EXPECT_EQ(unnamed.json()["inserted"], 13);
  EXPECT_EQ(labels(), (json{nullptr, nullptr, nullptr}));
  // A collection with classes takes theirs only.
  ExpectRefused({"ingest", "things", "--images", folder_ / "flat"}, "INVALID_ARGUMENT",
                {"flat: expected one sub-folder of images for each class"});
  EXPECT_EQ(Ingest()["unchanged"], 12);
  folder_.Write("pictures/blue/1.png", PngOfOneColour(16, 16, 20, 30, 200));
  ExpectRefused({"ingest", "things", "--images", folder_ / "pictures"}, "INVALID_ARGUMENT",
                {"labels of the collection (0 green, 1 red)", "\"blue\""});
}

TEST_F(Images, ManyBadFilesAreListedInFewLines) {
  for (int i = 0; i < 40; ++i) {
    folder_.Write("pictures/red/broken" + std::to_string(i) + ".png", "x");
    folder_.Write("pictures/red/" + std::to_string(i) + ".heic", "x");
  }
  const Outcome outcome = Run({"ingest", "things", "--images", folder_ / "pictures"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("skipped 36 more\n"));
  EXPECT_THAT(outcome.out, HasSubstr("40 pictures were rejected:\n  red/broken0.png: "));
  EXPECT_THAT(outcome.out, HasSubstr(" (and 39 more pictures)\n"));
  const std::string all = outcome.err + outcome.out;
  EXPECT_LE(std::count(all.begin(), all.end(), '\n'), 15) << all;
}

TEST_F(Images, PicturesForVectorsAreRefusedUnread) {
  folder_.Write("broken/1.png", "not a picture");
  Answer({"collection", "create", "own"});
  ExpectRefused({"ingest", "own", "--images", folder_ / "broken"}, "FAILED_PRECONDITION",
                {"features come from vectors", "no image was read",
                 "`privatemail collection create NAME --extractor builtin:hog-colour/1`"});
  Answer({"collection", "create", "other", "--extractor", "builtin:hog-colour/1"});
  Write("gallery", SeparatedClasses(2, 2));
  Answer({"ingest", "other", "--vectors", Vectors("gallery")});
  ExpectRefused({"ingest", "other", "--images", folder_ / "broken"}, "INVALID_ARGUMENT",
                {"--images has the wrong dimension: expected 64, got 548"});
}

TEST_F(Images, InterruptedIngestResumesWithoutRepeatedWork) {
  constexpr int kMany = 4000;
  for (int i = 0; i < kMany; ++i) {
    const std::string of_class = i < 2500 ? "many/green/" : "many/red/";
    folder_.Write(of_class + std::to_string(100 + i) + ".png",
                  PngOfOneColour(8, 8, 90 + i % 100, i / 100, 30));
  }
  folder_.Write("many/red/broken.png", "not a picture");
  folder_.Write("kept/README", "");
  const Command ingest = {
      "ingest",         "things", "--images", folder_ / "many", "--features-folder",
      folder_ / "kept", "--json"};
  const auto kept = [&] {  // records of 32 + 4 x 548 + 8 bytes
    uintmax_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "kept")) {
      bytes += file.file_size();
    }
    return bytes / 2232;
  };
  Program interrupted(user_.CommandLine(ingest));
  ASSERT_TRUE(WaitUntil([&] {  // it must not end while it is looked at
    interrupted.Signal(SIGSTOP);
    if (Info()["items"] >= 1012) return true;
    interrupted.Signal(SIGCONT);
    return false;
  }));
  interrupted.Signal(SIGINT);
  interrupted.Signal(SIGCONT);
  EXPECT_EQ(interrupted.Wait().exit_code, 128 + SIGINT);
  const Outcome outcome = Run(ingest);
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_EQ(outcome.json()["reasons"][0]["id"], "red/broken.png");
  EXPECT_GE(outcome.json()["unchanged"], 1000);
  EXPECT_GE(outcome.json()["inserted"], 1);
  EXPECT_EQ(Info()["items"], 12 + kMany);
  EXPECT_EQ(kept(), kMany);
  // Items of both classes are missing from one upload.
  Answer({"items", "delete", "things", "green/999.png", "red/2600.png"});
  EXPECT_EQ(Run(ingest).json()["inserted"], 2);
  const json items = Answer({"items", "get", "things", "green/999.png", "red/2600.png"})["items"];
  EXPECT_NE(items[0]["label"], items[1]["label"]);
}

TEST_F(Images, ModelThatEndsItsProcessIsAnError) {
  const std::string model = folder_.Write("fatal.onnx", FatalModel());
  ExpectRefused(
      {"collection", "create", "fatal", "--anchor-images", folder_ / "pictures", "--model", model},
      "INVALID_ARGUMENT", {model, "ends the process that runs it"});
  ExpectRefused({"collection", "create", "none", "--model", "no-such-model"}, "INVALID_ARGUMENT",
                {"no-such-model.onnx", "`cmake --install` installs mobilenet_v2",
                 "deploy/demo/mobilenet_v2_imagenet_128px_features.onnx"});
}

TEST_F(Images, CollectionKeepsSettingsOfItsModel) {
  const std::string model = folder_.Write("means.onnx", ChannelMeansModel());
  const std::string pictures = folder_ / "pictures";
  const std::string profile = folder_ / "means.toml";
  EXPECT_THAT(Run({"collection", "create", "usual", "--model", model}).err,
              HasSubstr("there is no " + profile));
  folder_.Write("means.toml", "mean = [1, 2, 3]\nscale = 0.5");
  EXPECT_EQ(Run({"collection", "create", "own", "--model", model}).err, "");
  Answer({"collection", "create", "by-model", "--anchor-images", pictures, "--model", model,
          "--alpha", "30"});
  const std::vector<std::string> ingest = {"ingest", "by-model", "--images", pictures};
  ExpectRefused(ingest, "FAILED_PRECONDITION", {"--model must be given", "input=4x2;mean=1,2,3;"});
  EXPECT_EQ(Answer(Join(ingest, {"--model", model}))["inserted"], 12);
  folder_.Write("means.toml", "mean = [4, 5, 6]\nscale = 2\nchannels = 'bgr'");
  EXPECT_EQ(Answer(Join(ingest, {"--model", model}))["unchanged"], 12);  // as the collection says
}

}  // namespace
}  // namespace privatemail::e2e
