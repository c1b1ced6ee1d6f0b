#include "common/features/vector_file.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

using ::testing::ElementsAre;

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

struct Refused {
  const char* name;
  std::string bytes;
  std::string message;
};

void ExpectRefused(const auto& parse, const std::vector<Refused>& files) {
  for (const auto& [name, bytes, message] : files) {
    EXPECT_THAT(parse(name, bytes), FailsWith(kInvalid, absl::StrCat(name, ": ", message)));
  }
}

void ExpectRefusedVectors(const std::vector<Refused>& files) { ExpectRefused(ParseVectors, files); }
void ExpectRefusedLabels(const std::vector<Refused>& files) { ExpectRefused(ParseLabels, files); }

TEST(Npy, ReadsFloatsOfEveryVersionThatNumpyWrote) {
  FloatMatrix expected(2, 3);
  expected << 1, 2.5f, -3, .1f, std::numeric_limits<float>::infinity(), 4096;
  EXPECT_EQ(ParseVectors("a.npy", NumpyFloats()).value(), expected);
  const FloatMatrix row = (FloatMatrix(1, 2) << 1, 2.5f).finished();
  const std::string doubles =
      NpyOf("'<f8'", "(1, 2)", Bytes("\x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x04@"));
  EXPECT_EQ(ParseVectors("A.NPY", doubles).value(), row);
  for (const char version : {'\x02', '\x03'}) {
    std::string bytes = Npy(Bytes("\x93NUMPY\x02\x00t\x00\x00\x00{'descr': '<f4', "
                                  "'fortran_order': False, 'shape': (1, 2), }"),
                            Bytes("\x00\x00\x80?\x00\x00 @"));
    bytes[6] = version;
    EXPECT_EQ(ParseVectors("a.npy", bytes).value(), row);
  }
}

TEST(Npy, TruncatedFileIsNamed) {
  const std::string whole = NumpyFloats();
  for (size_t size = 0; size < whole.size(); ++size) {
    ExpectRefusedVectors({{"dir/a.npy", whole.substr(0, size), ""}});
  }
}

TEST(Npy, ShapeOfAnotherSizeIsRejectedBeforeAllocation) {
  ExpectRefusedVectors({{"a.npy", NumpyFloats() + "x", "shape (2, 3) of '<f4' needs 24 bytes"}});
  // 2^32 x 2^32 is 0 modulo 2^64; 2^62 values of 4 bytes likewise.
  for (const char* shape : {"(4294967296, 4294967296)", "(4611686018427387904, 1)",
                            "(9223372036854775807, 9223372036854775807)", "(1000000, 1000000)"}) {
    ExpectRefusedVectors({{"a.npy", NpyOf("'<f4'", shape, ""),
                           absl::StrCat("shape ", shape, " of '<f4' needs more values")}});
  }
  ExpectRefusedVectors(
      {{"a.npy", NpyOf("'<f4'", "(9223372036854775808, 1)", ""), "header: expected lengths"},
       {"a.npy", NpyOf("'<f4'", "(9223372036854775807, 0)", ""),
        "expected at least one row and one column"}});
}

TEST(Npy, UnsupportedOrMalformedHeaderIsNamed) {
  std::string long_header = NumpyFloats(), version4 = NumpyFloats();
  long_header.replace(8, 2, "\xff\xff");
  version4[6] = 4;
  constexpr char kDict[] = "header: expected descr in quotes, fortran_order and shape, got ";
  ExpectRefusedVectors(
      {{"a.npy", long_header, "the header says it has 65535 bytes"},
       {"a.npy", version4, "expected version 1, 2 or 3 of .npy"},
       {"a.npy", "no numpy at all", "expected an .npy file"},
       {"a.npy",
        Npy(Bytes("\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': True, "
                  "'shape': (1, 1), }"),
            "1234"),
        "expected C order"},
       {"a.npy", NpyOf("'>f4'", "(1, 1)", "1234"), "expected float32 '<f4' or"},
       {"a.npy", NpyOf("'<f4'", "(1,)", "1234"), "expected an array of 2 dimensions, got 1"},
       {"a.npy", NpyOf("'<f4'", "()", "1234"), "expected an array of 2 dimensions, got 0"},
       {"a.npy", NpyOf("[('a', '<f4')]", "(1, 1)", "1234"), kDict},
       {"a.npy", NpyOf("'<f4'", "(1, -1)", "1234"), kDict},
       {"a.npy", Npy(Bytes("\x93NUMPY\x01\x00v\x00{'shape': (1, 1)}"), "1234"), kDict}});
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

TEST(Npy, OtherLabelsAreRefused) {
  ExpectRefusedLabels(
      {{"l.npy", NpyOf("'<i8'", "(2,)", Bytes("\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0")),
        "row 1: label 4294967296 is beyond"},
       {"l.npy", NpyOf("'<u8'", "(1,)", Bytes("\0\0\0\0\0\0\0\x80")),
        "row 0: label 9223372036854775808 is"},
       {"l.npy", NpyOf("'<u4'", "(1,)", "\xff\xff\xff\xff"), "row 0: label 4294967295 is beyond"},
       {"l.npy", NpyOf("'<f4'", "(1,)", "1234"), "expected labels of an integer type"},
       {"l.npy", NpyOf("'|u1'", "(2, 2)", "1234"), "expected labels of shape (n,) or (n, 1)"}});
}

TEST(Fvecs, FloatsAndIntegersBecomeVectorsOrLabels) {
  FloatMatrix expected(2, 2);
  expected << 1, 2.5f, -3, std::numeric_limits<float>::infinity();
  const std::string floats = Bytes("\x02\0\0\0\0\0\x80?\0\0 @\x02\0\0\0\0\0@\xc0\0\0\x80\x7f");
  EXPECT_EQ(ParseVectors("a.fvecs", floats).value(), expected);
  const std::string bytes = Bytes("\x01\0\0\0\x05\0\0\0\x01\0\0\0\xfe\xff\xff\xff");
  EXPECT_EQ(ParseVectors("a.ivecs", bytes).value(), (FloatMatrix(2, 1) << 5, -2).finished());
  EXPECT_THAT(ParseLabels("a.ivecs", bytes).value(), ElementsAre(5, -2));
  ExpectRefusedLabels(
      {{"a.ivecs", Bytes("\x02\0\0\0\x05\0\0\0\x06\0\0\0"), "expected 1 column of labels, got 2"}});
}

TEST(Fvecs, MalformedRowIsNamed) {
  ExpectRefusedVectors(
      {{"a.fvecs", "abc", "expected at least 4 bytes, got 3"},
       {"a.fvecs", Bytes("\0\0\0\0"), "row 0 says 0 columns, expected at least 1"},
       {"a.fvecs", "\xff\xff\xff\xff", "row 0 says -1 columns"},
       {"a.fvecs", Bytes("\x01\0\0\0\0\0\x80?\x02\0\0\0\0\0\x80?"), "row 1 says 2 columns"},
       {"a.fvecs", Bytes("\x01\0\0\0\0\0\x80?\x01\0\0\0\0"), "expected rows of 8 bytes"},
       {"a.fvecs", Bytes("\xff\xff\xff\x7f\0\0\x80?"), "expected rows of 8589934592 bytes"}});
}

TEST(Csv, ReadsNumbersBlanksAndAHeaderLine) {
  const auto vectors =
      ParseVectors("a.csv", "\xef\xbb\xbfx, y_2,\"z\"\r\n1, -2.5 ,3e2\r\n\r\nnan,inf,.5");
  ASSERT_THAT(vectors, IsOk());
  ASSERT_EQ(vectors->rows(), 2);
  EXPECT_EQ(vectors->row(0), (FloatMatrix(1, 3) << 1, -2.5f, 300).finished());
  EXPECT_TRUE(std::isnan((*vectors)(1, 0)));
  EXPECT_EQ((*vectors)(1, 1), std::numeric_limits<float>::infinity());
  EXPECT_EQ((*vectors)(1, 2), .5f);
}

TEST(Csv, NonNumericCellOrUnequalRowIsNamedByPosition) {
  std::string quoted = "line 2 column 1: expected a number, got '";
  for (int i = 0; i < 40; ++i) quoted += "\\x01";
  ExpectRefusedVectors(
      {{"a.csv", "x,y\n1,2\n3,four\n", "line 3 column 2: expected a number, got 'four'"},
       {"a.csv", "1,2\n3,\n", "line 2 column 2: expected a number, got ''"},
       {"a.csv", "1,x\n", "line 1 column 2: expected a number, got 'x'"},
       {"a.csv", "1\n" + std::string(1000, '\x01'), quoted + "...'"},
       {"a.csv", "1,2\n\n3\n", "line 3: expected 2 columns as in the first row, got 1"},
       {"a.csv", "x,y\n", "expected at least one row"}});
}

TEST(Csv, LabelsAreOneIntegerPerLine) {
  EXPECT_THAT(ParseLabels("l.txt", "label\n3\n-4\r\n").value(), ElementsAre(3, -4));
  EXPECT_THAT(ParseLabels("l.csv", "2147483647\n-2147483648").value(),
              ElementsAre(2147483647, std::numeric_limits<int32_t>::min()));
  ExpectRefusedLabels(
      {{"l.csv", "Labels\n1\n2147483648\n", "row 1 (line 3): label '2147483648' is beyond"},
       {"l.csv", "1\n1.5\n", "line 2 column 1: expected one integer, got '1.5'"},
       {"l.txt", "heron\n1\n", "line 1 column 1: expected one integer, got 'heron'"},
       {"l.csv", "1,2\n", "line 1 column 1: expected one integer, got '1,2'"}});
}

TEST(VectorFile, IsReadByItsExtension) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReadVectors(folder / "none.npy"), FailsWith(kInvalid, "none.npy: no such file"));
  EXPECT_THAT(ReadLabels(folder.path()), FailsWith(kInvalid, "but it is a folder"));
  ExpectRefusedVectors({{"a.txt", "1", "expected a name that ends in .npy, .fvecs"}});
  ExpectRefusedLabels({{"a.fvecs", "1", "expected a name that ends in .npy, .ivecs"}});
  EXPECT_EQ(ReadVectors(folder.Write("v.Csv", "1,2\n")).value(),
            (FloatMatrix(1, 2) << 1, 2).finished());
}

}  // namespace
}  // namespace privatemail
