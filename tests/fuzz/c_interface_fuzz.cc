// Fuzzes what the C interface reads of a server: descriptions, answers and kept blocks. Each is
// preceded by two bytes of its size.
#include <cstddef>
#include <cstdint>

#include "client/c/privatemail_encrypted.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  privatemail_options options = {};
  options.fill_random = [](void*, uint8_t* bytes, size_t count) -> int {
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 37);
    return 0;
  };
  options.max_memory_bytes = 1 << 20;
  privatemail_session* session = nullptr;
  privatemail_search* search = nullptr;
  if (privatemail_session_new("a", &options, &session) != nullptr) return 0;
  const float target[2] = {1, 2};
  privatemail_query query = {};
  query.targets = target;
  query.count = 1;
  query.dimensions = 2;
  query.k = 3;
  query.with_payloads = size % 2 == 0 ? 1 : 0;
  if (privatemail_search_new(session, &query, &search) == nullptr) {
    privatemail_call call = {};
    privatemail_match match = {};
    bool ok = privatemail_search_next(search, 0, &call) == nullptr;
    for (int calls = 0; ok && call.method != nullptr && calls < 8; ++calls) {
      while (ok && size >= 2) {
        const size_t given = static_cast<size_t>(data[0]) << 8 | data[1];
        data += 2;
        size -= 2;
        const size_t bytes = given < size ? given : size;
        if (calls == 1) privatemail_session_add_block(session, query.with_payloads, data, bytes);
        ok = privatemail_search_take(search, data, bytes) == nullptr;
        data += bytes;
        size -= bytes;
        if (calls == 0) break;
      }
      ok = ok && privatemail_search_next(search, calls == 2 ? 1 : 0, &call) == nullptr;
    }
    if (ok && call.method == nullptr) privatemail_search_match(search, 0, 0, &match);
  }
  privatemail_search_free(search);
  privatemail_session_free(session);
  return 0;
}
