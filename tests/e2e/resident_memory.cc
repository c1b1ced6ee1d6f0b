#include "tests/e2e/resident_memory.h"

#include <fstream>
#include <string>

namespace privatemail::e2e {

void ResidentMemory::Sample() {
  std::ifstream status("/proc/" + std::to_string(process_) + "/status");
  double kibibytes = 0;
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> kibibytes;
  }
  samples_.push_back(kibibytes / 1024);
}

double ResidentMemory::SecondHalfGrowth() const {
  const size_t count = samples_.size() - samples_.size() / 2;
  if (samples_.size() < 4) return 0;
  const double* const half = samples_.data() + samples_.size() / 2;
  const double middle = static_cast<double>(count - 1) / 2;
  double mean = 0, products = 0, squares = 0;
  for (size_t i = 0; i < count; ++i) {
    const double time = static_cast<double>(i) - middle;
    mean += half[i] / static_cast<double>(count);
    products += time * half[i];
    squares += time * time;
  }
  const double slope = products / squares;
  return 2 * middle * slope / (mean - middle * slope);
}

}  // namespace privatemail::e2e
