/* Answers side by side, as text and as JSON. */
#ifndef FT_REPORT_TEXT_COMPARE_SCREEN_H
#define FT_REPORT_TEXT_COMPARE_SCREEN_H
#include "report/text/style.h"
#include "study/compare.h"

/* What screens and pages show of all answers: a row per figure, a text per answer (compare_rows.c). */
enum { FT_COMPARED_ROWS = 40, FT_COMPARED_CELL = 48, FT_COMPARED_CELLS = 200 };
typedef struct ft_compared_row {
    const char *label;
    char cell[FT_MOST_COMPARED][FT_COMPARED_CELL], change[FT_COMPARED_CELL]; /* change: of two answers */
    bool failed;                                                             /* out of memory */
} ft_compared_row;
/* How many of at most FT_COMPARED_ROWS there are. */
size_t ft__compared_rows(const ft_compared *c, size_t count, const ft_style *style, ft_compared_row *rows);
/* What was asked differently; SIZE_MAX: the answers do not say. `asked` holds the rows' labels, as many of them. */
size_t ft__compared_asked_rows(const ft_compared *c, size_t count, const ft_style *style, ft_asked *asked,
                               ft_compared_row *rows);
/* Cells of `infer` that all answers have. */
typedef struct ft_compared_cell {
    const char *task;
    double batch, seq, ms[FT_MOST_COMPARED];
} ft_compared_cell;
size_t ft__compared_cells(const ft_compared *c, size_t count, ft_compared_cell *out, size_t most);
/* "-24.6 (-50 %)"; "=". False: out of memory. */
bool ft__compared_change(char out[FT_COMPARED_CELL], double from, double to);

/* `all`: every kernel that differs, not the ten that matter most. False: out of memory. */
bool ft__screen_compared(ft_text *out, const ft_style *style, const ft_compared *c, size_t count, bool all);
/* Answer `other` against the first. */
bool ft__screen_pair(ft_text *out, const ft_style *style, const ft_compared *c, size_t other, bool all);
/* `warnings`: one per line, "" for none. */
bool ft__answer_compared(ft_text *out, const json_t *id, const ft_compared *c, size_t count, const char *warnings);
#endif
