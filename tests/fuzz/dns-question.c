/* Questions of a command to the name server of its sandbox: every answer fits and repeats the question. */
#include "net/dns-message.h"
#include "fuzz.h"

static void check_answer(const uint8_t *data, const struct dns_question *question, struct dns_answer answer) {
  unsigned char out[DNS_ANSWER_MAX];
  size_t size = dns_write_answer(data, question, &answer, out);
  if (size > DNS_ANSWER_MAX || size < 12 + question->size) WRONG("size %zu", size);
  if (memcmp(out, data, 2) != 0 || memcmp(out + 12, data + 12, question->size) != 0) WRONG("another question");
  if (!(out[2] & 0x80) || (out[3] & 15) != (int)answer.code) WRONG("no answer");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct dns_question question;
  struct address v4 = address_of_v4(0xc6120107), v6 = {.bytes = {0x20, 0x01, 0x0d, 0xb8}};
  char name[HOST_NAME_BYTES], again[HOST_NAME_BYTES];
  uint32_t address;
  int code = dns_read_question(data, size, &question);
  if (host_name_canonical((const char *)data, size, name) == 0 && (host_name_canonical(name, strlen(name), again) < 0 || strcmp(name, again) != 0))
    WRONG("another name: %s", again);
  if (code < 0) return 0;
  if (question.is_host && (host_name_canonical(question.name, strlen(question.name), name) < 0 || strcmp(name, question.name) != 0))
    WRONG("name: %s", question.name);
  (void)dns_reverse_address(question.name, &address);
  check_answer(data, &question, (struct dns_answer){.code = (enum dns_code)code});
  check_answer(data, &question, (struct dns_answer){.code = DNS_NO_SUCH_NAME, .is_blocked = 1});
  check_answer(data, &question, (struct dns_answer){.address = &v4});
  check_answer(data, &question, (struct dns_answer){.address = &v6});
  check_answer(data, &question, (struct dns_answer){.name = question.is_host ? question.name : NULL});
  return 0;
}
