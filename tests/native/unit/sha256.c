#include "lib/sha256.h"
#include "unit.h"

static const char *sum_of(const void *bytes, size_t size, size_t step) {
  static char text[SHA256_TEXT];
  struct sha256 sum;
  sha256_begin(&sum);
  for (size_t at = 0; at < size; at += step) sha256_add(&sum, (const char *)bytes + at, size - at < step ? size - at : step);
  sha256_finish(&sum, text);
  return text;
}

UNIT("SHA-256 is that of FIPS 180-4") {
  static const struct {
    const char *text, *want;
  } ROWS[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) EXPECT_TEXT(sum_of(ROWS[i].text, strlen(ROWS[i].text), 64), ROWS[i].want);
}

UNIT("a million bytes give the same sum in pieces of any size") {
  static char bytes[1000000];
  static const size_t STEPS[] = {1, 7, 63, 64, 65, 4096, sizeof bytes};
  memset(bytes, 'a', sizeof bytes);
  for (size_t i = 0; i < COUNT(STEPS); i++)
    EXPECT_TEXT(sum_of(bytes, sizeof bytes, STEPS[i]), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

UNIT("the padding fits before and after the place of the length") {
  static const char A[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  static const struct {
    size_t size;
    const char *want;
  } ROWS[] = {
      {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
      {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
      {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
      {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) EXPECT_TEXT(sum_of(A, ROWS[i].size, 64), ROWS[i].want);
}
