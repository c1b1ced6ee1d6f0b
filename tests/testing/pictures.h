// PNG files, written without a library for images.
#ifndef PRIVATEMAIL_TESTS_TESTING_PICTURES_H_
#define PRIVATEMAIL_TESTS_TESTING_PICTURES_H_

#include <zlib.h>

#include <string>

namespace privatemail {

inline std::string BigEndian(size_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string Deflate(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string result(size, '\0');
  compress(reinterpret_cast<Bytef*>(result.data()), &size,
           reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  return result.substr(0, size);
}

inline std::string PngChunk(const std::string& type_and_data) {
  return BigEndian(type_and_data.size() - 4) + type_and_data +
         BigEndian(crc32(0, reinterpret_cast<const Bytef*>(type_and_data.data()),
                         static_cast<uInt>(type_and_data.size())));
}

// PNG specification, section 11. format: bit depth and colour type. rows: each begins with a byte
// 0. chunks: before the pixels. interlace: 0, or 1 for Adam7.
inline std::string Png(size_t width, size_t height, const std::string& format,
                       const std::string& rows, const std::string& chunks = "",
                       char interlace = '\0') {
  return "\x89PNG\r\n\x1a\n" +
         PngChunk("IHDR" + BigEndian(width) + BigEndian(height) + format + std::string(2, '\0') +
                  interlace) +
         chunks + PngChunk("IDAT" + Deflate(rows)) + PngChunk("IEND");
}

// pixels: 3 bytes each.
inline std::string RgbPng(size_t width, size_t height, const std::string& pixels) {
  std::string rows;
  for (size_t row = 0; row < height; ++row) {
    rows += '\0' + pixels.substr(3 * width * row, 3 * width);
  }
  return Png(width, height, "\x08\x02", rows);
}

inline std::string PngOfOneColour(size_t width, size_t height, unsigned char red,
                                  unsigned char green, unsigned char blue) {
  std::string pixels;
  for (size_t i = 0; i < width * height; ++i) {
    for (const unsigned char value : {red, green, blue}) pixels += static_cast<char>(value);
  }
  return RgbPng(width, height, pixels);
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_PICTURES_H_
