// Collections without anchors, and anchors without labels, through both programs.
#include "common/features/vector_file.h"
#include "tests/e2e/service.h"
#include "tests/testing/matchers.h"
#include "tests/testing/pictures.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class WithoutAnchors : public Service {
 protected:
  void SetUp() override {
    StartDaemon();
    Write("gallery", SeparatedClasses(kItems, 2));
    Write("narrow", SeparatedClasses(7, 3, kFeatures / 2));
  }

  json InfoOf(const std::string& name) const { return Answer({"collection", "info", name}); }
  Command Ingest(const std::string& name, const std::string& file, const Command& more = {}) const {
    return Join({"ingest", name, "--vectors", Vectors(file)}, more);
  }
};

TEST_F(WithoutAnchors, NameAloneIsEnoughAndFirstIngestFixesTheDimension) {
  const json created = Answer({"collection", "create", "notes"});
  EXPECT_THAT(created["schemes"], ElementsAre("encrypted"));
  EXPECT_EQ(created["metric"], "cosine");
  EXPECT_EQ(created["feature_dim"], nullptr);
  EXPECT_EQ(Answer(Ingest("notes", "gallery"))["rejected"], 0);
  EXPECT_EQ(InfoOf("notes")["feature_dim"], kFeatures);
  const json item = Answer({"items", "get", "notes", "3"})["items"][0];
  EXPECT_EQ(item["label"], nullptr);

  daemon_->program().Signal(SIGKILL);
  StartDaemon();
  const json info = InfoOf("notes");
  EXPECT_EQ(info["feature_dim"], kFeatures);
  EXPECT_EQ(info["items"], kItems);
  ExpectRefused(Ingest("notes", "narrow", {"--id-prefix", "n"}), "INVALID_ARGUMENT",
                {"--vectors has the wrong dimension: expected 64, got 32"});
  const json again =
      Answer(Ingest("notes", "gallery", {"--labels", Labels("gallery"), "--replace"}));
  EXPECT_EQ(again["updated"], kItems) << "labels are optional attributes";
  EXPECT_EQ(Run({"health", "--collection", "notes"}).exit_code, 0);

  // The server names the classes: one that it lacks must not keep the search from being sent.
  const Outcome nothing = Run({"query", "notes", "--vectors", Vectors("gallery"), "--row", "0",
                               "--label", "no such class", "--json"});
  EXPECT_EQ(nothing.exit_code, 0) << nothing.err;
  EXPECT_THAT(nothing.json()["matches"], SizeIs(0));
  EXPECT_THAT(nothing.err, HasSubstr("nothing is found: --label must be"));
}

TEST_F(WithoutAnchors, ZeroVectorsAreItemsAndQueriesUnlessTheMetricIsCosine) {
  Labelled rows = SeparatedClasses(20, 2);
  rows.vectors.row(7).setZero();
  Write("zero", rows);
  const auto query = [&](const std::string& name, const std::string& row) -> Command {
    return {"query", name, "--vectors", Vectors("zero"), "--row", row, "-k", "20"};
  };
  Answer({"collection", "create", "euclidean", "--metric", "euclidean"});
  EXPECT_EQ(Answer(Ingest("euclidean", "zero"))["inserted"], 20);
  const json matches = Answer(query("euclidean", "7"))["matches"];
  ASSERT_THAT(matches, SizeIs(20));
  EXPECT_EQ(matches[0]["id"], "7");
  EXPECT_EQ(matches[0]["similarity"], 0);
  Answer({"collection", "create", "cosine"});
  const Outcome partly = Run(Ingest("cosine", "zero"));
  EXPECT_EQ(partly.exit_code, 3) << partly.err;
  EXPECT_THAT(partly.out, HasSubstr("expected a vector with a direction"));
  ExpectRefused(query("cosine", "7"), "INVALID_ARGUMENT",
                {"row 7: all 64 values are zero, expected a vector with a direction"});
}

TEST_F(WithoutAnchors, ImagesNeedNoClasses) {
  for (const char* folder : {"red", "blue"}) {
    std::string rows;
    for (int y = 0; y < 16; ++y) {
      rows += '\0';
      for (int x = 0; x < 16; ++x) rows += folder[0] == 'r' ? "\xf0\x10\x10" : "\x10\x10\xf0";
    }
    folder_.Write(std::string("pictures/") + folder + "/1.png",
                  Png(16, 16, std::string("\x08\x02", 2), rows));
  }
  const Command images = {"--images", folder_ / "pictures"};
  Answer({"collection", "create", "vectors"});
  ExpectRefused(Join({"ingest", "vectors"}, images), "FAILED_PRECONDITION",
                {"the collection's features come from vectors", "builtin:hog-colour/1",
                 "--extractor or --model names where a collection is created"});
  Answer({"collection", "create", "pictures", "--extractor", "builtin:hog-colour/1"});
  EXPECT_EQ(Answer(Join({"ingest", "pictures"}, images))["inserted"], 2);
  const json items = Answer({"items", "list", "pictures"})["items"];
  ASSERT_THAT(items, SizeIs(2));
  EXPECT_EQ(items[0]["id"], "blue/1.png");
  EXPECT_EQ(items[0]["label"], nullptr);
}

TEST_F(WithoutAnchors, AnchorsWithoutLabelsOfferCells) {
  Write("anchors", SeparatedClasses(kClasses * kAnchorsPerClass, 1));
  const json created = Answer({"collection", "create", "shapes", "--anchors", Vectors("anchors"),
                               "--cells", "5", "--with-encrypted", "--metric", "dot"});
  EXPECT_THAT(created["schemes"], ElementsAre("cells", "encrypted"));
  EXPECT_EQ(created["classes"], 0);
  EXPECT_THAT(Run(Ingest("shapes", "gallery")).out,
              HasSubstr("searches with cells find new items after `privatemail build shapes`"));
  Answer({"build", "shapes"});
  ASSERT_TRUE(WaitUntil([&]() -> bool { return InfoOf("shapes")["cells_ready"]; }));
  EXPECT_EQ(created["default_scheme"], "encrypted");
  Answer({"budget", "set", "shapes", "--epsilon", "100"});
  const Command query = {
      "query", "shapes",   "--vectors", Vectors("gallery"), "--row", "7",  "--epsilon",
      "40",    "--scheme", "cells",     "--items",          "40",    "-k", "1"};
  const json match = Answer(query)["matches"][0];
  EXPECT_EQ(match["id"], "7");
  EXPECT_EQ(match["label"], nullptr);
  ExpectRefused({"query", "shapes", "--vectors", Vectors("gallery"), "--row", "7", "--scheme",
                 "joint", "--epsilon", "1", "--delta", "1e-6"},
                "FAILED_PRECONDITION",
                {"collection shapes has no classes, since its anchors have no labels: it offers "
                 "the schemes cells, encrypted"});
  EXPECT_EQ(Answer({"collection", "create", "cells", "--anchors", Vectors("anchors"), "--cells",
                    "5"})["default_scheme"],
            "cells");
  const std::string file = folder_ / "shapes.snapshot";
  Answer({"snapshot", "shapes", "--out", file});
  Answer({"collection", "delete", "shapes", "--yes"});
  EXPECT_EQ(Answer({"restore", "shapes", "--in", file})["same_digest"], true);
}

}  // namespace
}  // namespace privatemail::e2e
