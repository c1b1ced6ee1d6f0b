// Collections without anchors, and anchors without labels, through both programs.
#include "tests/e2e/service.h"
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
  }

  json InfoOf(const std::string& name) const { return Answer({"collection", "info", name}); }
  Command Ingest(const std::string& name, const std::string& file, const Command& more = {}) const {
    return Join({"ingest", name, "--vectors", Vectors(file)}, more);
  }
};

TEST_F(WithoutAnchors, NameAloneIsEnoughAndFirstIngestFixesTheDimension) {
  EXPECT_EQ(Run({"collection", "create", "others"}).out,
            "name       others\n"
            "extractor  vectors\n"
            "items      0\n"
            "metric     cosine\n"
            "schemes    encrypted\n");
  const json created = Answer({"collection", "create", "notes"});
  EXPECT_THAT(created["schemes"], ElementsAre("encrypted"));
  EXPECT_EQ(created["feature_dim"], nullptr);
  EXPECT_EQ(Answer(Ingest("notes", "gallery"))["rejected"], 0);
  EXPECT_EQ(Answer({"items", "get", "notes", "3"})["items"][0]["label"], nullptr);

  daemon_->program().Signal(SIGKILL);
  daemon_->program().Wait();
  StartDaemon();
  const json info = InfoOf("notes");
  EXPECT_EQ(info["feature_dim"], kFeatures);
  EXPECT_EQ(info["items"], kItems);
  Write("narrow", SeparatedClasses(7, 3, kFeatures / 2));
  ExpectRefused(Ingest("notes", "narrow", {"--id-prefix", "n"}), "INVALID_ARGUMENT",
                {"--vectors has the wrong dimension: expected 64, got 32"});
  const json again =
      Answer(Ingest("notes", "gallery", {"--labels", Labels("gallery"), "--replace"}));
  EXPECT_EQ(again["updated"], kItems) << "labels are optional attributes";

  // The server names the classes: one that it lacks must not keep the search from being sent.
  const Outcome nothing = Run({"query", "notes", "--vectors", Vectors("gallery"), "--row", "0",
                               "--label", "no such class", "--json"});
  EXPECT_EQ(nothing.exit_code, 3) << nothing.err;
  EXPECT_THAT(nothing.json()["matches"], SizeIs(0));
  EXPECT_THAT(nothing.err, HasSubstr("nothing is found: label must be"));
  EXPECT_EQ(Run({"query", "notes", "--vectors", Vectors("gallery"), "--row", "0", "--filter",
                 R"({"path": "price", "gte": 1})", "--json"})
                .exit_code,
            3);
}

TEST_F(WithoutAnchors, AnchorsWithoutLabelsOfferCells) {
  Write("anchors", SeparatedClasses(kClasses * kAnchorsPerClass, 1));
  const json created = Answer({"collection", "create", "shapes", "--anchors", Vectors("anchors"),
                               "--cells", "5", "--with-encrypted", "--metric", "dot"});
  EXPECT_THAT(created["schemes"], ElementsAre("cells", "encrypted"));
  EXPECT_EQ(created["default_scheme"], "encrypted");
  EXPECT_THAT(Run(Ingest("shapes", "gallery")).out,
              HasSubstr("searches with cells find new items after `privatemail build shapes`"));
  Answer({"build", "shapes"});
  ASSERT_TRUE(WaitUntil([&]() -> bool { return InfoOf("shapes")["cells_ready"]; }));
  Answer({"budget", "set", "shapes", "--epsilon", "100"});
  const Command query = {
      "query", "shapes",   "--vectors", Vectors("gallery"), "--row", "7",  "--epsilon",
      "40",    "--scheme", "cells",     "--items",          "40",    "-k", "1"};
  const json match = Answer(query)["matches"][0];
  EXPECT_EQ(match["id"], "7");
  EXPECT_EQ(match["label"], nullptr);
  const std::string file = folder_ / "shapes.snapshot";
  Answer({"snapshot", "shapes", "--out", file});
  Answer({"collection", "delete", "shapes", "--yes"});
  EXPECT_EQ(Answer({"restore", "shapes", "--in", file})["same_digest"], true);
}

}  // namespace
}  // namespace privatemail::e2e
