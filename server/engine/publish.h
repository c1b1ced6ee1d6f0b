// From what a store holds to what answers, and what is said of names. For the parts of Catalog.
#ifndef PRIVATEMAIL_SERVER_ENGINE_PUBLISH_H_
#define PRIVATEMAIL_SERVER_ENGINE_PUBLISH_H_

#include <memory>

#include "server/engine/catalog.h"

namespace privatemail {

std::shared_ptr<const PublishedCollection> Publish(StoredCollection collection);
std::shared_ptr<const Retriever> MakeRetriever(const PublishedCollection& published,
                                               Embedding embedding, const IndexOptions& index);

// INVALID_ARGUMENT: it cannot be a collection's.
absl::Status CheckName(absl::string_view name);
// NOT_FOUND.
absl::Status NoSuchCollection(absl::string_view name);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_ENGINE_PUBLISH_H_
