/* Pictures as SVG text: a frame to draw in, rulers, labels. Colours are classes; data/style says what they are, in
 * light and dark. Everything appends to a text; nothing is printed here. */
#ifndef FT_REPORT_HTML_SVG_H
#define FT_REPORT_HTML_SVG_H
#include "base/text.h"
#include "foretell.h"

/* What a picture is drawn for. A report holds each twice, for a desk and for a phone, and shows one of them: text keeps
 * its size, what stands around it changes. The page in a browser asks for each as wide as its place is (`live`): its
 * style is the page's, and what the page needs to answer a pointer is in data- attributes. */
typedef struct ft_frame {
    double width;
    bool narrow;
    bool alone;            /* a file of its own: carries its style */
    bool live;             /* for a page that shows words at the pointer */
    bool plain;            /* for a moment: marks have no words of their own */
    double height;         /* of what is plotted; 0: the picture's own */
    const char *name;      /* in place of the picture's own id; NULL */
    double from_ms, to_ms; /* the part of the time that is drawn; to_ms 0: all */
} ft_frame;
extern const ft_frame ft__frame_wide, ft__frame_narrow, ft__frame_alone;
/* How high a plot is that is so many pixels high on a phone and on a desk. */
double ft__frame_plot(const ft_frame *f, double narrow, double wide);

/* Text from anywhere as the content of an element or an attribute. */
void ft__markup_text(ft_text *out, const char *text);

/* Empties a part that was added to `out`, for the next one; that it was cut short, for want of memory, is kept there.
 */
void ft__markup_reset(ft_text *out, ft_text *part);

/* <svg> with its title and description for who cannot see it; `id` is unique in a page. */
void ft__svg_open(ft_text *out, const ft_frame *f, const char *id, double height, const char *title, const char *desc);
void ft__svg_close(ft_text *out);

typedef enum ft_anchor { FT_START, FT_MIDDLE, FT_END } ft_anchor;
void ft__svg_label(ft_text *out, double x, double y, ft_anchor anchor, const char *class, const char *text);
/* A label cut to the room there is; nothing where not even five letters go. */
void ft__svg_label_within(ft_text *out, double x, double y, ft_anchor anchor, const char *class, const char *text,
                          double room);
/* Pixels that a label of our size takes, a little too many rather than too few. */
double ft__svg_label_width(const char *text);
void ft__svg_line(ft_text *out, double x1, double y1, double x2, double y2, const char *class);
/* A rectangle; `title`, when not NULL, is shown on hovering. */
void ft__svg_box(ft_text *out, double x, double y, double width, double height, const char *class, const char *title);

/* A place in a path, to a tenth of a pixel. */
void ft__svg_at(ft_text *out, double value);

/* Values on pixels. */
typedef struct ft_ruler {
    double low, high; /* values */
    double from, to;  /* pixels */
    bool log;
} ft_ruler;
double ft__ruler_at(const ft_ruler *r, double value);
/* At most `most` values to be written beside a ruler; how many there are. */
enum { FT_TICKS = 24 };
int ft__ruler_ticks(const ft_ruler *r, int most, double ticks[FT_TICKS]);
/* Ruler below a plot, or to its left, with grid lines across it and the name at its end. */
void ft__svg_ruler_x(ft_text *out, const ft_ruler *r, double top, double bottom, const char *name);
/* Of milliseconds, written in seconds where there are more than ten thousand, in microseconds where not one. */
void ft__svg_ruler_time(ft_text *out, const ft_ruler *r, double top, double bottom);
void ft__svg_ruler_x_at(ft_text *out, const ft_ruler *r, double top, double bottom, const char *name,
                        const double *ticks, size_t count); /* labels that would overlap are left out */
void ft__svg_ruler_y(ft_text *out, const ft_ruler *r, double left, double right, const char *name);

/* Where values stand in a live picture; NULL: no such ruler. */
void ft__svg_plot(ft_text *out, const ft_frame *f, const ft_ruler *x, const ft_ruler *y);

/* A row of names with their colours, as wide as the frame; returns the height it took. */
typedef struct ft_key {
    const char *class, *name;
} ft_key;
double ft__svg_keys(ft_text *out, const ft_frame *f, double x, double y, const ft_key *keys, size_t count);
double ft__svg_keys_height(const ft_frame *f, double x, const ft_key *keys, size_t count);

/* By ft_bound: classes, and the words of a legend. */
extern const char *const ft__bound_class[4];
extern const ft_key ft__bound_keys[4];

/* Style sheets: colours as custom properties and the rules of pictures (data/style), those of pages, those of phones
 * and paper. */
extern const char ft__colours_light[], ft__colours_dark[], ft__svg_style[], ft__page_style[], ft__page_media[];
#endif
