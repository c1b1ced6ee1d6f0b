// A folder of one test, removed with its content when the test ends.
#ifndef PRIVATEMAIL_TESTS_UNIT_FEATURES_TEMPORARY_FOLDER_H_
#define PRIVATEMAIL_TESTS_UNIT_FEATURES_TEMPORARY_FOLDER_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace privatemail {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) /
            (std::string(test->name()) + "." + std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name = "") const { return (path_ / name).string(); }

  // Writes a file, making the folders above it; returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

// A picture of one colour as binary PPM: a format simple enough to be written by hand.
inline std::string PpmOfOneColour(int width, int height, unsigned char red, unsigned char green,
                                  unsigned char blue) {
  std::string bytes = "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n";
  for (int i = 0; i < width * height; ++i) {
    for (const unsigned char value : {red, green, blue}) bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_UNIT_FEATURES_TEMPORARY_FOLDER_H_
