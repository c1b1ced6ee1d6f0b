// A simulated full disk under this process.
#ifndef PRIVATEMAIL_TESTS_TESTING_FULL_DISK_H_
#define PRIVATEMAIL_TESTS_TESTING_FULL_DISK_H_

#include <sys/resource.h>

#include <csignal>

namespace privatemail {

// Limits the files that this process writes to `bytes` bytes.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : former_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &former_);
    const rlimit limit = {bytes, former_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &former_);
    std::signal(SIGXFSZ, former_handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit former_ = {};
  void (*former_handler_)(int);
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_FULL_DISK_H_
