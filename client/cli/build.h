// Building, for those who do it after something else.
#ifndef PRIVATEMAIL_CLIENT_CLI_BUILD_H_
#define PRIVATEMAIL_CLIENT_CLI_BUILD_H_

#include <string>

#include "absl/status/statusor.h"
#include "privatemail/transport.h"

namespace privatemail::client::cli {

// Builds the collection behind a progress bar. Statuses as Transport::BuildEmbedding.
absl::StatusOr<v1::BuildEmbeddingResponse> BuildWithProgress(const Transport& transport,
                                                             const std::string& name);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_BUILD_H_
