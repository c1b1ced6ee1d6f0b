/* Private search by the scheme `encrypted` for programs that bring their own transport: phones,
 * browsers, any language that calls C. The server learns nothing of a target (PRIVACY.md, section
 * 9).
 *
 * 1. privatemail_session_new("fruit", NULL, &session)
 * 2. privatemail_search_new(session, &query, &search)
 * 3. privatemail_search_next(search, 0, &call) gives one request at a time. Send call.request to
 *    call.method, and give each message of the response to
 *    privatemail_search_take(search, message, size). Repeat until call.method is null.
 * 4. privatemail_search_match(search, 0, rank, &match) decrypts and ranks, until match.id is null.
 *
 * Rules that the caller keeps, because the secrecy of targets depends on them:
 * - Send exactly the bytes that `next` returns, all of them, in order, and nothing else. Number,
 *   order and sizes of the calls do not depend on the targets.
 * - Send nothing that depends on a match: no fetch of its picture, no report of its score. The next
 *   search begins at a multiple of interval_ms after the arrival of the last answer, so that its
 *   time does not tell how long ranking took.
 *
 * Every function but the two `free` returns null on success, otherwise an error: a text of UTF-8
 * that begins with its code, "DATA_LOSS: block 3 of the row table ...". Codes: INVALID_ARGUMENT,
 * FAILED_PRECONDITION (the collection, or a forked process), DATA_LOSS (the server's answer),
 * RESOURCE_EXHAUSTED (max_memory_bytes), UNAVAILABLE (random bits, evaluation keys). After an error
 * of next, take or match the search has failed: they return the same error; another search may
 * begin. Errors and all that other functions point to belong to the library and stay valid until
 * the next call with the same session or search. A session and its searches are used by one thread
 * at a time. No function throws or ends the process. */
#ifndef PRIVATEMAIL_ENCRYPTED_H_
#define PRIVATEMAIL_ENCRYPTED_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PRIVATEMAIL_API __attribute__((visibility("default")))
#else
#define PRIVATEMAIL_API
#endif

/* The secret keys for searches of one collection at one server, and its row table. Private: the
 * secrets stay in memory, are wiped, and are refused in a forked process. */
typedef struct privatemail_session privatemail_session;
/* One search. Private. */
typedef struct privatemail_search privatemail_search;

typedef const char* privatemail_error;

typedef struct {
  /* Fills `bytes` with independent uniform bits from a cryptographically secure generator. Not 0:
   * it failed, and the search fails. Null: the system's generator, getentropy. */
  int (*fill_random)(void* context, uint8_t* bytes, size_t size);
  void* context;             /* for fill_random */
  uint64_t max_memory_bytes; /* that answers may take; 0: 1 GiB, 256 MiB with 32-bit addresses */
} privatemail_options;

typedef enum {
  PRIVATEMAIL_COSINE = 1,
  PRIVATEMAIL_DOT = 2,
  PRIVATEMAIL_EUCLIDEAN = 3
} privatemail_metric;

/* What the server says of the collection. Public, unproven. */
typedef struct {
  const char* uuid;      /* a new one if the collection was deleted and created again */
  const char* extractor; /* how pictures become vectors; "vectors" if the operator supplies them */
  uint32_t dimensions;   /* of a target */
  uint32_t metric;       /* privatemail_metric */
  uint32_t delta;        /* dimensions of a ciphertext */
  uint64_t rows;
  /* Of the last answer; 0 before it. root_digest names its row table: SHA-256, the same for every
   * searcher who asks for payloads, and for all who do not. */
  uint64_t items, items_version;
  uint8_t root_digest[32];
} privatemail_collection;

typedef struct {
  const float* targets; /* count x dimensions, row by row; private */
  size_t count, dimensions;
  int64_t k;             /* matches of each target, 1 to 10,000 */
  int with_payloads;     /* not 0: fetch the payloads of all items */
  const int32_t* labels; /* of the items that may match each target, which the server does not see;
                            null: any */
} privatemail_query;

typedef struct {
  /* "/privatemail.v1.EncryptedService/SearchEncrypted"; null: all is answered */
  const char* method;
  const uint8_t* request; /* a serialised message of that method */
  size_t request_size;
  int64_t interval_ms; /* the next search leaves at a multiple of it after the last answer */
} privatemail_call;

typedef struct {
  const uint8_t* content; /* null: no block of this index */
  size_t size;
  const uint8_t* digest; /* SHA-256 of the content, 32 bytes */
} privatemail_block;

typedef struct {
  const char* id; /* ends with a 0 byte; null: there are no more matches */
  size_t id_size;
  const char* payload; /* JSON; empty without payloads */
  size_t payload_size;
  double similarity; /* cosine, or the inner product; rounded */
  double squared_distance;
  int32_t label;
  int has_label;
} privatemail_match;

/* options may be null. */
PRIVATEMAIL_API privatemail_error privatemail_session_new(const char* collection,
                                                          const privatemail_options* options,
                                                          privatemail_session** session);
/* Wipes the keys. Searches of the session remain valid. session may be null. */
PRIVATEMAIL_API void privatemail_session_free(privatemail_session* session);

/* Once the first response of a search was taken, and from then on. */
PRIVATEMAIL_API privatemail_error privatemail_session_describe(privatemail_session* session,
                                                               privatemail_collection* collection);

/* The row table's blocks (payloads: 0) or those of its payloads (1), to keep them beyond the
 * session: file them by server and uuid, readable by this user alone, since they tell when it last
 * searched. Blocks that are kept no longer are out of date. */
PRIVATEMAIL_API privatemail_error privatemail_session_get_block(privatemail_session* session,
                                                                int payloads, size_t index,
                                                                privatemail_block* block);
/* Gives such a block back, between the first response of the session's first search and the second
 * request. The server then sends changed blocks only. A block that is damaged is never used. */
PRIVATEMAIL_API privatemail_error privatemail_session_add_block(privatemail_session* session,
                                                                int payloads,
                                                                const uint8_t* content,
                                                                size_t size);

/* Copies the query. */
PRIVATEMAIL_API privatemail_error privatemail_search_new(privatemail_session* session,
                                                         const privatemail_query* query,
                                                         privatemail_search** search);
/* The next request. Call it when the last response has ended. again: not 0 if that call failed on
 * its way and is to be repeated: returns the same bytes, and forgets what was taken of its
 * response. */
PRIVATEMAIL_API privatemail_error privatemail_search_next(privatemail_search* search, int again,
                                                          privatemail_call* call);
/* Takes a message of the response. It may be freed afterwards. */
PRIVATEMAIL_API privatemail_error privatemail_search_take(privatemail_search* search,
                                                          const uint8_t* message, size_t size);
/* The match of this rank, nearest first from 0, of a target. Only when next returned a null method.
 * The first call for a target decrypts and ranks. */
PRIVATEMAIL_API privatemail_error privatemail_search_match(privatemail_search* search,
                                                           size_t target, size_t rank,
                                                           privatemail_match* match);
/* search may be null. */
PRIVATEMAIL_API void privatemail_search_free(privatemail_search* search);

#ifdef __cplusplus
}
#endif

#endif /* PRIVATEMAIL_ENCRYPTED_H_ */
