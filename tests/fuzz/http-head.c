/* Requests of a command to the HTTP proxy: the forwarded head has one host, the judged one, and one end. */
#include "net/http-head.h"
#include "fuzz.h"

#include <strings.h>

static void check_target(const struct target *target) {
  char name[HOST_NAME_BYTES];
  if (target->port == 0) WRONG("port 0");
  if (target->is_name && (host_name_canonical(target->name, strlen(target->name), name) < 0 || strcmp(name, target->name) != 0))
    WRONG("name: %s", target->name);
}

/* Lines of the forwarded head that begin so. */
static int count_fields(const char *head, size_t size, const char *name) {
  int count = 0;
  for (const char *at = head; (at = memmem(at, size - (size_t)(at - head), "\r\n", 2)); at += 2)
    if ((size_t)(head + size - at) > 2 + strlen(name) && strncasecmp(at + 2, name, strlen(name)) == 0) count++;
  return count;
}

static void check_passed_on(const char *bytes, const struct http_head *head) {
  static char out[HTTP_HEAD_OUT_MAX];
  char host[TARGET_TEXT_MAX + 16], text[TARGET_TEXT_MAX];
  size_t size = http_head_write(bytes, head, out);
  if (size > sizeof out || size < 4) WRONG("size %zu", size);
  if (memmem(out, size, "\r\n\r\n", 4) != out + size - 4) WRONG("an end in the middle");
  if (memchr(out, 0, size)) WRONG("NUL");
  target_print(&head->target, 80, text);
  snprintf(host, sizeof host, "\r\nHost: %s\r\n", text);
  if (count_fields(out, size, "host:") != 1 || !memmem(out, size, host, strlen(host))) WRONG("host");
  if (count_fields(out, size, "connection:") != 1) WRONG("connection");
  if (count_fields(out, size, "content-length:") + count_fields(out, size, "transfer-encoding:") > 1) WRONG("two lengths");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct http_head head;
  if (size > HTTP_HEAD_MAX) size = HTTP_HEAD_MAX;
  char *exact = malloc(size ? size : 1); /* a byte too far is a fault */
  if (size) memcpy(exact, data, size);
  if (http_head_read(exact, size, &head) == HTTP_OK) {
    if (head.size > size) WRONG("longer than it is");
    check_target(&head.target);
    if (!head.is_tunnel) check_passed_on(exact, &head);
  }
  free(exact);
  return 0;
}
