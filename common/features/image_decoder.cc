#include "common/features/image_decoder.h"

#include <jpeglib.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
// After jpeglib.h:
#include <jerror.h>
#include <png.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <opencv2/imgproc.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/feature_extractor.h"

namespace privatemail {
namespace {

// The scans of a progressive JPEG, each of which takes the time of its pixels; encoders make about
// ten.
constexpr int kMaxScans = 100, kMinScans = 20;
constexpr int64_t kMaxScannedPixels = 400'000'000;

const unsigned char* Data(absl::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

constexpr absl::string_view kExifMark("Exif\0\0", 6);

// 1 to 8, of EXIF data: TIFF 6.0, section 2, tag 0x112. 1, upright, if it does not say.
int OrientationOf(absl::string_view exif) {
  absl::ConsumePrefix(&exif, kExifMark);
  const bool big_endian = absl::StartsWith(exif, "MM");
  if (!big_endian && !absl::StartsWith(exif, "II")) return 1;
  const auto number = [&](size_t at, size_t size) {  // zeros follow the end
    size_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t byte = at + (big_endian ? i : size - 1 - i);
      value = value << 8 | (byte < exif.size() ? static_cast<unsigned char>(exif[byte]) : 0);
    }
    return value;
  };
  const size_t entries = number(4, 4);
  for (size_t i = 0; i < number(entries, 2); ++i) {
    const size_t entry = entries + 2 + 12 * i;
    if (entry >= exif.size()) break;
    if (number(entry, 2) != 0x112) continue;
    const size_t orientation = number(entry + 8, 2);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

void Upright(int orientation, cv::Mat* image) {
  constexpr int kNone = 2, kBoth = -1, kUpsideDown = 0, kMirrored = 1;  // codes of cv::flip
  constexpr int kFlips[] = {kNone, kMirrored, kBoth, kUpsideDown,
                            kNone, kMirrored, kBoth, kUpsideDown};
  if (orientation >= 5) cv::transpose(*image, *image);
  if (const int flip = kFlips[orientation - 1]; flip != kNone) cv::flip(*image, *image, flip);
}

// One file. libjpeg and libpng fail by longjmp, which must not skip a destructor: a method that
// calls setjmp, and what it calls, has no object with one.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // False: error() says why.
  virtual bool ReadHeader(absl::string_view bytes) = 0;
  // Height rows of blue, green, red, and alpha with 4 channels.
  virtual bool ReadPixels(unsigned char* pixels) = 0;

  int64_t width = 0, height = 0;
  int channels = 3;
  int orientation = 1;
  char error[JMSG_LENGTH_MAX] = "damaged";
};

class JpegDecoder final : public Decoder {
 public:
  ~JpegDecoder() override { jpeg_destroy_decompress(&info_); }

  bool ReadHeader(absl::string_view bytes) override {
    if (setjmp(jump_) != 0) return false;
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) {
      auto* self = static_cast<JpegDecoder*>(info->client_data);
      info->err->format_message(info, self->error);
      longjmp(self->jump_, 1);
    };
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0 && IsDamage(info->err->msg_code)) info->err->error_exit(info);
    };
    jpeg_create_decompress(&info_);
    progress_.progress_monitor = [](j_common_ptr info) {
      auto* self = static_cast<JpegDecoder*>(info->client_data);
      const int64_t most = kMaxScannedPixels / std::max<int64_t>(1, self->width * self->height);
      const int scans = static_cast<int>(std::clamp<int64_t>(most, kMinScans, kMaxScans));
      if (self->info_.input_scan_number <= scans) return;
      snprintf(self->error, sizeof(self->error), "more than %d scans", scans);
      longjmp(self->jump_, 1);
    };
    info_.progress = &progress_;
    jpeg_mem_src(&info_, Data(bytes), bytes.size());
    jpeg_set_marker_processor(&info_, JPEG_APP0 + 1, &ReadExif);
    jpeg_read_header(&info_, TRUE);
    width = info_.image_width;
    height = info_.image_height;
    return true;
  }

  bool ReadPixels(unsigned char* pixels) override {
    if (setjmp(jump_) != 0) return false;
    const bool has_black = info_.num_components == 4;
    info_.out_color_space = has_black ? JCS_CMYK : JCS_EXT_BGR;
    jpeg_start_decompress(&info_);
    JSAMPARRAY row = info_.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&info_), JPOOL_IMAGE,
                                             info_.output_width * 4, 1);
    while (info_.output_scanline < info_.output_height) {
      unsigned char* const to = pixels + size_t{3} * info_.output_scanline * info_.output_width;
      jpeg_read_scanlines(&info_, has_black ? row : const_cast<JSAMPARRAY>(&to), 1);
      if (has_black) ToBgr(row[0], info_.output_width, to);
    }
    return jpeg_finish_decompress(&info_) != FALSE;
  }

 private:
  // Other warnings leave the pixels whole.
  static bool IsDamage(int code) {
    return code == JWRN_ARITH_BAD_CODE || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
           code == JWRN_JPEG_EOF || code == JWRN_MUST_RESYNC;
  }

  // Reads the first marker that is EXIF: there may be any number of markers. All bytes are in
  // memory.
  static boolean ReadExif(j_decompress_ptr info) {
    auto* self = static_cast<JpegDecoder*>(info->client_data);
    jpeg_source_mgr& source = *info->src;
    const size_t rest = source.bytes_in_buffer;
    const JOCTET* const at = source.next_input_byte;
    const size_t length = rest < 2 ? 0 : size_t{at[0]} << 8 | at[1];  // with these two bytes
    if (length < 2 || length > rest) ERREXIT(info, JERR_BAD_LENGTH);
    const absl::string_view data(reinterpret_cast<const char*>(at) + 2, length - 2);
    if (!self->has_exif_ && absl::StartsWith(data, kExifMark)) {
      self->has_exif_ = true;
      self->orientation = OrientationOf(data);
    }
    source.next_input_byte += length;
    source.bytes_in_buffer -= length;
    return TRUE;
  }

  // Inverted inks, as Adobe writes them, and as OpenCV reads every file of four components.
  static void ToBgr(const unsigned char* inks, size_t count, unsigned char* bgr) {
    for (; count > 0; --count, inks += 4, bgr += 3) {
      const int black = inks[3];
      for (int ink = 0; ink < 3; ++ink) {
        bgr[2 - ink] = static_cast<unsigned char>(black - ((255 - inks[ink]) * black >> 8));
      }
    }
  }

  jpeg_decompress_struct info_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  bool has_exif_ = false;
  jmp_buf jump_;
};

class PngDecoder final : public Decoder {
 public:
  PngDecoder()
      : png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &Fail, [](auto, auto) {})),
        info_(png_ == nullptr ? nullptr : png_create_info_struct(png_)) {
    if (info_ == nullptr) throw std::bad_alloc();
  }
  ~PngDecoder() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  bool ReadHeader(absl::string_view bytes) override {
    rest_ = bytes;
    if (setjmp(jump_) != 0) return false;
    // Compressed texts and profiles say nothing about pixels and may be bombs.
    constexpr unsigned char kIgnored[] = "iCCP\0iTXt\0sPLT\0tEXt\0zTXt";
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kIgnored, sizeof(kIgnored) / 5);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the caller limits their product
    png_set_read_fn(png_, this, [](png_structp png, png_bytep to, size_t size) {
      absl::string_view& rest = static_cast<PngDecoder*>(png_get_io_ptr(png))->rest_;
      if (size > rest.size()) png_error(png, "it ends early");
      memcpy(to, rest.data(), size);
      rest.remove_prefix(size);
    });
    png_read_info(png_, info_);
    width = png_get_image_width(png_, info_);
    height = png_get_image_height(png_, info_);
    const bool has_alpha = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_ALPHA) != 0;
    if (has_alpha || png_get_valid(png_, info_, PNG_INFO_tRNS) != 0) channels = 4;
    return true;
  }

  bool ReadPixels(unsigned char* pixels) override {
    if (setjmp(jump_) != 0) return false;
    const int colour = png_get_color_type(png_, info_);
    png_set_strip_16(png_);
    if (channels == 4) png_set_tRNS_to_alpha(png_);
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if ((colour & PNG_COLOR_MASK_COLOR) == 0) {
      png_set_expand_gray_1_2_4_to_8(png_);
      png_set_gray_to_rgb(png_);
    }
    png_set_bgr(png_);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    const size_t stride = png_get_rowbytes(png_, info_);
    if (stride != static_cast<size_t>(channels * width)) png_error(png_, "rows of another length");
    for (int pass = 0; pass < passes; ++pass) {
      for (int64_t row = 0; row < height; ++row) {
        png_read_row(png_, pixels + static_cast<size_t>(row) * stride, nullptr);
      }
    }
    png_read_end(png_, info_);
    png_uint_32 size = 0;
    png_bytep exif = nullptr;
    if (png_get_eXIf_1(png_, info_, &size, &exif) != 0) {
      orientation = OrientationOf({reinterpret_cast<char*>(exif), size});
    }
    return true;
  }

 private:
  [[noreturn]] static void Fail(png_structp png, png_const_charp text) {
    auto* self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    snprintf(self->error, sizeof(self->error), "%s", text);
    longjmp(self->jump_, 1);
  }

  jmp_buf jump_;
  absl::string_view rest_;
  png_structp png_;
  png_infop info_;
};

class WebPDecoder final : public Decoder {
 public:
  bool ReadHeader(absl::string_view bytes) override {
    const WebPData data = {Data(bytes), bytes.size()};
    const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> parts(WebPDemux(&data),
                                                                         &WebPDemuxDelete);
    if (parts == nullptr) return false;
    WebPIterator frame = {};
    if (WebPDemuxGetFrame(parts.get(), 1, &frame) == 0 || frame.complete == 0) return false;
    width = WebPDemuxGetI(parts.get(), WEBP_FF_CANVAS_WIDTH);
    height = WebPDemuxGetI(parts.get(), WEBP_FF_CANVAS_HEIGHT);
    if (WebPChunkIterator exif; WebPDemuxGetChunk(parts.get(), "EXIF", 1, &exif) != 0) {
      orientation =
          OrientationOf({reinterpret_cast<const char*>(exif.chunk.bytes), exif.chunk.size});
      WebPDemuxReleaseChunkIterator(&exif);
    }
    // The bytes of the frame are those of the file.
    frame_ = frame.fragment;
    left_ = frame.x_offset;
    top_ = frame.y_offset;
    const bool fills = frame.width == width && frame.height == height;
    channels = frame.has_alpha != 0 || !fills ? 4 : 3;
    WebPDemuxReleaseIterator(&frame);
    return true;
  }

  bool ReadPixels(unsigned char* pixels) override {
    const int64_t stride = channels * width;
    const int64_t bytes = stride * height, first = top_ * stride + left_ * channels;
    if (channels == 4) memset(pixels, 0, static_cast<size_t>(bytes));  // transparent
    const auto decode = channels == 4 ? &WebPDecodeBGRAInto : &WebPDecodeBGRInto;
    return decode(frame_.bytes, frame_.size, pixels + first, static_cast<size_t>(bytes - first),
                  static_cast<int>(stride)) != nullptr;
  }

 private:
  WebPData frame_ = {};  // the first one of an animation, at a place of its canvas
  int64_t left_ = 0, top_ = 0;
};

// Composites an image with alpha over white, as a page shows it.
cv::Mat OverWhite(const cv::Mat& image) {
  cv::Mat result(image.rows, image.cols, CV_8UC3);
  for (int row = 0; row < image.rows; ++row) {
    const unsigned char* from = image.ptr(row);
    unsigned char* to = result.ptr(row);
    for (int column = 0; column < image.cols; ++column, from += 4, to += 3) {
      const int alpha = from[3];
      for (int channel = 0; channel < 3; ++channel) {
        to[channel] =
            static_cast<unsigned char>((from[channel] * alpha + 255 * (255 - alpha) + 127) / 255);
      }
    }
  }
  return result;
}

absl::StatusOr<cv::Mat> Decode(const std::string& path, absl::string_view format,
                               absl::string_view bytes, Decoder& decoder, cv::Size size,
                               int interpolation) {
  const auto damaged = [&] {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected an image that is whole, got ",
                                                   bytes.size(), " bytes of ", format, ": ",
                                                   decoder.error));
  };
  if (!decoder.ReadHeader(bytes)) return damaged();
  if (decoder.width > kMaxImagePixels / decoder.height ||
      std::max(decoder.width, decoder.height) > kMaxImageSide) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected an image of at most ", kMaxImagePixels, " pixels and ",
                     kMaxImageSide, " on a side, got ", decoder.width, " x ", decoder.height));
  }
  static std::mutex large_images;
  std::unique_lock lock(large_images, std::defer_lock);
  if (decoder.width * decoder.height > kMaxConcurrentPixels) lock.lock();
  cv::Mat image(static_cast<int>(decoder.height), static_cast<int>(decoder.width),
                CV_8UC(decoder.channels));
  if (!decoder.ReadPixels(image.data)) return damaged();
  if (decoder.channels == 4) image = OverWhite(image);
  Upright(decoder.orientation, &image);
  cv::Mat stretched;
  cv::resize(image, stretched, size, 0, 0, interpolation);
  return stretched;
}

}  // namespace

absl::StatusOr<Eigen::RowVectorXf> FeatureExtractor::Extract(const std::string& image_path) {
  PM_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(image_path, kMaxImageBytes));
  return ExtractBytes(image_path, bytes);
}

absl::Status CheckImage(const std::string& image_path) {
  PM_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(image_path, kMaxImageBytes));
  return DecodeImage(image_path, bytes, cv::Size(1, 1), cv::INTER_NEAREST).status();
}

absl::StatusOr<cv::Mat> DecodeImage(const std::string& path, absl::string_view bytes, cv::Size size,
                                    int interpolation) {
  return CatchOpenCv(path, "cannot be decoded", [&]() -> absl::StatusOr<cv::Mat> {
    const auto decode = [&](absl::string_view format, Decoder&& decoder) {
      return Decode(path, format, bytes, decoder, size, interpolation);
    };
    if (absl::StartsWith(bytes, "\xff\xd8\xff")) return decode("JPEG", JpegDecoder());
    if (absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n")) return decode("PNG", PngDecoder());
    if (absl::StartsWith(bytes, "RIFF") && absl::StartsWith(bytes.substr(8), "WEBP")) {
      return decode("WebP", WebPDecoder());
    }
    return absl::InvalidArgumentError(absl::StrCat(path,
                                                   ": expected an image in JPEG, PNG or WebP, got ",
                                                   bytes.size(), " bytes of another format"));
  });
}

absl::Status OpenCvError(const std::string& path, absl::string_view purpose, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", purpose, ": ", Printable(absl::StripAsciiWhitespace(message))));
}

absl::StatusOr<Eigen::RowVectorXf> ValidateFeature(const std::string& path,
                                                   Eigen::RowVectorXf feature) {
  PM_RETURN_IF_ERROR(
      CheckUnitScalable(absl::StrCat(path, ": feature"), feature.data(), feature.size()));
  return feature;
}

}  // namespace privatemail
