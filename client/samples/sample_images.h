// Sample pictures: painted birds of invented species, to try the service on without data of one's
// own.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_SAMPLE_IMAGES_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_SAMPLE_IMAGES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace privatemail::client {

struct SampleImageOptions {
  std::string out_dir;  // made if it is not there; must be empty if it is
  int classes = 24;     // species, 2..200; more species look more alike
  int per_class = 60;   // pictures of each, 1..1000
  uint64_t seed = 7;    // other seeds invent other species
  int size = 192;       // pixels, 64..1024; time grows with its square
};

// Writes classes * per_class square PNG pictures as out_dir/amber-heron/000.png, one folder a
// species; deterministic for one version of OpenCV. `progress`, if not empty, is called after every
// picture. INVALID_ARGUMENT: an option out of range (message: its name), or out_dir is a file or
// not empty. PERMISSION_DENIED: a folder or a picture cannot be written.
absl::Status WriteSampleImages(const SampleImageOptions& options,
                               const std::function<void(int done, int total)>& progress);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SAMPLES_SAMPLE_IMAGES_H_
