// Everything that an evaluation tells.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_REPORT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "client/evaluation/figure.h"

namespace privatemail::client {

struct Report {
  std::string title;
  // What was measured, in the order in which it is told: {"gallery", "5,000 x 128, 100 classes"}.
  // Nothing about the machine, so that the same seeds give the same files.
  std::vector<std::pair<std::string, std::string>> about;
  // What it takes to get these figures again: {"alpha", "0.6"}.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<Figure> figures;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_REPORT_H_
