#ifndef CSV_H
#define CSV_H

/* Cell number `at` of a line, copied to `cell`; -1 when there is none or it does not fit. */
int csv_cell(const char *line, int at, char *cell, int room);

/* An amount with two decimals as cents; 0 when it is none. */
long csv_cents(const char *cell);

#endif
