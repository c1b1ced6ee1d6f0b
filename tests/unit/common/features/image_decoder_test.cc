#include "common/features/image_decoder.h"

#include <sys/resource.h>
#include <webp/encode.h>

#include <opencv2/imgproc.hpp>
// After cstdio:
#include <jpeglib.h>

#include "tests/testing/matchers.h"
#include "tests/testing/pictures.h"

namespace privatemail {
namespace {

// The pixels of an image that is `width` x `height` once upright, as blue, green, red.
std::string Decode(const std::string& bytes, int width, int height) {
  const auto image = DecodeImage("image", bytes, cv::Size(width, height), cv::INTER_NEAREST);
  if (!image.ok()) return std::string(image.status().message());
  return {reinterpret_cast<const char*>(image->data), image->total() * 3};
}

absl::Status Refusal(const std::string& bytes) {
  return DecodeImage("image", bytes, cv::Size(4, 4), cv::INTER_NEAREST).status();
}

// pixels: `components` bytes each.
std::string Jpeg(int size, const std::string& pixels, J_COLOR_SPACE given, J_COLOR_SPACE kept,
                 const std::string& exif = "", bool progressive = false) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long length = 0;
  jpeg_mem_dest(&info, &buffer, &length);
  info.image_width = info.image_height = size;
  info.input_components = static_cast<int>(pixels.size()) / (size * size);
  info.in_color_space = given;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, kept);
  jpeg_set_quality(&info, 100, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  if (!exif.empty()) {
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  for (int row = 0; row < size; ++row) {
    auto* const line = reinterpret_cast<JSAMPROW>(
        const_cast<char*>(pixels.data() + row * size * info.input_components));
    jpeg_write_scanlines(&info, const_cast<JSAMPARRAY>(&line), 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(buffer), length);
  jpeg_destroy_compress(&info);
  free(buffer);
  return bytes;
}

std::string LittleEndian(size_t value, int bytes) {
  std::string text;
  for (; bytes > 0; --bytes, value >>= 8) text += static_cast<char>(value);
  return text;
}

// https://developers.google.com/speed/webp/docs/riff_container
std::string RiffChunk(const std::string& type, const std::string& data) {
  return type + LittleEndian(data.size(), 4) + data + std::string(data.size() % 2, '\0');
}
// chunks: after the image or, of an animation, in place of it.
std::string WebP(int size, const std::string& pixels, char flags, const std::string& chunks) {
  uint8_t* buffer = nullptr;
  const size_t length = WebPEncodeLosslessRGB(reinterpret_cast<const uint8_t*>(pixels.data()), size,
                                              size, 3 * size, &buffer);
  const std::string image(reinterpret_cast<char*>(buffer) + 12, length - 12);
  WebPFree(buffer);
  const std::string side = LittleEndian(size - 1, 3);
  const std::string header = RiffChunk("VP8X", flags + std::string(3, '\0') + side + side);
  const bool animated = flags == 2;
  const std::string frame = std::string(6, '\0') + side + side + LittleEndian(100, 3) + '\0';
  return RiffChunk(
      "RIFF",
      "WEBP" + header + (animated ? chunks + RiffChunk("ANMF", frame + image) : image + chunks));
}

std::string Exif(int orientation, bool big_endian) {
  const std::string value(1, static_cast<char>(orientation));
  using std::string_literals::operator""s;
  return big_endian
             ? "MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"s + value + "\0\0\0\0\0\0"s
             : "II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"s + value + "\0\0\0\0\0\0\0"s;
}

constexpr int kSide = 32;

// Four squares of one colour each: red, green; blue, white.
std::string Squares() {
  std::string pixels;
  for (int i = 0; i < kSide * kSide; ++i) {
    const bool right = i % kSide >= kSide / 2, low = i / kSide >= kSide / 2;
    pixels += low ? (right ? "\xff\xff\xff" : std::string("\0\0\xff", 3))
                  : (right ? std::string("\0\xff\0", 3) : std::string("\xff\0\0", 3));
  }
  return pixels;
}

// The initials of the four colours, line by line.
std::string Colours(const std::string& bytes) {
  const std::string pixels = Decode(bytes, kSide, kSide);
  if (pixels.size() != 3 * kSide * kSide) return pixels;
  std::string names;
  for (const int y : {8, 24}) {
    for (const int x : {8, 24}) {
      const auto bright = [&](int c) {
        return static_cast<unsigned char>(pixels[3 * (kSide * y + x) + c]) > 200;
      };
      names += bright(0) ? (bright(1) ? 'W' : 'B') : (bright(1) ? 'G' : 'R');
    }
  }
  return names;
}

// EXIF 2.32, section 4.6.4: on which sides the first row and the first column are.
TEST(ImageDecoder, EveryOrientationIsUpright) {
  const std::string expected[] = {"RGBW", "GRWB", "WBGR", "BWRG", "RBGW", "BRWG", "WGBR", "GWRB"};
  std::string rows;
  for (int row = 0; row < kSide; ++row) rows += '\0' + Squares().substr(3 * kSide * row, 3 * kSide);
  for (int orientation = 0; orientation <= 9; ++orientation) {
    for (const bool big_endian : {false, true}) {
      SCOPED_TRACE(orientation);
      const std::string colours = expected[orientation % 9 == 0 ? 0 : orientation - 1];
      const std::string exif = Exif(orientation, big_endian);
      EXPECT_EQ(
          Colours(Jpeg(kSide, Squares(), JCS_RGB, JCS_YCbCr, std::string("Exif\0\0", 6) + exif)),
          colours);
      EXPECT_EQ(Colours(Png(kSide, kSide, "\x08\x02", rows, PngChunk("eXIf" + exif))), colours);
      EXPECT_EQ(Colours(WebP(kSide, Squares(), 8, RiffChunk("EXIF", exif))), colours);
    }
  }
  EXPECT_EQ(Colours(Jpeg(kSide, Squares(), JCS_RGB, JCS_YCbCr, Exif(6, true).substr(0, 15))),
            "RGBW");
}

TEST(ImageDecoder, JpegOfGreyAndOfInksBecomesColour) {
  const std::string grey =
      Decode(Jpeg(8, std::string(64, '\x50'), JCS_GRAYSCALE, JCS_GRAYSCALE), 8, 8);
  EXPECT_EQ(grey, std::string(3 * 64, '\x50'));
  std::string inks;  // inverted, as Adobe writes them: little cyan, half the magenta, full yellow
  for (int i = 0; i < 64; ++i) inks += std::string("\xe0\x80\0\xff", 4);
  for (const J_COLOR_SPACE kept : {JCS_CMYK, JCS_YCCK}) {
    const std::string pixels = Decode(Jpeg(8, inks, JCS_CMYK, kept), 8, 8);
    ASSERT_EQ(pixels.size(), 3 * 64);
    EXPECT_NEAR(static_cast<unsigned char>(pixels[0]), 0, 3);
    EXPECT_NEAR(static_cast<unsigned char>(pixels[1]), 0x80, 3);
    EXPECT_NEAR(static_cast<unsigned char>(pixels[2]), 0xe0, 3);
  }
}

TEST(ImageDecoder, PngOfEveryKindBecomesColour) {
  using std::string_literals::operator""s;
  const std::string palette = PngChunk("PLTE\x01\x02\x03\x0a\x0b\x0c"s);
  EXPECT_EQ(Decode(Png(2, 1, "\x08\0"s, "\0\x07\x08"s), 2, 1), "\x07\x07\x07\x08\x08\x08");
  EXPECT_EQ(Decode(Png(2, 1, "\x01\0"s, "\0\x40"s), 2, 1), "\0\0\0\xff\xff\xff"s);
  EXPECT_EQ(Decode(Png(1, 1, "\x10\0"s, "\0\x07\xff"s), 1, 1), "\x07\x07\x07");
  EXPECT_EQ(Decode(Png(1, 1, "\x10\x02", "\0\x01\xff\x02\xff\x03\xff"s), 1, 1), "\x03\x02\x01");
  EXPECT_EQ(Decode(Png(2, 1, "\x08\x03", "\0\x01\0"s, palette), 2, 1), "\x0c\x0b\x0a\x03\x02\x01");
  // Adam7 (PNG specification, section 8): passes 1, 6 and 7 of 2 x 2 pixels.
  EXPECT_EQ(Decode(Png(2, 2, "\x08\0"s, "\0\x01\0\x02\0\x03\x04"s, "", '\x01'), 2, 2),
            "\x01\x01\x01\x02\x02\x02\x03\x03\x03\x04\x04\x04");
}

TEST(ImageDecoder, TransparencyIsOverWhite) {
  using std::string_literals::operator""s;
  const std::string palette = PngChunk("PLTE\x01\x02\x03\x0a\x0b\x0c"s) + PngChunk("tRNS\0"s);
  const std::string white = "\xff\xff\xff";
  EXPECT_EQ(Decode(Png(2, 1, "\x08\x03", "\0\0\x01"s, palette), 2, 1), white + "\x0c\x0b\x0a");
  EXPECT_EQ(Decode(Png(2, 1, "\x08\x04", "\0\x09\0\x09\xff"s), 2, 1), white + "\x09\x09\x09");
  const std::string transparent_grey = PngChunk("tRNS\0\x09"s);
  EXPECT_EQ(Decode(Png(2, 1, "\x08\0"s, "\0\x09\x08"s, transparent_grey), 2, 1),
            white + "\x08\x08\x08");
  // (value x 128 + 255 x 127) / 255, rounded.
  const std::string pixels = "\x01\x02\x03\0\x01\x02\x03\xff\x01\x02\x03\x80\0\0\0\0"s;
  const std::string expected = white + "\x03\x02\x01\x81\x80\x80"s + white;
  EXPECT_EQ(
      Decode(Png(2, 2, "\x08\x06", '\0' + pixels.substr(0, 8) + '\0' + pixels.substr(8)), 2, 2),
      expected);
  uint8_t* buffer = nullptr;
  const size_t length =
      WebPEncodeLosslessRGBA(reinterpret_cast<const uint8_t*>(pixels.data()), 2, 2, 8, &buffer);
  EXPECT_EQ(Decode({reinterpret_cast<char*>(buffer), length}, 2, 2), expected);
  WebPFree(buffer);
}

TEST(ImageDecoder, OfAnAnimationTheFirstFrameIsTaken) {
  const std::string animated = WebP(kSide, Squares(), 2, RiffChunk("ANIM", std::string(6, '\0')));
  EXPECT_EQ(Colours(animated), "RGBW");
  EXPECT_THAT(Refusal(animated.substr(0, animated.size() - 4)),
              FailsWith(kInvalid, "of WebP: dam"));
  const std::string frame = PngChunk("acTL" + BigEndian(2) + BigEndian(0));  // an animated PNG
  EXPECT_EQ(Decode(Png(1, 1, "\x08\x02", std::string("\0\x01\x02\x03", 4), frame), 1, 1),
            "\x03\x02\x01");
}

TEST(ImageDecoder, DamagedImageIsNamedInSilence) {
  const std::string noise = [] {
    std::string pixels;
    for (unsigned i = 0; i < 3 * 64 * 64; ++i)
      pixels += static_cast<char>(i * i * 2654435761u >> 13);
    return pixels;
  }();
  ::testing::internal::CaptureStderr();
  for (const std::string& whole :
       {Jpeg(64, noise, JCS_RGB, JCS_YCbCr), Jpeg(64, noise, JCS_RGB, JCS_YCbCr, "", true),
        RgbPng(64, 64, noise), WebP(64, noise, 0, "")}) {
    EXPECT_THAT(Refusal(whole), IsOk());
    for (const size_t size : {whole.size() / 4, whole.size() / 2, whole.size() - 2}) {
      EXPECT_THAT(Refusal(whole.substr(0, size)),
                  FailsWith(kInvalid, absl::StrCat("image: expected an image that is whole, got ",
                                                   size, " bytes of ")));
    }
  }
  std::string gamma = PngChunk("gAMA" + BigEndian(45455));
  gamma.back() ^= 1;  // a checksum of no consequence
  EXPECT_THAT(Refusal(Png(1, 1, "\x08\x02", std::string("\0abc", 4), gamma)), IsOk());
  std::string damaged = RgbPng(64, 64, noise);
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_THAT(Refusal(damaged), FailsWith(kInvalid, "bytes of PNG: "));
  EXPECT_THAT(Refusal("GIF89a"), FailsWith(kInvalid, "in JPEG, PNG or WebP"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(ImageDecoder, BombIsRefusedBeforeItIsDecoded) {
  rusage before = {};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_THAT(
      Refusal(Png(60'000, 60'000, "\x08\x02", "")),
      FailsWith(kInvalid, "at most 100000000 pixels and 65535 on a side, got 60000 x 60000"));
  std::string wide = Jpeg(8, std::string(64, 'x'), JCS_GRAYSCALE, JCS_GRAYSCALE);
  wide.replace(wide.find("\xff\xc0") + 5, 4, "\xff\xdc\xff\xdc");  // height and width
  EXPECT_THAT(Refusal(wide), FailsWith(kInvalid, "got 65500 x 65500"));
  EXPECT_THAT(Refusal(Png(1, 99'999'999, "\x08\x02", "")),
              FailsWith(kInvalid, "65535 on a side, got 1 x 99999999"));
  // Markers that each took the time of all before them.
  std::string marks = Jpeg(8, std::string(64, 'x'), JCS_GRAYSCALE, JCS_GRAYSCALE);
  std::string many;
  for (int i = 0; i < 300'000; ++i) many += std::string("\xff\xe1\0\x0aExif\0\0", 10) + "MM";
  EXPECT_THAT(Refusal(marks.insert(2, many)), IsOk());
  // The last scan of a progressive image over and over.
  std::string scans = Jpeg(8, std::string(64, 'x'), JCS_GRAYSCALE, JCS_GRAYSCALE, "", true);
  const size_t last = scans.rfind("\xff\xda");
  const std::string scan = scans.substr(last, scans.size() - 2 - last);
  for (int i = 0; i < 200; ++i) scans.insert(last, scan);
  EXPECT_THAT(Refusal(scans), FailsWith(kInvalid, "more than 100 scans"));
  // Texts and profiles of 8 MB each, deflated to 8 KB.
  const std::string text = Deflate(std::string(7'900'000, 'x'));
  std::string chunks = PngChunk(std::string("iCCPx\0\0", 7) + text);
  for (int i = 0; i < 50; ++i) chunks += PngChunk(std::string("zTXtx\0\0", 7) + text);
  EXPECT_EQ(Decode(Png(1, 1, "\x08\x02", std::string("\0\x01\x02\x03", 4), chunks), 1, 1),
            "\x03\x02\x01");
  rusage after = {};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100'000);  // KiB
}

}  // namespace
}  // namespace privatemail
