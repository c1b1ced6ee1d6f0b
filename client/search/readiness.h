// Waits for a collection that is being built.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_READINESS_H_
#define PRIVATEMAIL_CLIENT_SEARCH_READINESS_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// A part of a collection that is not ready yet.
struct Awaited {
  std::string what;             // "the cells"
  std::optional<double> share;  // of the work that is done; the daemon may not know it
};

// Waits until no build runs and the cells are prepared and measured; shows twice a second what it
// waits for. Returns the collection.
// FAILED_PRECONDITION: it is not built, or its cells could not be prepared. CANCELLED.
absl::StatusOr<v1::GetCollectionResponse> WaitUntilReady(
    const Transport& transport, const std::string& collection,
    const std::function<void(const Awaited& awaited)>& show);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_READINESS_H_
