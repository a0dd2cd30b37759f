/* How text looks: ink, bars, numbers with units. The program decides once what the terminal can show. */
#ifndef FT_REPORT_TEXT_STYLE_H
#define FT_REPORT_TEXT_STYLE_H
#include "base/text.h"

typedef struct ft_style {
    bool unicode; /* else ASCII alone */
    bool colour;
    int width;     /* columns of the terminal */
    bool terminal; /* tables lose columns and lines are folded to fit it; files and pipes get them whole */
} ft_style;

typedef enum ft_ink { FT_INK_BOLD, FT_INK_DIM, FT_INK_GREEN, FT_INK_YELLOW, FT_INK_RED, FT_INK_BLUE } ft_ink;

/* Text between the two comes out in that ink, or plain where there is no colour. */
void ft__ink(ft_text *out, const ft_style *style, ft_ink ink);
void ft__ink_end(ft_text *out, const ft_style *style);

/* Columns that a terminal gives a text: escapes take none, every character one. */
int ft__text_width(const char *text);
void ft__text_pad(ft_text *out, int columns);
/* Text from files and users: control characters would move the cursor or recolour the screen, so they become '?'. */
void ft__text_add_plain(ft_text *out, const char *text);

/* `share` of `cells` filled, in eighths of a cell; ASCII: # and . */
void ft__add_bar(ft_text *out, const ft_style *style, double share, int cells);

/* Significant digits kept, zeros kept, no exponent in the range people read: 0.1894, 12.00, 725.6, 4800. */
void ft__add_figure(ft_text *out, double value, int digits);
/* With an SI prefix from micro to quetta: 137.4 GFLOP. */
void ft__add_si(ft_text *out, double value, const char *unit);
/* A time in the unit that fits it: 12.3 ms, 650 µs, 26.7 s from ten seconds on. */
void ft__add_ms(ft_text *out, double ms, int digits);
/* What a screen's times are in, the same for all of them so that they compare: ms, or s where its longest has ten. */
typedef struct {
    double ms; /* of one */
    const char *name;
} ft_time_unit;

ft_time_unit ft__time_unit(double longest_ms);
/* 12.3 %, never -0.0 %. */
void ft__add_percent(ft_text *out, double share);
/* +12.3 %, -0.5 %, 0.0 %: a change. */
void ft__add_change(ft_text *out, double share);

/* Points of a sweep read alike: 512, 1024; or 1e9, 1e10 where they are large and round. */
bool ft__points_plain(const double *x, size_t count);
void ft__add_point(ft_text *out, double x, bool plain);

const char *ft__dash(const ft_style *style);  /* between the ends of an interval */
const char *ft__times(const ft_style *style); /* of a tile */
#endif
