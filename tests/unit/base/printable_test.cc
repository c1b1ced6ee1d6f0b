#include "common/base/printable.h"

#include <gtest/gtest.h>

namespace privatemail {
namespace {

TEST(Printable, EscapesWhatSteersATerminalOrBeginsALine) {
  EXPECT_EQ(Printable("a\x1b[2Jb\r\nc\td\x7f"), R"(a\x1b[2Jb\r\nc\td\x7f)");
  EXPECT_EQ(Printable(std::string("nul\0!", 5)), R"(nul\x00!)");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            R"(\xc2\x9b31m)")
      << "U+009B is the escape sequence's one-character form";
}

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "it's \"quoted\" \\ back", "h\xc3\xa9ron \xe9\xb7\xba \xc2\xa0"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Shortened, KeepsWhatFitsAndCutsBetweenCharacters) {
  EXPECT_EQ(Shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(Shortened("abcdefg", 6), "abc...");
  // Three bytes a character.
  EXPECT_EQ(Shortened("\xe9\xb7\xba\xe9\xb7\xba\xe9\xb7\xba", 9),
            "\xe9\xb7\xba\xe9\xb7\xba\xe9\xb7\xba");
  for (size_t most : {6, 7, 8}) {
    EXPECT_EQ(Shortened("\xe9\xb7\xba\xe9\xb7\xba\xe9\xb7\xba", most), "\xe9\xb7\xba...") << most;
  }
  EXPECT_EQ(Shortened("\xe9\xb7\xba\xe9\xb7\xba", 5), "...");
}

TEST(Shortened, CutsWhatIsNoUtf8Anywhere) {
  EXPECT_EQ(Shortened(std::string(100, '\x80'), 10), std::string(7, '\x80') + "...");
  EXPECT_EQ(Shortened("abcd", 3), "...");
}

}  // namespace
}  // namespace privatemail
