/*
 * The first use of a page is an exception, and where the processor has no help for virtual machines one takes as long as ten calls of the
 * kernel. So what every run needs lies together at the start of a page, what is large and rarely needed behind it, and a process that
 * waits for a command has used its pages before.
 */
#pragma once

/* For _Alignas: of a large static object. */
#define PAGE_OF_ITS_OWN 4096

/* Has the page of that byte ready to be written. */
static inline void use_page(void *byte) {
  volatile char *at = byte;
  *at = *at;
}
