// A stand-in for Abseil's function_ref.h; see ../status/status.h.
#ifndef PRIVATEMAIL_STANDALONE_ABSL_FUNCTIONAL_FUNCTION_REF_H_
#define PRIVATEMAIL_STANDALONE_ABSL_FUNCTIONAL_FUNCTION_REF_H_

#include <functional>

namespace absl {
template <typename Signature>
using FunctionRef = std::function<Signature>;
}  // namespace absl

#endif  // PRIVATEMAIL_STANDALONE_ABSL_FUNCTIONAL_FUNCTION_REF_H_
