// A whole embedding of a synthetic gallery in memory (T = 5, s = 6, 1,000 anchors, 100 classes).
//
// usage: embed_benchmark ITEMS DIM
//
// Prints time and peak memory relative to the features, each with its target.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include "server/engine/embed.h"
#include "tests/benchmarks/verdict.h"

namespace privatemail::server {
namespace {

constexpr char kUuid[] = "4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5";
constexpr int kAnchors = 1000;
constexpr int kClasses = 100;
constexpr double kTargetSeconds = 60;
constexpr double kTargetMemory = 1.3;

FloatMatrix Rows(Eigen::Index n, Eigen::Index d) {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  return FloatMatrix::NullaryExpr(n, d, [&] { return normal(bits); });
}

Gallery MakeGallery(int items, int dim) {
  Gallery gallery;
  gallery.features = Rows(items, dim);
  gallery.ids.reserve(static_cast<size_t>(items));
  gallery.labels.reserve(static_cast<size_t>(items));
  for (int i = 0; i < items; ++i) {
    gallery.ids.push_back(absl::StrCat(10000000 + i));
    gallery.labels.push_back(i % kClasses);
  }
  gallery.payloads.resize(static_cast<size_t>(items));
  return gallery;
}

int Main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int items = std::atoi(argv[1]), dim = std::atoi(argv[2]);
  Anchors anchors{Rows(kAnchors, dim), {}};
  for (int i = 0; i < kAnchors; ++i) anchors.labels.push_back(i % kClasses);
  const auto parameters = MakePublicParameters(kUuid, EmbeddingSettings{}, anchors, {}, "vectors");
  Gallery gallery = MakeGallery(items, dim);
  const double feature_bytes = 4. * items * dim;

  const auto start = std::chrono::steady_clock::now();
  const auto embedded = Embed(*parameters, anchors, std::move(gallery), nullptr);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!embedded.ok()) {
    std::fprintf(stderr, "%s\n", embedded.status().ToString().c_str());
    return 1;
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const double memory = static_cast<double>(usage.ru_maxrss) * 1024 / feature_bytes;
  std::printf("embedding job, n %d, d %d, k 2, T 5, s 6; %s\n", items, dim, embedded->plan.c_str());
  std::printf("time %.1f s, target %.0f s: %s\n", took.count(), kTargetSeconds,
              Verdict(took.count() < kTargetSeconds));
  std::printf("peak memory %.2f times the features, target %.1f: %s\n", memory, kTargetMemory,
              Verdict(memory < kTargetMemory));
  return 0;
}

}  // namespace
}  // namespace privatemail::server

int main(int argc, char** argv) { return privatemail::server::Main(argc, argv); }
