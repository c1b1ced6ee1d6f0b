#include "common/features/vector_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/testing/npy.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A literal with its zero bytes.
template <size_t N>
std::string Bytes(const char (&text)[N]) {
  return std::string(text, N - 1);
}

// numpy 1.24 pads the header with blanks up to byte 127, then '\n'.
std::string Npy(std::string before_padding, const std::string& values) {
  before_padding.resize(127, ' ');
  return before_padding + "\n" + values;
}

// np.array([[1, 2.5, -3], [0.1, np.inf, 4096]], np.float32) as numpy 1.24 writes it.
std::string NumpyFloats() {
  return Npy(Bytes("\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, "
                   "'shape': (2, 3), }"),
             Bytes("\x00\x00\x80?\x00\x00 @\x00\x00@\xc0\xcd\xcc\xcc=\x00\x00\x80\x7f\x00\x00\x80"
                   "E"));
}

std::string NpyOf(const std::string& descr, const std::string& shape, const std::string& values) {
  return Npy(Bytes("\x93NUMPY\x01\x00v\x00{'descr': ") + descr +
                 ", 'fortran_order': False, 'shape': " + shape + ", }",
             values);
}

std::string VectorError(const std::string& name, const std::string& bytes) {
  const auto vectors = ParseVectors(name, bytes);
  EXPECT_EQ(vectors.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(vectors.status().message());
}

std::string LabelError(const std::string& name, const std::string& bytes) {
  const auto labels = ParseLabels(name, bytes);
  EXPECT_EQ(labels.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(labels.status().message());
}

TEST(Npy, ReadsFloat32ThatNumpyWrote) {
  const auto vectors = ParseVectors("a.npy", NumpyFloats());
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  FloatMatrix expected(2, 3);
  expected << 1, 2.5f, -3, .1f, std::numeric_limits<float>::infinity(), 4096;
  EXPECT_EQ(*vectors, expected);
}

TEST(Npy, ReadsFloat64ThatNumpyWrote) {
  const auto vectors = ParseVectors(
      "A.NPY", NpyOf("'<f8'", "(1, 2)",
                     Bytes("\x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x04@")));
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  EXPECT_EQ(*vectors, (FloatMatrix(1, 2) << 1, 2.5f).finished());
}

TEST(Npy, ReadsVersions2And3ThatNumpyWrote) {
  for (const char version : {'\x02', '\x03'}) {
    std::string bytes = Npy(Bytes("\x93NUMPY\x02\x00t\x00\x00\x00{'descr': '<f4', "
                                  "'fortran_order': False, 'shape': (1, 2), }"),
                            Bytes("\x00\x00\x80?\x00\x00 @"));
    bytes[6] = version;
    const auto vectors = ParseVectors("a.npy", bytes);
    ASSERT_TRUE(vectors.ok()) << vectors.status();
    EXPECT_EQ(*vectors, (FloatMatrix(1, 2) << 1, 2.5f).finished());
  }
}

TEST(Npy, TruncatedFileIsNamed) {
  const std::string whole = NumpyFloats();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(VectorError("dir/a.npy", whole.substr(0, size)), HasSubstr("dir/a.npy: "));
  }
}

TEST(Npy, TrailingBytesAreRejected) {
  EXPECT_EQ(VectorError("a.npy", NumpyFloats() + "x"),
            "a.npy: shape (2, 3) of '<f4' needs 24 bytes, but 25 follow the header");
}

TEST(Npy, OverflowingShapeIsRejectedBeforeAllocation) {
  // 2^32 x 2^32 is 0 modulo 2^64; 2^62 values of 4 bytes likewise.
  for (const char* shape : {"(4294967296, 4294967296)", "(4611686018427387904, 1)",
                            "(9223372036854775807, 9223372036854775807)", "(1000000, 1000000)"}) {
    EXPECT_THAT(VectorError("a.npy", NpyOf("'<f4'", shape, "")),
                HasSubstr("needs more values than the 0 bytes after the header hold"));
  }
  EXPECT_THAT(VectorError("a.npy", NpyOf("'<f4'", "(9223372036854775808, 1)", "")),
              HasSubstr("expected lengths below 2^63, got 9223372036854775808"));
  EXPECT_THAT(VectorError("a.npy", NpyOf("'<f4'", "(9223372036854775807, 0)", "")),
              HasSubstr("expected at least one row and one column"));
}

TEST(Npy, HeaderLongerThanFileIsRejected) {
  std::string bytes = NumpyFloats();
  bytes[8] = '\xff';
  bytes[9] = '\xff';
  EXPECT_EQ(VectorError("a.npy", bytes),
            "a.npy: the header says it has 65535 bytes, but only 142 follow");
}

TEST(Npy, UnsupportedLayoutTypeOrRankIsNamed) {
  const std::string four(4, '\0');
  EXPECT_THAT(VectorError("a.npy", Npy(Bytes("\x93NUMPY\x01\x00v\x00{'descr': '<f4', "
                                             "'fortran_order': True, 'shape': (1, 1), }"),
                                       four)),
              HasSubstr("expected C order (row after row), got Fortran order"));
  EXPECT_EQ(VectorError("a.npy", NpyOf("'>f4'", "(1, 1)", four)),
            "a.npy: expected float32 '<f4' or float64 '<f8', got dtype '>f4'");
  EXPECT_THAT(VectorError("a.npy", NpyOf("[('a', '<f4')]", "(1, 1)", four)),
              HasSubstr("header: expected descr in quotes, fortran_order and shape, got "));
  EXPECT_EQ(VectorError("a.npy", NpyOf("'<f4'", "(1,)", four)),
            "a.npy: expected an array of 2 dimensions, got 1");
  EXPECT_EQ(VectorError("a.npy", NpyOf("'<f4'", "()", four)),
            "a.npy: expected an array of 2 dimensions, got 0");
}

TEST(Npy, MalformedHeaderIsRejected) {
  EXPECT_THAT(VectorError("a.npy", NpyOf("'<f4'", "(1, -1)", "1234")),
              HasSubstr("header: expected descr in quotes, fortran_order and shape, got "));
  EXPECT_THAT(VectorError("a.npy", Npy(Bytes("\x93NUMPY\x01\x00v\x00{'shape': (1, 1)}"), "1234")),
              HasSubstr("header: expected descr in quotes, fortran_order and shape, got "));
  EXPECT_THAT(VectorError("a.npy", "no numpy at all"), HasSubstr("begins with \\x93NUMPY"));
  std::string version4 = NumpyFloats();
  version4[6] = 4;
  EXPECT_EQ(VectorError("a.npy", version4), "a.npy: expected version 1, 2 or 3 of .npy, got 4");
}

TEST(Npy, ReadsLabelsOfEveryIntegerTypeThatNumpyWrote) {
  const auto read = [](const std::string& bytes) { return ParseLabels("l.npy", bytes).value(); };
  EXPECT_THAT(read(NpyOf("'<i8'", "(3,)",
                         Bytes("\x01\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\x03\0\0\0\0\0"
                               "\0\0"))),
              ElementsAre(1, -2, 3));
  EXPECT_THAT(read(NpyOf("'|u1'", "(2, 1)", "\x01\xff")), ElementsAre(1, 255));
  EXPECT_THAT(read(NpyOf("'|i1'", "(2,)", "\x01\xff")), ElementsAre(1, -1));
  EXPECT_THAT(read(NpyOf("'<i4'", "(2,)", Bytes("\x07\0\0\0\xff\xff\xff\xff"))),
              ElementsAre(7, -1));
  EXPECT_THAT(read(NpyOf("'<u2'", "(1,)", "\xff\xff")), ElementsAre(65535));
  EXPECT_THAT(read(NpyOf("'<i2'", "(1,)", "\xff\xff")), ElementsAre(-1));
}

TEST(Npy, LabelBeyondInt32IsNamedByRow) {
  EXPECT_EQ(
      LabelError("l.npy", NpyOf("'<i8'", "(2,)", Bytes("\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0"))),
      "l.npy: row 1: label 4294967296 is beyond what a 32-bit integer holds");
  EXPECT_EQ(LabelError("l.npy", NpyOf("'<u8'", "(1,)", Bytes("\0\0\0\0\0\0\0\x80"))),
            "l.npy: row 0: label 9223372036854775808 is beyond what a 32-bit integer holds");
  EXPECT_EQ(LabelError("l.npy", NpyOf("'<u4'", "(1,)", "\xff\xff\xff\xff")),
            "l.npy: row 0: label 4294967295 is beyond what a 32-bit integer holds");
}

TEST(Npy, NonIntegerOrMultiColumnLabelsAreRejected) {
  EXPECT_THAT(LabelError("l.npy", NpyOf("'<f4'", "(1,)", "1234")), HasSubstr("got dtype '<f4'"));
  EXPECT_THAT(LabelError("l.npy", NpyOf("'|u1'", "(2, 2)", "1234")),
              HasSubstr("expected labels of shape (n,) or (n, 1), got 2 dimensions, shape (2, 2)"));
}

TEST(Npy, WritesTheBytesThatNumpyWrites) {
  const TemporaryFolder folder;
  FloatMatrix vectors(2, 3);
  vectors << 1, 2.5f, -3, .1f, std::numeric_limits<float>::infinity(), 4096;
  ASSERT_TRUE(testing::WriteNpy(folder / "v.npy", vectors).ok());
  std::ifstream written(folder / "v.npy", std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), NumpyFloats());

  ASSERT_TRUE(testing::WriteNpy(folder / "l.npy", std::vector<int32_t>{7, -1}).ok());
  std::ifstream labels(folder / "l.npy", std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(labels), {}),
            NpyOf("'<i4'", "(2,)", Bytes("\x07\0\0\0\xff\xff\xff\xff")));
}

TEST(Fvecs, ReadsLiteralBytes) {
  const auto vectors =
      ParseVectors("a.fvecs", Bytes("\x02\0\0\0\0\0\x80?\0\0 @\x02\0\0\0\0\0@\xc0\0\0\x80\x7f"));
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  FloatMatrix expected(2, 2);
  expected << 1, 2.5f, -3, std::numeric_limits<float>::infinity();
  EXPECT_EQ(*vectors, expected);
}

TEST(Fvecs, IntegersBecomeVectorsOrLabels) {
  const std::string bytes = Bytes("\x01\0\0\0\x05\0\0\0\x01\0\0\0\xfe\xff\xff\xff");
  EXPECT_EQ(ParseVectors("a.ivecs", bytes).value(), (FloatMatrix(2, 1) << 5, -2).finished());
  EXPECT_THAT(ParseLabels("a.ivecs", bytes).value(), ElementsAre(5, -2));
  EXPECT_EQ(LabelError("a.ivecs", Bytes("\x02\0\0\0\x05\0\0\0\x06\0\0\0")),
            "a.ivecs: expected 1 column of labels, got 2");
}

TEST(Fvecs, MalformedRowIsNamed) {
  EXPECT_EQ(VectorError("a.fvecs", "abc"), "a.fvecs: expected at least 4 bytes, got 3");
  EXPECT_EQ(VectorError("a.fvecs", Bytes("\0\0\0\0")),
            "a.fvecs: row 0 says 0 columns, expected at least 1");
  EXPECT_EQ(VectorError("a.fvecs", Bytes("\xff\xff\xff\xff")),
            "a.fvecs: row 0 says -1 columns, expected at least 1");
  EXPECT_EQ(VectorError("a.fvecs", Bytes("\x01\0\0\0\0\0\x80?\x02\0\0\0\0\0\x80?")),
            "a.fvecs: row 1 says 2 columns, expected 1 as in row 0");
  EXPECT_THAT(VectorError("a.fvecs", Bytes("\x01\0\0\0\0\0\x80?\x01\0\0\0\0")),
              HasSubstr("5 bytes are left after row 1"));
  EXPECT_THAT(VectorError("a.fvecs", Bytes("\xff\xff\xff\x7f\0\0\x80?")),
              HasSubstr("expected rows of 8589934592 bytes (2147483647 columns)"));
}

TEST(Csv, ReadsNumbersBlanksAndAHeaderLine) {
  const auto vectors = ParseVectors("a.csv",
                                    "\xef\xbb\xbfx, y_2,\"z\"\r\n1, -2.5 ,3e2\r\n\r\n"
                                    "nan,inf,.5");
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  ASSERT_EQ(vectors->rows(), 2);
  EXPECT_EQ(vectors->row(0), (FloatMatrix(1, 3) << 1, -2.5f, 300).finished());
  EXPECT_TRUE(std::isnan((*vectors)(1, 0)));
  EXPECT_EQ((*vectors)(1, 1), std::numeric_limits<float>::infinity());
  EXPECT_EQ((*vectors)(1, 2), .5f);
}

TEST(Csv, NonNumericCellIsNamedByPosition) {
  EXPECT_EQ(VectorError("a.csv", "x,y\n1,2\n3,four\n"),
            "a.csv: line 3 column 2: expected a number, got 'four'");
  EXPECT_EQ(VectorError("a.csv", "1,2\n3,\n"), "a.csv: line 2 column 2: expected a number, got ''");
  EXPECT_EQ(VectorError("a.csv", "1,x\n"), "a.csv: line 1 column 2: expected a number, got 'x'");
  EXPECT_EQ(VectorError("a.csv", "1\n" + std::string(1000, '\x01')), [] {
    std::string text = "a.csv: line 2 column 1: expected a number, got '";
    for (int i = 0; i < 40; ++i) text += "\\x01";
    return text + "...'";
  }());
}

TEST(Csv, UnequalRowsAreRejectedByLine) {
  EXPECT_EQ(VectorError("a.csv", "1,2\n\n3\n"),
            "a.csv: line 3: expected 2 columns as in the first row, got 1");
  EXPECT_THAT(VectorError("a.csv", "x,y\n"), HasSubstr("expected at least one row"));
}

TEST(Csv, LabelsAreOneIntegerPerLine) {
  EXPECT_THAT(ParseLabels("l.txt", "label\n3\n-4\r\n").value(), ElementsAre(3, -4));
  EXPECT_THAT(ParseLabels("l.csv", "2147483647\n-2147483648").value(),
              ElementsAre(2147483647, std::numeric_limits<int32_t>::min()));
  EXPECT_EQ(LabelError("l.csv", "Labels\n1\n2147483648\n"),
            "l.csv: row 1 (line 3): label '2147483648' is beyond what a 32-bit integer holds");
  EXPECT_EQ(LabelError("l.csv", "1\n1.5\n"),
            "l.csv: line 2 column 1: expected one integer, got '1.5'");
  EXPECT_EQ(LabelError("l.txt", "heron\n1\n"),
            "l.txt: line 1 column 1: expected one integer, got 'heron'");
  EXPECT_EQ(LabelError("l.csv", "1,2\n"),
            "l.csv: line 1 column 1: expected one integer, got '1,2'");
}

TEST(VectorFile, MissingFileFolderOrUnknownExtensionIsNamed) {
  const TemporaryFolder folder;
  const auto missing = ReadVectors(folder / "none.npy");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("none.npy: no such file"));
  const auto a_folder = ReadLabels(folder.path());
  EXPECT_THAT(std::string(a_folder.status().message()), HasSubstr("but it is a folder"));
  const auto empty = ReadVectors(folder.Write("empty.csv", ""));
  EXPECT_THAT(std::string(empty.status().message()), HasSubstr("empty.csv: the file is empty"));
  EXPECT_THAT(VectorError("a.txt", "1"), HasSubstr("ends in .npy, .fvecs, .ivecs or .csv"));
  EXPECT_THAT(LabelError("a.fvecs", "1"), HasSubstr("ends in .npy, .ivecs, .csv or .txt"));
  EXPECT_EQ(ReadVectors(folder.Write("v.Csv", "1,2\n")).value(),
            (FloatMatrix(1, 2) << 1, 2).finished());
}

}  // namespace
}  // namespace privatemail
