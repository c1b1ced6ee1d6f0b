// Fuzzes the readers of vector, label and image files. The first byte chooses the format.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "common/features/feature_extractor.h"
#include "common/features/vector_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::array kNames = {"a.npy", "a.fvecs", "a.ivecs", "a.csv", "a.txt", "a.npz", "a.png"};
  if (size == 0) return 0;
  const absl::string_view name = kNames[data[0] % kNames.size()];
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (name == "a.png") {
    static const auto extractor = privatemail::MakeBuiltInExtractor().value();
    (void)extractor->ExtractBytes("a.png", bytes);
  }
  // Accepted files have at least one value and no more values than bytes, but for deflated ones.
  if (const auto file = privatemail::VectorFile::Parse(name, bytes); file.ok()) {
    const auto values = file->All().size();
    if (values < 1 || (name != "a.npz" && static_cast<size_t>(values) > size)) std::abort();
  }
  if (const auto labels = privatemail::ParseLabels(name, bytes); labels.ok()) {
    if (labels->size() == 0 || (name != "a.npz" && labels->size() > size)) std::abort();
  }
  return 0;
}
