// Waits for a collection that is being built.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_READINESS_H_
#define PRIVATEMAIL_CLIENT_SEARCH_READINESS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// Waits until no build runs and the cells are prepared and measured; shows twice a second what it
// waits for. Returns the collection.
// FAILED_PRECONDITION: it is not built, or its cells could not be prepared. CANCELLED.
absl::StatusOr<v1::GetCollectionResponse> WaitUntilReady(
    const Transport& transport, const std::string& collection,
    const std::function<void(const std::string& awaited)>& show);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_READINESS_H_
