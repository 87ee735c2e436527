/* Messages of a command to the SOCKS proxy: greeting and request, each also in parts. */
#include "net/socks-message.h"
#include "fuzz.h"

static void check_request(const uint8_t *data, size_t size) {
  struct target target;
  enum socks_code code = SOCKS_FAILURE;
  char name[HOST_NAME_BYTES];
  int read = socks_read_request(data, size, &target, &code);
  if (read > (int)size || read > SOCKS_MESSAGE_MAX) WRONG("%d bytes of %zu", read, size);
  if (read <= 0 || code != SOCKS_SUCCEEDED) return;
  if (target.port == 0) WRONG("port 0");
  if (target.is_name && (host_name_canonical(target.name, strlen(target.name), name) < 0 || strcmp(name, target.name) != 0))
    WRONG("name: %s", target.name);
  for (size_t part = 0; part < (size_t)read; part++)
    if (socks_read_request(data, part, &target, &code) != 0) WRONG("whole after %zu of %d bytes", part, read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int is_open;
  uint8_t *exact = malloc(size ? size : 1); /* a byte too far is a fault */
  if (size) memcpy(exact, data, size);
  int greeting = socks_read_greeting(exact, size, &is_open);
  if (greeting > (int)size) WRONG("greeting of %d bytes", greeting);
  check_request(exact, size);
  if (greeting > 0) check_request(exact + greeting, size - (size_t)greeting);
  free(exact);
  return 0;
}
