/* What several answers warn of: once where all of them do. */
#ifndef FT_STUDY_WARNED_H
#define FT_STUDY_WARNED_H
#include "request/keys.h"
#include "study/compare.h"

/* Warnings of a sweep, point after point. Begin with zeroes, but for `moving`; free it with ft__warned_free. */
typedef struct ft_warned {
    ft_key_id moving; /* the number that is swept; FT_KEY_COUNT: none that requests know */
    ft_text all;      /* lines that every point so far has */
    ft_text moved;    /* the last line about the number */
    bool begun, acts; /* acts: the number has had its effect somewhere */
} ft_warned;
/* `lines`: of the point where the number is `x`, "" for none. */
void ft__warned_add(ft_warned *w, const char *lines, double x);
/* No further point can change what is found. */
bool ft__warned_settled(const ft_warned *w);
/* Lines that all points have; and that about the number, which says nothing where it repeats its default. */
void ft__warned_lines(const ft_warned *w, ft_text *out);
void ft__warned_free(ft_warned *w);

/* The same of a sweep's answers, `count` of them, GPU after GPU, each over `points` numbers `x`. */
void ft__warned_over(json_t *const *answers, size_t count, const double *x, size_t points, ft_key_id moving,
                     ft_text *out);

/* An answer's "warnings" as lines. */
void ft__warnings_of(const json_t *answer, ft_text *out);
/* Lines of the i-th of several cases, and its name. */
typedef const ft_text *ft_warned_at(const void *cases, size_t i, const char **name);
/* Of several cases, lines of each: those that all have, the others with the name of the case. */
void ft__warned_among(ft_warned_at *at, const void *cases, size_t count, ft_text *out);
/* The same of answers that are compared. */
void ft__warned_by(const ft_compared *c, size_t count, ft_text *out);
#endif
