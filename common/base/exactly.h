// Numbers in words that must not say less than they are.
#ifndef PRIVATEMAIL_COMMON_BASE_EXACTLY_H_
#define PRIVATEMAIL_COMMON_BASE_EXACTLY_H_

#include <string>

namespace privatemail {

// "0.1", "3.7306316348144531": the shortest text that reads back as the same number, as JSON has
// it. Fewer digits may be less noise, or less of a radius, than was computed.
std::string Exactly(double number);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_EXACTLY_H_
