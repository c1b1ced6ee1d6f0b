#include "common/base/printable.h"

#include <gtest/gtest.h>

namespace privatemail {
namespace {

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(Printable("a\x1b[2Jb\r\nc\td\x7f"), R"(a\x1b[2Jb\r\nc\td\x7f)");
  EXPECT_EQ(Printable(std::string("nul\0!", 5)), R"(nul\x00!)");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            R"(\xc2\x9b31m)")
      << "U+009B is the escape sequence's one-character form";
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(Printable("\x9b"
                      "2J\xff \xe9\xb7"),
            R"(\x9b2J\xff \xe9\xb7)")
      << "a terminal of 8 bits takes 0x9b for an escape sequence";
}

TEST(Printable, EscapesBidirectionalControlsAndSeparators) {
  EXPECT_EQ(Printable("a\u202e\u2066\u200f\u061cb"),
            R"(a\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f\xd8\x9cb)");
  EXPECT_EQ(Printable("a\u2028b\u2029"), R"(a\xe2\x80\xa8b\xe2\x80\xa9)");
}

TEST(Printable, OtherTextIsUnchanged) {
  for (const char* text : {"", "it's \"quoted\" \\ back", "h\xc3\xa9ron \xe9\xb7\xba \xc2\xa0",
                           "\u200d \u2027 \u202f \u2065 \u206a \u061b"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(FormatShare, ShowsNoShareBelowOneAsOne) {
  for (const auto& [share, text] : {std::pair{0., "0"},
                                    {.0003, "0.0003"},
                                    {.854, "0.85"},
                                    {.999, "0.999"},
                                    {.9996, "0.9996"},
                                    {1., "1"}}) {
    EXPECT_EQ(FormatShare(share), text);
  }
}

TEST(TruncateUtf8, CutsBetweenCharacters) {
  EXPECT_EQ(TruncateUtf8("abcdef", 6), "abcdef");
  EXPECT_EQ(TruncateUtf8("abcdefg", 6), "abc...");
  // Three bytes a character.
  EXPECT_EQ(TruncateUtf8("\xe9\xb7\xba\xe9\xb7\xba\xe9\xb7\xba", 9),
            "\xe9\xb7\xba\xe9\xb7\xba\xe9\xb7\xba");
  for (size_t max_bytes : {6, 7, 8}) {
    EXPECT_EQ(TruncateUtf8("\xe9\xb7\xba\xe9\xb7\xba\xe9\xb7\xba", max_bytes), "\xe9\xb7\xba...")
        << max_bytes;
  }
  EXPECT_EQ(TruncateUtf8("\xe9\xb7\xba\xe9\xb7\xba", 5), "...");
}

TEST(TruncateUtf8, InvalidUtf8IsCutAnywhere) {
  EXPECT_EQ(TruncateUtf8(std::string(100, '\x80'), 10), std::string(7, '\x80') + "...");
  EXPECT_EQ(TruncateUtf8("abcd", 3), "...");
}

}  // namespace
}  // namespace privatemail
