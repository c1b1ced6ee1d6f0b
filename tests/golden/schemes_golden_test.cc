#include <vector>

#include "client/schemes/class_ranker.h"
#include "tests/golden/golden.h"

namespace privatemail::client {
namespace {

using nlohmann::json;

// The reference leaves every anchor out literally and refits both scores.
TEST(ClassRankerGolden, MatchesLiteralLeaveOneOut) {
  ASSERT_EQ(Golden().at("class_ranker").size(), 2u);  // the second has more dimensions than anchors
  for (const json& golden : Golden().at("class_ranker")) {
    const auto labels = golden.at("labels").get<std::vector<int64_t>>();
    const int64_t classes = labels.back() + 1;
    const ClassRanker ranker(MatrixFrom(golden.at("anchors")), labels, classes);
    EXPECT_EQ(ranker.shrinkage(), golden.at("shrinkage").get<double>());
    EXPECT_NEAR(ranker.kernel_weight(), golden.at("kernel_weight").get<double>(), 1e-12);
    const Matrix queries = MatrixFrom(golden.at("queries"));
    const Matrix posterior = MatrixFrom(golden.at("posterior"));
    for (Eigen::Index i = 0; i < queries.rows(); ++i) {
      const Vector p = ranker.Posterior(queries.row(i));
      EXPECT_NEAR(p.sum(), 1, 1e-12);
      EXPECT_LT((p - posterior.row(i).transpose()).cwiseAbs().maxCoeff(), 1e-4) << i;
    }
    for (const json& recall : golden.at("recall")) {
      EXPECT_EQ(ranker.ExpectedRecall(recall.at("k"), recall.at("classes")),
                recall.at("recall").get<double>());
    }
  }
}

}  // namespace
}  // namespace privatemail::client
