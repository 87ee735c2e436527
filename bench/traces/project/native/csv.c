#include "csv.h"

#include <stdlib.h>
#include <string.h>

int csv_cell(const char *line, int at, char *cell, int room) {
  int quoted = 0, number = 0, used = 0;
  for (; *line && *line != '\n'; line++) {
    if (*line == '"') {
      quoted = !quoted;
    } else if (*line == ',' && !quoted) {
      if (number++ == at) break;
    } else if (number == at) {
      if (used + 1 >= room) return -1;
      cell[used++] = *line;
    }
  }
  cell[used] = 0;
  return number >= at ? used : -1;
}

long csv_cents(const char *cell) {
  char *end;
  long units = strtol(cell, &end, 10);
  long cents = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
  return units * 100 + (units < 0 ? -cents : cents); /* TODO: -0.50 */
}
