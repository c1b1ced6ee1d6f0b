// Names of the public settings on the command line.
#ifndef PRIVATEMAIL_CLIENT_CLI_NAMES_H_
#define PRIVATEMAIL_CLIENT_CLI_NAMES_H_

#include <map>
#include <string>

#include "common/numerics/smlq.h"

namespace privatemail::cli {

inline const std::map<std::string, KernelConvention> kKernelNames = {
    {"two_sigma_squared", KernelConvention::kTwoSigmaSquared},
    {"sigma", KernelConvention::kSigma},
    {"sigma_squared", KernelConvention::kSigmaSquared}};

inline const std::map<std::string, LabelGraphKind> kLabelGraphNames = {
    {"distance", LabelGraphKind::kDistance},
    {"kernel", LabelGraphKind::kKernel},
    {"one_hot_kernel", LabelGraphKind::kOneHotKernel}};

}  // namespace privatemail::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_NAMES_H_
