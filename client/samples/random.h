// Reproducible variety for pictures: the same numbers on every machine and with every standard
// library, which leaves distributions to the implementation. Not for privacy noise.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_RANDOM_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_RANDOM_H_

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace privatemail::client::samples {

// A stream of draws. Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  // A stream of its own for a part of the work, so that parts do not shift each other.
  Random(uint64_t seed, uint64_t part, uint64_t piece)
      : bits_(Stir(Stir(Stir(seed) + part) + piece)) {}

  // In [low, high).
  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(static_cast<double>(bits_() >> 11) * 0x1p-53);
  }

  // 0 .. count - 1.
  int Index(int count) {
    return static_cast<int>(Uniform(0, 1) * static_cast<float>(count)) % count;
  }

  bool Chance(float probability) { return Uniform(0, 1) < probability; }

  // Bell-shaped (a sum of four uniforms): mean 0, standard deviation `spread`, within 3.5 of them.
  float Bell(float spread) {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += Uniform(-1, 1);
    return sum * spread * .8660254f;  // the sum has variance 4/3
  }

  template <typename T>
  const T& Pick(const std::vector<T>& choices) {
    return choices[Index(static_cast<int>(choices.size()))];
  }

  template <typename T>
  void Shuffle(std::vector<T>* items) {
    for (int i = static_cast<int>(items->size()) - 1; i > 0; --i) {
      std::swap((*items)[i], (*items)[Index(i + 1)]);
    }
  }

 private:
  // The finalizer of SplitMix64 (Steele, Lea, Flood 2014): near seeds give unrelated streams.
  static uint64_t Stir(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  std::mt19937_64 bits_;
};

}  // namespace privatemail::client::samples

#endif  // PRIVATEMAIL_CLIENT_SAMPLES_RANDOM_H_
