// What a release promises, as a value that carries its source.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_GUARANTEE_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_GUARANTEE_H_

#include <string>

namespace privatemail {

struct Guarantee {
  double epsilon = 0;
  double delta = 0;
  std::string neighbours;  // which two inputs are hard to tell apart
  bool proven = false;     // false: follows a printed formula that is not proven
  std::string source;      // theorem or section that says so
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_GUARANTEE_H_
