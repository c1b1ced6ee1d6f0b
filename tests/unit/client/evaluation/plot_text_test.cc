#include "client/evaluation/report/plot_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace privatemail::client {
namespace {

using ::testing::ElementsAre;

TEST(PlotText, EscapesWhatWouldBeMarkup) {
  EXPECT_EQ(Escaped("<script>alert('x' & \"y\")</script>"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;");
  EXPECT_EQ(Escaped("naïve ε₁ ≤ 日本"), "naïve ε₁ ≤ 日本");
}

TEST(PlotText, ShowsWhatNeitherXmlNorATerminalMayHave) {
  EXPECT_EQ(Escaped(absl::string_view("a\0b\x1b[31m", 8)), "a\\x00b\\x1b[31m");
  EXPECT_EQ(Escaped("caf\xe9"), "caf\uFFFD");
  EXPECT_EQ(Escaped("\xed\xa0\x80 \uFFFE\uFFFF").find("\uFFFE"), std::string::npos);
  EXPECT_EQ(Escaped("a\uFFFEb\uFFFF"), "a\uFFFDb\uFFFD");
}

TEST(PlotText, WritesNumbersAsBooksDo) {
  EXPECT_EQ(NumberText(0.25, 6), "0.25");
  EXPECT_EQ(NumberText(-1.5, 6), "\u22121.5");
  EXPECT_EQ(NumberText(1234567, 6), "1.23457\u00d710\u2076");
  EXPECT_EQ(NumberText(2.5e-7, 6), "2.5\u00d710\u207b\u2077");
  EXPECT_EQ(NumberText(1e-10, 6), "10\u207b\u00b9\u2070");
  EXPECT_EQ(NumberText(-std::numeric_limits<double>::infinity(), 6), "\u2212\u221e");
  EXPECT_EQ(NumberText(NAN, 6), "\u2013");
  EXPECT_EQ(FixedText(-0.0001, 2), "0.00");
  EXPECT_EQ(Pixels(-0.04), "0");
  EXPECT_EQ(Pixels(10.25), "10.2");
}

TEST(PlotText, WrapsAtSpacesAndCutsOnlyWhatFitsNoLine) {
  const double ten = TextWidth("0123456789", 13);
  EXPECT_THAT(Wrapped("one two three four", 13, ten), ElementsAre("one two", "three four"));
  EXPECT_THAT(Wrapped("ääääääääääää b", 13, ten), ElementsAre("ääääääääää", "ää b"));
  EXPECT_THAT(Wrapped("", 13, ten), ElementsAre(""));
  EXPECT_THAT(Wrapped("abc", 13, 0), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace privatemail::client
