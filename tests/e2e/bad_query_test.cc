// Queries and budgets that must be refused, and cost nothing.
#include <limits>

#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class BadQuery : public FilledService {
 protected:
  // A query with nothing wrong in it but what `flag` says; each flag is given once.
  std::vector<std::string> With(const std::string& flag, const std::string& value) const {
    std::vector<std::pair<std::string, std::string>> flags = {
        {"--row", "2"}, {"--label", "2"}, {"--epsilon", "1"}, {"--delta", "1e-5"}, {"-k", "3"}};
    bool known = false;
    std::vector<std::string> command;
    for (const auto& [name, usual] : flags) {
      known = known || name == flag;
      command.insert(command.end(), {name, name == flag ? value : usual});
    }
    if (!known) command.insert(command.end(), {flag, value});
    return Query(command);
  }

  // Row 2 of the queries with one value changed.
  void WriteQueriesWith(float value) const {
    Labelled rows = SeparatedClasses(10, 3);
    rows.vectors(2, 7) = value;
    Write("queries", rows);
  }
};

TEST_F(BadQuery, UnspoiltQueryIsAnswered) {
  const json answer = Answer(With("-k", "3"));
  ASSERT_THAT(answer["matches"], SizeIs(3));
  EXPECT_EQ(answer["scheme"], "joint");
  EXPECT_EQ(answer["collection"], "things");
  EXPECT_EQ(answer["row"], 2);
  for (const json& match : answer["matches"]) {
    EXPECT_EQ(match["squared_distance"], match["distance"]);
  }
}

TEST_F(BadQuery, ValuesThatAreNotFinite) {
  WriteQueriesWith(kNotANumber);
  ExpectRefused(With("-k", "3"), "INVALID_ARGUMENT",
                {"queries.npy row 2: value in column 7 is nan, expected finite values"});
  WriteQueriesWith(-kInfinity);
  ExpectRefused(With("-k", "3"), "INVALID_ARGUMENT",
                {"queries.npy row 2: value in column 7 is -inf, expected finite values"});
}

TEST_F(BadQuery, ABadRowAmongGoodOnesCostsNothingEither) {
  WriteQueriesWith(kNotANumber);
  ExpectRefused(Query({"--rows", "0,1,2", "--labels", Labels("queries"), "--epsilon", "1",
                       "--delta", "1e-5"}),
                "INVALID_ARGUMENT", {"queries.npy row 2: value in column 7 is nan"});
}

TEST_F(BadQuery, AZeroVector) {
  Labelled rows = SeparatedClasses(10, 3);
  rows.vectors.row(2).setZero();
  Write("queries", rows);
  ExpectRefused(With("-k", "3"), "INVALID_ARGUMENT",
                {"queries.npy row 2: all 64 values are zero, expected a vector with a direction"});
}

TEST_F(BadQuery, AnotherDimension) {
  Write("queries", SeparatedClasses(10, 3, 128));
  ExpectRefused(With("-k", "3"), "INVALID_ARGUMENT",
                {"queries.npy row 2 has the wrong dimension: expected 64, got 128"});
}

TEST_F(BadQuery, LabelsOutOfRange) {
  for (const std::string label : {"-1", "5"}) {
    ExpectRefused(With("--label", label), "INVALID_ARGUMENT",
                  {"--label must be one of the collection's 5 classes (0 to 4), but is " + label +
                   "; its classes are 0, 1, 2, 3, 4"});
  }
  ExpectRefused(With("--label", "heron"), "INVALID_ARGUMENT",
                {"--label must be a number or the name of a class", "\"heron\""});
}

TEST_F(BadQuery, RowsThatTheFileDoesNotHave) {
  for (const std::string row : {"-1", "10"}) {
    ExpectRefused(With("--row", row), "INVALID_ARGUMENT",
                  {"--row must be between 0 and 9, but is " + row});
  }
}

TEST_F(BadQuery, RowsSelectRangesAndAll) {
  const auto rows = [&](const std::string& selection) {
    std::vector<int> answered;
    const Outcome outcome = Run(Query({"--rows", selection, "--labels", Labels("queries"),
                                       "--epsilon", ".1", "--delta", "1e-5", "--json"}));
    for (const json& answer : outcome.lines()) answered.push_back(answer["row"]);
    return answered;
  };
  EXPECT_THAT(rows("3,7-8,1"), ElementsAre(3, 7, 8, 1));
  EXPECT_THAT(rows("all"), SizeIs(10));
  ExpectRefused(With("--row", "8-10"), "INVALID_ARGUMENT",
                {"--row must be between 0 and 9, but is 10"});
}

TEST_F(BadQuery, NoNeighboursOrTooMany) {
  for (const std::string k : {"0", "-1", "10001", "5000000000"}) {
    ExpectRefused(With("-k", k), "INVALID_ARGUMENT",
                  {"k must be between 1 and 10000, but is " + k});
  }
}

TEST_F(BadQuery, MoreNeighboursThanTheGalleryHoldsAreNoErrorButFlagged) {
  const json answer = Answer(With("-k", std::to_string(kItems + 1)));
  EXPECT_THAT(answer["matches"], SizeIs(kItems));
  EXPECT_EQ(answer["truncated"], true);
  const json all = Answer(With("-k", std::to_string(kItems)));
  EXPECT_THAT(all["matches"], SizeIs(kItems));
  EXPECT_EQ(all["truncated"], false);
}

TEST_F(BadQuery, EpsilonsThatAreNone) {
  for (const std::string epsilon : {"0", "-1", "nan", "inf"}) {
    const std::string message = "--epsilon must be finite and positive, but is " + epsilon;
    ExpectRefused(With("--epsilon", epsilon), "INVALID_ARGUMENT", {message});
    ExpectRefused({"budget", "set", "things", "--epsilon", epsilon, "--delta", ".1"},
                  "INVALID_ARGUMENT", {message});
    ExpectRefused({"calibrate", "--mechanism", "gaussian", "--epsilon", epsilon, "--delta", ".1",
                   "--sensitivity", "1"},
                  "INVALID_ARGUMENT", {message});
  }
}

TEST_F(BadQuery, DeltasOutsideTheUnitInterval) {
  for (const std::string delta : {"0", "1", "-1", "2"}) {
    const std::string message = "--delta must lie strictly between 0 and 1, but is " + delta;
    ExpectRefused(With("--delta", delta), "INVALID_ARGUMENT", {message});
    ExpectRefused(
        {"budget", "set", "things", "--epsilon", "1", "--accounting", "gaussian", "--delta", delta},
        "INVALID_ARGUMENT",
        {"--delta must lie strictly between 0 and 1 for Gaussian "
         "accounting, but is " +
         delta});
  }
  for (const std::string delta : {"1", "-1", "2"}) {
    ExpectRefused({"budget", "set", "things", "--epsilon", "1", "--delta", delta},
                  "INVALID_ARGUMENT", {"--delta must be at least 0 and below 1, but is " + delta});
  }
  ExpectRefused(With("--delta", "nan"), "INVALID_ARGUMENT",
                {"--delta must be a number, but is nan"});
  ExpectRefused({"budget", "set", "things", "--epsilon", "1", "--delta", "nan"}, "INVALID_ARGUMENT",
                {"--delta must be at least 0 and below 1, but is nan"});
}

TEST_F(BadQuery, ABudgetThatIsExhausted) {
  Grant(2.5, .1);
  Answer(With("--epsilon", "1"));
  ExpectRefused(With("--epsilon", "1.75"), "RESOURCE_EXHAUSTED",
                {"privacy budget exhausted", "spent epsilon 1 delta 1e-05",
                 "asked epsilon 1.75 delta 1e-05", "left epsilon 1.5 delta 0.09999"});
  ExpectRefused(With("--delta", ".1"), "RESOURCE_EXHAUSTED", {"asked epsilon 1 delta 0.1"});
  Answer(With("--epsilon", "1.5"));
  EXPECT_EQ(Budget()["left"]["epsilon"], 0);
}

TEST_F(BadQuery, ABatchThatIsNotAffordableAsAWhole) {
  Grant(3.9, .1);
  Answer(With("--epsilon", "3"));
  ExpectRefused(Query({"--rows", "0", "1", "2", "--labels", Labels("queries"), "--epsilon", ".4",
                       "--delta", "1e-5"}),
                "RESOURCE_EXHAUSTED",
                {"3 queries of epsilon 0.4 delta 1e-05 need epsilon 1.2", "left epsilon 0.9",
                 "nothing was spent"});
  const Outcome two = Run(Query({"--rows", "0,1", "--labels", Labels("queries"), "--epsilon", ".4",
                                 "--delta", "1e-5", "--json"}));
  EXPECT_THAT(two.lines(), SizeIs(2)) << two.err;
}

TEST_F(BadQuery, AReportThatCannotBeWritten) {
  ExpectRefused(With("--report", folder_ / "none/report.html"), "INVALID_ARGUMENT",
                {"--report", "none/report.html cannot be written: No such file"});
  ExpectRefused(With("--report", folder_.path()), "INVALID_ARGUMENT", {"is a folder"});
}

TEST_F(BadQuery, VectorsWithoutRowsAndRowsWithoutVectors) {
  ExpectRefused(Query({"--epsilon", "1", "--delta", "1e-5"}), "INVALID_ARGUMENT",
                {"give --row I, --rows I,J,..., --rows all, or --image"});
  ExpectRefused({"query", "things", "--row", "1", "--epsilon", "1", "--delta", "1e-5"},
                "INVALID_ARGUMENT", {"--row needs the file of --vectors"});
}

TEST_F(BadQuery, ABudgetThatIsNotSet) {
  user_.state = folder_ / "fresh";
  ExpectRefused(With("-k", "3"), "FAILED_PRECONDITION",
                {"no privacy budget is set", "privatemail budget set things --epsilon"});
  EXPECT_TRUE(Budget()["granted"].is_null());
}

TEST_F(BadQuery, AMechanismOrAPlaceThatDoesNotExist) {
  ExpectRefused(
      With("--mechanism", "laplacian"), "INVALID_ARGUMENT",
      {"mechanism must be one of gaussian, published-gaussian, laplace", "but is \"laplacian\""});
  ExpectRefused(With("--post-process", "nowhere"), "INVALID_ARGUMENT",
                {"--post-process must be client or server, but is \"nowhere\""});
}

TEST_F(BadQuery, FeaturesOfAnotherExtractor) {
  const std::string picture = folder_.Write("red.ppm", PpmOfOneColour(16, 16, 200, 20, 30));
  ExpectRefused(
      {"query", "things", "--image", picture, "--epsilon", "1", "--delta", "1e-5"},
      "FAILED_PRECONDITION",
      {"extractor: the collection's features come from vectors, but the query's from builtin:"});
}

TEST_F(BadQuery, ACollectionThatDoesNotExist) {
  const std::string message = "collection nothing does not exist";
  ExpectRefused({"query", "nothing", "--vectors", Vectors("queries"), "--row", "0", "--epsilon",
                 "1", "--delta", "1e-5"},
                "NOT_FOUND", {message});
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"collection", "info", "nothing"},
           {"collection", "delete", "nothing", "--yes"},
           {"build", "nothing"},
           {"budget", "show", "nothing"},
           {"ingest", "nothing", "--vectors", Vectors("gallery"), "--labels", Labels("gallery")}}) {
    ExpectRefused(command, "NOT_FOUND", {message});
  }
}

// A collection of the same name is another one: neither its budget nor a request that was prepared
// for the former carries over.
TEST_F(BadQuery, ACollectionThatWasDeletedAndMadeAgainWithOtherParameters) {
  Answer(With("--epsilon", "1"));
  const json before = Info();
  Answer({"collection", "delete", "things", "--yes"});
  CreateCollection(3);
  Fill();
  Build();
  EXPECT_NE(Info()["digest"], before["digest"]);
  ExpectRefused(With("--epsilon", "1"), "FAILED_PRECONDITION", {"no privacy budget is set"});
  EXPECT_EQ(Budget()["releases"], 0);
  // What the former one received is still explained by its own parameters.
  EXPECT_EQ(Answer({"explain"})["digest"], before["digest"]);
}

class UnbuiltCollection : public BadQuery {
 protected:
  void SetUp() override {
    StartDaemon();
    CreateCollection();
    Write("queries", SeparatedClasses(10, 3));
    Grant(10, .1);
  }
};

TEST_F(UnbuiltCollection, AnswersNoQueryAndChargesNone) {
  ExpectRefused({"build", "things"}, "FAILED_PRECONDITION",
                {"collection things has no items", "privatemail ingest things"});
  Fill();
  ExpectRefused(With("-k", "3"), "FAILED_PRECONDITION",
                {"collection things is not built yet", "privatemail build things"});
}

}  // namespace
}  // namespace privatemail::e2e
