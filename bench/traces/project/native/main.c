#include "csv.h"

#include <stdio.h>

enum { AMOUNT = 3, LINE_MAX_LENGTH = 512 };

int main(int argc, char **argv) {
  char line[LINE_MAX_LENGTH], cell[64];
  FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
  long sum = 0;
  if (!file) {
    fprintf(stderr, "usage: csvsum FILE\n");
    return 2;
  }
  while (fgets(line, sizeof line, file))
    if (csv_cell(line, AMOUNT, cell, sizeof cell) >= 0) sum += csv_cents(cell);
  fclose(file);
  printf("%ld.%02ld\n", sum / 100, (sum < 0 ? -sum : sum) % 100);
  return 0;
}
