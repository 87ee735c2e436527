/*
 * The seal of node's files for the client: a MAC with a key that no sandbox can see.
 *
 * A file that decides what runs on the host must be node's own work, even where a command got at the directory that it lies in. The
 * key is 32 random bytes in the parent of the runs directory (root: /run/llm-do; others: $XDG_RUNTIME_DIR/llm-do or
 * /run/user/UID/llm-do), which no zone may hold. node makes it (src/host/secret.ts); the client only reads it. Without a key nothing
 * is sealed, and no file on disk is trusted.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SECRET_BYTES 32
#define MAC_BYTES 64
#define MAC_TEXT (2 * MAC_BYTES + 1)

/* Reads this user's secret. 0, or -1 when there is none that is safely ours. */
int secret_read(unsigned char secret[SECRET_BYTES]);

/* The same from the directory that holds it: the parent of the runs directory, where that is in a runtime directory. */
int secret_read_in(const char *directory, unsigned char secret[SECRET_BYTES]);

/*
 * The seal of a text that has a purpose, so that none can be used for another one: "layer ID", "apply K of ID". `text` has room for
 * MAC_TEXT; all zeros, which is never a seal, without a secret (NULL).
 */
void seal_for(const unsigned char *secret, const char *purpose, const void *bytes, size_t size, char text[MAC_TEXT]);
/* Ends the text of text_begin (lib/text.h) with its seal. Returns as text_end. */
const char *text_end_sealed(FILE *out, const unsigned char *secret, const char *purpose, size_t *size);
/* Takes the seal off the end of such a text: `is_sealed` by this user's secret, for that purpose. -1 with EBADMSG for one that is too short. */
int seal_take(const char *bytes, size_t *size, const char *purpose, int *is_sealed);

/* Is `text` the seal of these bytes, in hexadecimal? Takes the same time wherever the two differ. */
int is_sealed(const char *text, const void *bytes, size_t size);
