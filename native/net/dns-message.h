/* Questions to the name server of a sandbox, and their answers (RFC 1035; EDNS: RFC 6891, 8914). Pure. */
#pragma once

#include "net/address.h"
#include "net/host-name.h"

#include <stddef.h>

#define DNS_QUESTION_MAX 512
#define DNS_ANSWER_MAX 1024

enum dns_code { DNS_NO_ERROR = 0, DNS_FORMAT_ERROR = 1, DNS_SERVER_FAILURE = 2, DNS_NO_SUCH_NAME = 3, DNS_NOT_IMPLEMENTED = 4, DNS_REFUSED = 5 };
enum dns_type { DNS_A = 1, DNS_PTR = 12, DNS_AAAA = 28 };

struct dns_question {
  size_t size;      /* of the question section */
  uint16_t type;
  int has_edns;
  int is_host;      /* `name` is a host name in canonical form; else nothing is known by that name */
  char name[HOST_NAME_BYTES];
};

/* DNS_NO_ERROR, or the code to answer with; -1 for what deserves no answer. */
int dns_read_question(const unsigned char *bytes, size_t size, struct dns_question *question);

struct dns_answer {
  enum dns_code code;
  int is_blocked;          /* by our rules (extended error 15) */
  const struct address *address; /* for DNS_A and DNS_AAAA; NULL = no such record */
  const char *name;        /* for DNS_PTR */
};

/* Returns the size. `bytes`: the question as it came. */
size_t dns_write_answer(const unsigned char *bytes, const struct dns_question *question, const struct dns_answer *answer,
                        unsigned char to[DNS_ANSWER_MAX]);

/* The IPv4 address that a name such as 7.1.18.198.in-addr.arpa asks about; -1 for another name. */
int dns_reverse_address(const char *name, uint32_t *address);
