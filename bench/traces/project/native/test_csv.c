#include "csv.h"

#include <stdio.h>
#include <string.h>

static int failures;

static void check(int is_right, const char *what) {
  if (is_right) return;
  printf("FAIL %s\n", what);
  failures++;
}

int main(void) {
  char cell[32];
  check(csv_cell("a,b,c", 1, cell, sizeof cell) == 1 && strcmp(cell, "b") == 0, "plain cell");
  check(csv_cell("a,\"b, c\",d", 1, cell, sizeof cell) == 4, "quoted cell");
  check(csv_cents("12.34") == 1234, "cents");
  check(csv_cents("-12.34") == -1234, "negative cents");
  return failures != 0;
}
