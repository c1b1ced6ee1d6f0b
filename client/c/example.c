/* A private search in C11 with the library alone: asks a daemon's http_listen (docs/api.md) for the items nearest to
 * a vector. The transport is the caller's, here the program curl; a phone has its own.
 *   cc -std=c11 example.c -lprivatemail_encrypted -o example
 *   example URL KEY_FILE COLLECTION K < values, separated by blanks */
#define _POSIX_C_SOURCE 200809L
#include <privatemail_encrypted.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char* what) {
  fprintf(stderr, "example: %s\n", what);
  exit(1);
}

static void check(privatemail_error error) {
  if (error != NULL) fail(error);
}

static uint8_t* read_all(FILE* file, size_t* size) {
  uint8_t* bytes = NULL;
  size_t held = 0;
  *size = 0;
  do {
    if (*size == held && (bytes = realloc(bytes, held = 2 * held + 4096)) == NULL) fail("no memory");
    *size += fread(bytes + *size, 1, held - *size, file);
  } while (!feof(file) && !ferror(file));
  return bytes;
}

/* Posts a request by the Connect protocol and gives its answer to the search. A stream has 5 bytes before each message:
 * flags (2 in the last one, whose JSON names an error) and the size, highest byte first. */
static void send_call(privatemail_search* search, const char* url, const char* key_file, const privatemail_call* call) {
  const int is_stream = strstr(call->method, "SearchEncrypted") != NULL;
  char name[] = "/tmp/privatemail.XXXXXX";
  FILE* body = fdopen(mkstemp(name), "wb");
  const size_t n = call->request_size;
  const uint8_t head[5] = {0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
  if (body == NULL) fail("no temporary file");
  if (is_stream) fwrite(head, 1, sizeof(head), body);
  fwrite(call->request, 1, n, body);
  fclose(body);
  char command[1024];
  snprintf(command, sizeof(command),
           "printf 'Authorization: Bearer %%s' \"$(cat '%s')\" | curl -sS --fail-with-body --max-time 30 -H @- "
           "-H 'Content-Type: application/%sproto' --data-binary @%s '%s%s'",
           key_file, is_stream ? "connect+" : "", name, url, call->method);
  FILE* answer = popen(command, "r");
  size_t size = 0;
  uint8_t* bytes = read_all(answer, &size);
  const int failed = pclose(answer);
  unlink(name);
  if (failed) {
    fprintf(stderr, "%.*s\n", (int)size, (const char*)bytes);
    fail("the call failed");
  }
  if (!is_stream) check(privatemail_search_take(search, bytes, size));
  for (size_t at = 0; is_stream && at + 5 <= size;) {
    const uint8_t* envelope = bytes + at;
    const size_t length = (size_t)envelope[1] << 24 | envelope[2] << 16 | envelope[3] << 8 | envelope[4];
    if (length > size - at - 5) fail("the answer ended early");
    if (envelope[0] == 0) check(privatemail_search_take(search, envelope + 5, length));
    if (envelope[0] == 2 && length > 2) {
      fprintf(stderr, "%.*s\n", (int)length, (const char*)envelope + 5);
      fail("the server refused the call");
    }
    at += 5 + length;
  }
  free(bytes);
}

int main(int count, char** arguments) {
  if (count != 5) fail("usage: example URL KEY_FILE COLLECTION K < VALUES");
  float values[16384];
  size_t dimensions = 0;
  while (dimensions < 16384 && scanf("%f", &values[dimensions]) == 1) ++dimensions;

  privatemail_session* session;
  privatemail_search* search;
  check(privatemail_session_new(arguments[3], NULL, &session));
  const privatemail_query query = {.targets = values, .count = 1, .dimensions = dimensions, .k = atoi(arguments[4])};
  check(privatemail_search_new(session, &query, &search));
  for (;;) {
    privatemail_call call;
    check(privatemail_search_next(search, 0, &call));
    if (call.method == NULL) break;
    send_call(search, arguments[1], arguments[2], &call);
  }
  for (size_t rank = 0;; ++rank) {
    privatemail_match match;
    check(privatemail_search_match(search, 0, rank, &match));
    if (match.id == NULL) break;
    printf("%s %.4f\n", match.id, match.similarity);
  }
  privatemail_search_free(search);
  privatemail_session_free(session);
  return 0;
}
