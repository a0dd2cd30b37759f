/* Figures in running text: "1,600 Gb/s", "3.2e3Gbps", "25 gigabytes per second". */
#ifndef FT_COMM_FIGURE_H
#define FT_COMM_FIGURE_H
#include <stdbool.h>
#include <stddef.h>

enum { FT_LONGEST_TEXT = 200 };

/* The number at `s`, its exponent ("1e3") and thousands ("1,600") counted; how long it is. `s` is no longer than
 * FT_LONGEST_TEXT; NaN for "1.2.3". */
size_t ft__figure_number(const char *s, double *value);
/* "-5", "x -200": a minus that no word stands before ("HDR-200" has none). */
bool ft__figure_negative(const char *s, size_t at);
/* "Gb/s" after the digits: how many Gbit one unit is; 0 when it is no rate. `s` keeps the case of the text. `*size`:
 * bytes, and nobody says in what time. */
double ft__figure_unit(const char *s, size_t *length, bool *size);
#endif
