#include "common/features/vector_file.h"

#include <unistd.h>

#include <cmath>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/items/item_checks.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::StatusOr<FloatMatrix> ParseVectors(absl::string_view name, absl::string_view bytes) {
  const absl::StatusOr<VectorFile> file = VectorFile::Parse(name, bytes);
  if (!file.ok()) return file.status();
  return file->All();
}

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
void ExpectRefusedLabels(const std::vector<Refused>& files) {
  ExpectRefused([](auto name, auto bytes) { return ParseLabels(name, bytes); }, files);
}

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
       {"a.npy", NpyOf("'|O'", "(1, 1)", "1234"), "it holds Python objects, whose format can run"},
       {"a.npy", NpyOf("'<c8'", "(1, 1)", "12345678"), "expected floats of 16 to 64 bits"},
       {"a.npy", NpyOf("'<U2'", "(1, 1)", "12345678"), "expected floats of 16 to 64 bits"},
       {"a.npy", NpyOf("'<f4'", "(1,)", "1234"), "expected an array of 2 dimensions, got 1"},
       {"a.npy", NpyOf("'<f4'", "()", "1234"), "expected an array of 2 dimensions, got 0"},
       {"a.npy", NpyOf("[('a', '<f4')]", "(1, 1)", "1234"), kDict},
       {"a.npy", NpyOf("'<f4'", "(1, -1)", "1234"), kDict},
       {"a.npy", Npy(Bytes("\x93NUMPY\x01\x00v\x00{'shape': (1, 1)}"), "1234"), kDict}});
}

// Each is [[1, 2], [-3, 4]], or without the sign, as numpy 1.24 writes it.
TEST(Npy, ReadsEveryTypeAndOrderThatNumpyWrote) {
  const auto fortran = [](std::string file) {
    file.replace(file.find("False"), 5, "True ");
    return file;
  };
  FloatMatrix expected(2, 2);
  expected << 1, 2, -3, 4;
  const std::string big = Bytes("?\x80\0\0@\0\0\0\xc0@\0\0@\x80\0\0");
  for (const std::string& file :
       {fortran(NpyOf("'<f4'", "(2, 2)", Bytes("\0\0\x80?\0\0@\xc0\0\0\0@\0\0\x80@"))),
        NpyOf("'>f4'", "(2, 2)", big), NpyOf("'<f2'", "(2, 2)", Bytes("\0<\0@\0\xc2\0D")),
        NpyOf("'|i1'", "(2, 2)", "\x01\x02\xfd\x04"),
        NpyOf("'>i2'", "(2, 2)", Bytes("\0\x01\0\x02\xff\xfd\0\x04")),
        fortran(NpyOf("'>i2'", "(2, 2)", Bytes("\0\x01\xff\xfd\0\x02\0\x04")))}) {
    EXPECT_EQ(ParseVectors("a.npy", file).value(), expected);
  }
  EXPECT_EQ(ParseVectors("a.npy", NpyOf("'|u1'", "(1, 2)", "\x01\xff")).value(),
            (FloatMatrix(1, 2) << 1, 255).finished());
  FloatMatrix row(1, 2);
  VectorFile::Parse("a.npy", NpyOf("'>f4'", "(2, 2)", big))->Copy(1, 1, row.data());
  EXPECT_EQ(row, expected.row(1)) << "rows are read alone";
}

// A member of a ZIP archive: its name, and its bytes, which may be a deflated .npy file of `size`.
struct Member {
  std::string name, bytes;
  size_t size = 0;  // 0: plain
};

std::string Zip(const std::vector<Member>& members) {
  const auto number = [](size_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 0xff);
    return text;
  };
  std::string locals, directory;
  for (const auto& [name, bytes, size] : members) {
    const std::string fields = number(size == 0 ? 0 : 8, 2) + number(0, 8) +
                               number(bytes.size(), 4) +
                               number(size == 0 ? bytes.size() : size, 4) + number(name.size(), 2);
    directory += Bytes("PK\x01\x02\x14\0\x14\0\0\0") + fields + number(0, 12) +
                 number(locals.size(), 4) + name;
    locals += Bytes("PK\x03\x04\x14\0\0\0") + fields + number(0, 2) + name + bytes;
  }
  return locals + directory + Bytes("PK\x05\x06\0\0\0\0") + number(members.size(), 2) +
         number(members.size(), 2) + number(directory.size(), 4) + number(locals.size(), 4) +
         number(0, 2);
}

// Arrays that are not read are inflated up to their header: here a cut block follows it.
TEST(Npz, OtherArraysAreNotInflated) {
  const std::string other = NpyOf("'|u1'", "(100000,)", std::string(100000, '\7'));
  const std::string cut = Bytes("\0\xff\xff\0\0") + other.substr(0, 0xffff) + "\7";
  const std::string array = NpyOf("'<f4'", "(1, 1)", Bytes("\0\0\x80?"));
  const std::string file = Zip({{"v.npy", array}, {"l.npy", cut, other.size()}});
  EXPECT_EQ(ParseVectors("a.npz", file).value()(0, 0), 1);
  EXPECT_FALSE(ParseLabels("a.npz", file).ok());
}

// data_test.py reads what np.savez and np.savez_compressed write.
TEST(Npz, ReadsTheOnlyArrayOfItsDimensions) {
  const std::string array = NpyOf("'<f4'", "(1, 2)", Bytes("\0\0\x80?\0\0\0@"));
  const std::string labels = NpyOf("'|u1'", "(1,)", "\x07");
  // A deflate block that is stored: final, its length and the complement.
  const std::string deflated = Bytes("\x01\x88\0\x77\xff") + array;
  const FloatMatrix expected = (FloatMatrix(1, 2) << 1, 2).finished();
  for (const std::string& file :
       {Zip({{"v.npy", array}}), Zip({{"v.npy", deflated, array.size()}, {"l.npy", labels}}),
        Zip({{"l.npy", labels}, {"v.npy", array}})}) {
    EXPECT_EQ(ParseVectors("a.npz", file).value(), expected);
  }
  const std::string both = Zip({{"l.npy", labels}, {"v.npy", deflated, array.size()}});
  EXPECT_THAT(ParseLabels("a.npz", both)->numbers, ElementsAre(7));
  ExpectRefusedVectors(
      {{"a.npz", Zip({{"v.npy", array}, {"w.npy", array}}),
        "expected one array of 2 dimensions, got v.npy, w.npy: save the one"},
       {"a.npz", Zip({{"l.npy", labels}}), "expected one array of 2 dimensions, got none"},
       {"a.npz", Zip({{"v.npy", deflated, array.size() + 1}}), "expected an .npz file"},
       {"a.npz", Zip({{"v.npy", deflated, size_t{1} << 31}}), "expected an .npz file"},
       {"a.npz", "PK", "expected an .npz file"}});
  for (size_t size = 0; size < both.size(); ++size) {
    ExpectRefusedVectors({{"a.npz", both.substr(0, size), ""}});
  }
}

TEST(Npy, ReadsLabelsOfEveryIntegerTypeThatNumpyWrote) {
  const auto read = [](const std::string& bytes) { return ParseLabels("l.npy", bytes)->numbers; };
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
  EXPECT_THAT(read(NpyOf("'>i2'", "(1,)", "\xff\xfd")), ElementsAre(-3));
  EXPECT_THAT(read(NpyOf("'<f4'", "(2,)", Bytes("\0\0@\xc0\0\0\xc0\x7f"))),
              ElementsAre(-3, kNoLabel))
      << "pandas makes floats of integers beside missing values";
}

TEST(Npy, ReadsLabelsThatAreText) {
  const LabelColumn wide = ParseLabels("l.npy", NpyOf("'<U2'", "(3,)",
                                                      Bytes("a\0\0\0\xfc\0\0\0"
                                                            "1\0\0\0\0\0\0\0"
                                                            "\x63\xf3\x01\0\0\0\0\0")))
                               .value();
  EXPECT_THAT(wide.names, ElementsAre("a\u00fc", "1", "\U0001f363"));
  EXPECT_THAT(wide.numbers, IsEmpty()) << "the type says text";
  EXPECT_THAT(ParseLabels("l.npy", NpyOf("'>U1'", "(1,)", Bytes("\0\0\0a")))->names,
              ElementsAre("a"));
  EXPECT_THAT(ParseLabels("l.npy", NpyOf("'|S3'", "(2,)", Bytes("ab\0cde")))->names,
              ElementsAre("ab", "cde"));
  ExpectRefusedLabels(
      {{"l.npy", NpyOf("'<U1'", "(1,)", "\xff\xff\xff\xff"), "row 0: expected text"}});
}

// Between the array's description and its end, in protocol 3, as numpy 1.24 writes it.
std::string NpyOfObjects(int rows, const std::string& values) {
  return NpyOf("'|O'", absl::StrCat("(", rows, ",)"),
               Bytes("\200\3cnumpy.core.multiarray\n_reconstruct\nq\0cnumpy\nndarray\nq\1K\0\205q\2"
                     "C\1bq\3\207q\4Rq\5(K\1K\5\205q\6cnumpy\ndtype\nq\7X\2\0\0\0O8q\10\211\210\207"
                     "q\11Rq\12(K\3X\1\0\0\0|q\13NNNJ\377\377\377\377J\377\377\377\377K?tq\14b\211]"
                     "q\15") +
                   values + "tb.");
}

// np.save of np.array(["tea", "grün", None, "tea", nan], object), with pickle's protocols.
TEST(Npy, ReadsLabelsThatAreObjects) {
  const std::string by_protocol_2 = Bytes(
      "\200\2cnumpy.core.multiarray\n_reconstruct\nq\0cnumpy\nndarray\nq\1K\0\205q\2"
      "c_codecs\nencode\nq\3X\1\0\0\0bq\4X\6\0\0\0latin1q\5\206q\6Rq\7\207q\10Rq\11(K\1K\5\205"
      "q\12cnumpy\ndtype\nq\13X\2\0\0\0O8q\14\211\210\207q\15Rq\16(K\3X\1\0\0\0|q\17NNN"
      "J\377\377\377\377J\377\377\377\377K?tq\20b\211]q\21(X\3\0\0\0teaq\22X\5\0\0\0gr\303\274n"
      "q\23Nh\22G\177\370\0\0\0\0\0\0etq\24b.");
  const std::string by_protocol_4 = Bytes(
      "\200\4\225\243\0\0\0\0\0\0\0\214\25numpy.core.multiarray\224\214\14_reconstruct\224\223"
      "\224\214\5numpy\224\214\7ndarray\224\223\224K\0\205\224C\1b\224\207\224R\224(K\1K\5\205\224"
      "h\3\214\5dtype\224\223\224\214\2O8\224\211\210\207\224R\224(K\3\214\1|\224NNN"
      "J\377\377\377\377J\377\377\377\377K?t\224b\211]\224(\214\3tea\224\214\5gr\303\274n\224Nh\23"
      "G\177\370\0\0\0\0\0\0et\224b.");
  const auto replaced = [](std::string text, const std::string& old, const std::string& by) {
    return text.replace(text.find(old), old.size(), by);
  };
  for (const std::string& file :
       {NpyOf("'|O'", "(5,)", by_protocol_2), NpyOf("'|O'", "(5, 1)", by_protocol_4),
        NpyOf("'|O'", "(5,)", replaced(by_protocol_4, "\200\4", "\200\5")),
        NpyOf("'|O'", "(5,)", replaced(by_protocol_4, "\25numpy.core", "\26numpy._core")),
        NpyOfObjects(
            5, Bytes("(X\3\0\0\0teaq\16X\5\0\0\0gr\303\274nq\17Nh\16eG\177\370\0\0\0\0\0\0a"))}) {
    const LabelColumn labels = ParseLabels("l.npy", file).value();
    EXPECT_THAT(labels.names, ElementsAre("tea", "gr\u00fcn", "", "tea", ""));
    EXPECT_THAT(labels.numbers, IsEmpty()) << "the type says text";
    for (size_t size = 0; size < file.size(); ++size) {
      ExpectRefusedLabels({{"l.npy", file.substr(0, size), ""}});
    }
  }
  const LabelColumn numbers =
      ParseLabels("l.npy", NpyOfObjects(6, Bytes("(K\3J\377\377\377\377M,\1Jp\21\1\0N"
                                                 "G@\0\0\0\0\0\0\0e")))
          .value();
  EXPECT_THAT(numbers.numbers, ElementsAre(3, -1, 300, 70000, kNoLabel, 2));
  EXPECT_THAT(numbers.names, IsEmpty());
  const std::string nullable =
      "(K\3cpandas._libs.missing\nNA\nq\16h\16\x8c\24pandas._libs.missing\x8c\2NA\x93"
      "e";
  EXPECT_THAT(ParseLabels("l.npy", NpyOfObjects(4, nullable))->numbers,
              ElementsAre(3, kNoLabel, kNoLabel, kNoLabel));
  EXPECT_THAT(ParseLabels("l.npy", NpyOfObjects(2, "(NNe"))->numbers,
              ElementsAre(kNoLabel, kNoLabel));
}

TEST(Npy, OtherObjectsAreRefusedAndNeverRun) {
  constexpr char kOther[] =
      "expected an array of text, numbers and None as numpy writes it, got another Python object, "
      "which could run code and is not read: save text with np.save(path, labels.astype(str)), "
      "integers with labels.astype(int)";
  constexpr char kOtherValue[] = "row 1: expected text, a number or None, got another Python";
  ExpectRefusedLabels(
      {{"l.npy", NpyOf("'|O'", "(1,)", "cposix\nsystem\n(X\4\0\0\0true\205R."), kOther},
       {"l.npy", NpyOf("'|O'", "(1,)", "1"), kOther},
       {"l.npy", NpyOf("'|O'", "(1,)", "\x8c\5posix\x8c\6system\x93"), kOther},
       {"l.npy", NpyOfObjects(2, "(Ncposix\nsystem\n"), kOtherValue},
       {"l.npy", NpyOfObjects(2, "(Ncnumpy\ndtype\n"), kOtherValue},
       {"l.npy", NpyOfObjects(2, "(N\x88"), kOtherValue},
       {"l.npy", NpyOfObjects(2, "(N]"), kOtherValue},
       {"l.npy", NpyOfObjects(2, "(Nh\x0d"), kOtherValue},
       {"l.npy", NpyOfObjects(2, "(Nq\x0f"), kOtherValue},
       {"l.npy", NpyOfObjects(2, "(NK\1K\2te"), kOther},
       {"l.npy", NpyOfObjects(2, Bytes("(X\1\0\0\0aK\1e")),
        "row 1: expected text as in the rows before, got a number"},
       {"l.npy", NpyOfObjects(2, Bytes("(K\1X\1\0\0\0ae")),
        "row 1: expected a number as in the rows before, got text"},
       {"l.npy", NpyOfObjects(1, Bytes("(X\1\1\0\0") + std::string(257, 'a') + "e"),
        "row 0: expected a label of at most 256 bytes, got 257"},
       {"l.npy", NpyOfObjects(1, Bytes("(G?\370\0\0\0\0\0\0e")), "row 0: the label is no whole"},
       {"l.npy", NpyOfObjects(1, Bytes("(\x8a\6\0\0\0\0\0\1e")), "row 0: the label is beyond"},
       {"l.npy", NpyOfObjects(1, "(NNe"),
        "expected the 1 rows of the header, at least 1, got more"},
       {"l.npy", NpyOfObjects(0, ""), "expected the 0 rows of the header, at least 1"},
       {"l.npy", NpyOfObjects(1, "(Ne") + "x", "expected the 1 rows of the header"}});
}

TEST(Npy, OtherLabelsAreRefused) {
  ExpectRefusedLabels(
      {{"l.npy", NpyOf("'<i8'", "(2,)", Bytes("\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0")),
        "row 1: the label is beyond"},
       {"l.npy", NpyOf("'<u8'", "(1,)", Bytes("\0\0\0\0\0\0\0\x80")), "row 0: the label is beyond"},
       {"l.npy", NpyOf("'<u4'", "(1,)", "\xff\xff\xff\xff"), "row 0: the label is beyond"},
       {"l.npy", NpyOf("'<f4'", "(1,)", Bytes("\0\0\xc0?")), "row 0: the label is no whole number"},
       {"l.npy", NpyOf("'<M8'", "(1,)", "12345678"), "expected labels that are numbers or text"},
       {"l.npy", NpyOf("'|u1'", "(2, 2)", "1234"), "expected labels of shape (n,) or (n, 1)"}});
}

TEST(Fvecs, FloatsAndIntegersBecomeVectorsOrLabels) {
  FloatMatrix expected(2, 2);
  expected << 1, 2.5f, -3, std::numeric_limits<float>::infinity();
  const std::string floats = Bytes("\x02\0\0\0\0\0\x80?\0\0 @\x02\0\0\0\0\0@\xc0\0\0\x80\x7f");
  EXPECT_EQ(ParseVectors("a.fvecs", floats).value(), expected);
  const std::string bytes = Bytes("\x01\0\0\0\x05\0\0\0\x01\0\0\0\xfe\xff\xff\xff");
  EXPECT_EQ(ParseVectors("a.ivecs", bytes).value(), (FloatMatrix(2, 1) << 5, -2).finished());
  EXPECT_THAT(ParseLabels("a.ivecs", bytes)->numbers, ElementsAre(5, -2));
  ExpectRefusedLabels(
      {{"a.ivecs", Bytes("\x02\0\0\0\x05\0\0\0\x06\0\0\0"), "expected 1 column of labels, got 2"}});
}

TEST(Fvecs, MalformedRowIsNamed) {
  ExpectRefusedVectors(
      {{"a.fvecs", "abc", "expected at least 4 bytes, got 3"},
       {"a.fvecs", Bytes("\0\0\0\0"), "row 0 says fewer columns than 1"},
       {"a.fvecs", "\xff\xff\xff\xff", "row 0 says fewer columns than 1"},
       {"a.fvecs", Bytes("\x01\0\0\0\0\0\x80?\x02\0\0\0\0\0\x80?"),
        "row 1 says another number of columns than row 0"},
       {"a.fvecs", Bytes("\x01\0\0\0\0\0\x80?\x01\0\0\0\0"), "expected rows of 8 bytes"},
       {"a.fvecs", Bytes("\xff\xff\xff\x7f\0\0\x80?"),
        "row 0 says more columns than the 8 bytes hold"}});
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

// Never by a value, which may be that of a private query.
TEST(Csv, NonNumericCellOrUnequalRowIsNamedByPosition) {
  ExpectRefusedVectors(
      {{"a.csv", "x,y\n1,2\n3,four\n",
        "line 3 column 2 (y): expected a number, got text of length 4"},
       {"a.csv", "1,2\n3,\n", "line 2 column 2: expected a number, got nothing"},
       {"a.csv", "1,x\n", "line 1 column 2: expected a number, got text of length 1"},
       {"a.csv", "1;2\n",
        "line 1 column 1: expected a number, got text of length 3 with ';': commas separate "
        "columns, and points decimals"},
       {"a.csv", "1,2\n\n3\n", "line 3: expected 2 columns as in the first row, got 1"},
       {"a.csv", "x,y\n", "expected at least one row"}});
}

// DataFrame.to_csv(), with columns that have no names, and with index=False.
TEST(Csv, ReadsWhatPandasWrites) {
  FloatMatrix expected(2, 2);
  expected << 1, 2.5f, 3, 4;
  for (const char* text :
       {",0,1\n0,1.0,2.5\n1,3.0,4.0\n", ",x,y\na,1.0,2.5\nb,3.0,4.0\n",
        ",2020,2021\n0,1,2.5\n1,3,4\n", ",0.0,.5\n0,1,2.5\n1,3,4\n", ",2000,2010\n0,1,2.5\n1,3,4\n",
        "\"400.5\",\"410.5\"\n1,2.5\n3,4\n", "0,1\n1.0,2.5\n3.0,4.0\n",
        "Unnamed: 0,x,y\n0,1,2.5\n1,3,4\n", "\"2020\",\"2021\"\n1,2.5\n3,4\n",
        "\"1\",\"2.5\"\n\"3\",\"4\"\n", "\"x\",\"y\"\n\"1\", \"2.5\"\n\"3\",\"4\"\n"}) {
    EXPECT_EQ(ParseVectors("a.csv", text).value(), expected) << text;
  }
  EXPECT_EQ(ParseVectors("a.csv", "\"1\",\"2\"\n")->rows(), 1) << "no other line: a row";
  EXPECT_EQ(ParseVectors("a.csv", "0,1\n3,4\n")->rows(), 2) << "no decimals: a row";
  for (const char* text :
       {",label\n0,\"tea, green\"\n1,\n", "index,kind\n7,\"tea, green\"\n9,\"\"\n",
        "label\n\"tea, green\"\n\"\"\n"}) {
    EXPECT_THAT(ParseLabels("l.csv", text)->names, ElementsAre("tea, green", "")) << text;
  }
  const LabelColumn beside_missing = ParseLabels("l.csv", ",label\n0,3.0\n1,\n").value();
  EXPECT_THAT(beside_missing.numbers, ElementsAre(3, kNoLabel));
  EXPECT_THAT(beside_missing.names, ElementsAre("3", ""));
}

// df.assign(name=...).to_csv(), of columns without names and with.
TEST(Csv, ColumnOfTextIsNamedByItsHeader) {
  constexpr char kText[] =
      ": expected a number, got text of length 3: leave a column of text out, or give it by "
      "--labels";
  ExpectRefusedVectors(
      {{"a.csv", ",0,1,name\n0,1.0,2.5,tea\n", absl::StrCat("line 2 column 4 (name)", kText)},
       {"a.csv", "0,1,name\n1.0,2.5,tea\n", absl::StrCat("line 2 column 3 (name)", kText)},
       {"a.csv", "0,name\n1,tea\n", absl::StrCat("line 2 column 2 (name)", kText)},
       {"a.csv", ",x,\"a b\"\n\"u, v\",1,tea\n", absl::StrCat("line 2 column 3 (a b)", kText)},
       {"a.csv", "x,name\n1,2\n3,tea\n", "line 3 column 2 (name): expected a number, got text of "},
       {"a.csv", "name,0,1\ntea,1.0,2.5\n", absl::StrCat("line 2 column 1 (name)", kText)},
       {"a.csv", "\u00dc,name\n1,tea\n", absl::StrCat("line 2 column 2 (name)", kText)},
       {"a.csv", ",,0\na,1,2.5\n",
        "line 1: expected one index column, which has no name, got more"},
       {"a.csv", ",0.82,0.33\n1.5,2,3\n", "line 1 column 1: expected a number, got nothing"},
       {"a.csv", ",7,4\n1,2,3\n", "line 1 column 1: expected a number, got nothing"},
       {"a.csv", "\"0.5\",\"0.6\"\n1,n/a\n",
        "line 2 column 2: expected a number, got text of length 3"},
       {"a.csv", "\"V1\",\"V2\"\n\"1\",0.5,0.2\n",
        "line 2: expected 2 columns as in the header, got 3"},
       {"a.csv", "x,Label\n1,0\n", "line 1: column Label holds labels: give them by --labels"},
       {"a.csv", "x,Id\n1,2\n",
        "line 1: expected column Id as the first, since it holds ids, got it as column 2: move it"},
       {"a.csv", ",id,x\n0,7,2\n", "line 1: expected column id as the first, since it holds ids"},
       {"a.csv", "0,x\n1,2\n", "line 1 column 2: expected a number, got text of length 1"},
       {"a.csv", "0,1,x\n", "line 1 column 3: expected a number, got text of length 1"}});
  EXPECT_EQ(ParseVectors("a.csv", "0,1,price\n1.0,2.5,3\n").value(),
            (FloatMatrix(1, 3) << 1, 2.5f, 3).finished());
}

TEST(Csv, IndexOtherThanRowNumbersGivesIds) {
  for (const auto& [text, ids] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {",0,1\n\"tea, green\",1.0,2.5\nb,3.0,4.0\n", {"tea, green", "b"}},
           {",x,y\n7,1,2\n9,3,4\n", {"7", "9"}},
           {"Id,x,y\na,1,2\n,3,4\n", {"a", ""}},
           {"item_id,x,y\n0,1,2\n2,3,4\n", {"0", "2"}},
           {"index,0,1\n1,1.0,2.5\n0,3.0,4.0\n", {"1", "0"}},
           {",x,y\n0,1,2\n1,3,4\n", {}},
           {"x,y\n5,2\n6,4\n", {}}}) {
    const VectorFile file = VectorFile::Parse("a.csv", text).value();
    EXPECT_EQ(file.rows(), 2) << text;
    EXPECT_EQ(file.cols(), 2) << text;
    EXPECT_EQ(file.ids(), ids) << text;
  }
}

TEST(Csv, LineThatRowsDoNotNeedIsAHeader) {
  EXPECT_THAT(ParseLabels("l.csv", "kind\ntea\nmilk\n", 2)->names, ElementsAre("tea", "milk"));
  EXPECT_THAT(ParseLabels("l.csv", "kind\n3\n4\n", 2)->numbers, ElementsAre(3, 4));
  for (const auto& [name, text] : {std::pair("l.csv", "tea\nmilk\ntea\n"),
                                   {"l.csv", "3\n4\n5\n"},
                                   {"l.txt", "kind\ntea\nmilk\n"}}) {
    EXPECT_EQ(ParseLabels(name, text, 2)->size(), 3u) << text;
  }
}

TEST(Csv, LabelsAreIntegersOrNames) {
  EXPECT_THAT(ParseLabels("l.txt", "label\n3\n-4\r\n")->numbers, ElementsAre(3, -4));
  EXPECT_THAT(ParseLabels("l.txt", "3\n-4\n")->names, ElementsAre("3", "-4")) << "they may be";
  EXPECT_THAT(ParseLabels("l.csv", "2147483647\n-2147483648")->numbers,
              ElementsAre(2147483647, std::numeric_limits<int32_t>::min()));
  const LabelColumn mixed = ParseLabels("l.txt", "\xef\xbb\xbfheron, grey\r\n1\r\n").value();
  EXPECT_THAT(mixed.names, ElementsAre("heron, grey", "1"));
  EXPECT_THAT(mixed.numbers, IsEmpty());
  ExpectRefusedLabels(
      {{"l.csv", "Labels\n1\n2147483648\n", "row 1 (line 3): the label is beyond"},
       {"l.csv", "1\n1.5\n", "line 2 column 1: expected one integer, got a number with decimals"},
       {"l.csv", "id,kind\n7,tea\n", "line 1: column id holds ids: give them by --ids"},
       {"l.csv", "1,2\n", "line 1: expected one label, got 2 cells"},
       {"l.txt",
        Bytes("\xff\xfe"
              "1\0"),
        "expected UTF-8, but it is UTF-16"}});
}

TEST(VectorFile, IsReadByItsExtension) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReadVectors(folder / "none.npy"), FailsWith(kInvalid, "none.npy: no such file"));
  EXPECT_THAT(ReadLabels(folder.path()), FailsWith(kInvalid, "but it is a folder"));
  ExpectRefusedVectors({{"a.txt", "1", "expected a name that ends in .npy, .npz, .fvecs"}});
  ExpectRefusedLabels({{"a.fvecs", "1", "expected a name that ends in .npy, .npz, .ivecs"}});
  EXPECT_EQ(ReadVectors(folder.Write("v.Csv", "1,2\n")).value(),
            (FloatMatrix(1, 2) << 1, 2).finished());
}

TEST(VectorFile, PipeIsReadByItsFirstBytes) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    const std::string bytes = NumpyFloats();
    EXPECT_EQ(::write(ends[1], bytes.data(), bytes.size()), std::ssize(bytes));
    ::close(ends[1]);
  });
  EXPECT_EQ(ReadVectors(absl::StrCat("/dev/fd/", ends[0]))->cols(), 3);
  writer.join();
  ::close(ends[0]);
}

}  // namespace
}  // namespace privatemail
