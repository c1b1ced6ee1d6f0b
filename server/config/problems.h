// What is wrong with a configuration, told at once rather than one at a time.
#ifndef PRIVATEMAIL_SERVER_CONFIG_PROBLEMS_H_
#define PRIVATEMAIL_SERVER_CONFIG_PROBLEMS_H_

#include <vector>

#include "absl/status/status.h"

namespace privatemail::server {

class Problems {
 public:
  // Keeps it unless it is OK.
  void Add(const absl::Status& status);
  void Add(const Problems& others);

  const std::vector<absl::Status>& all() const { return all_; }

  // OK when there is none; otherwise the first one's code and every message, with "; " between.
  absl::Status status() const;

 private:
  std::vector<absl::Status> all_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONFIG_PROBLEMS_H_
