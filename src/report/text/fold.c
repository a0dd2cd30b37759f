/* fold.c: breaking long lines where columns end. Two blanks or more stand between columns, one between words. A remark
 * in the last column goes on below itself where that leaves it half of the width. */
#include "report/text/fold.h"

#include <string.h>

enum { INDENT = 2, GOES_ON = 4 };

/* Bytes of the colour that begins at `at`; 0: none does. */
static size_t colour_at(const char *at, const char *end)
{
    if (end - at < 2 || at[0] != '\x1b' || at[1] != '[') return 0;
    const char *stop = at + 2;
    while (stop < end && (*stop < '@' || *stop > '~')) stop++;
    return (size_t)(stop - at) + (stop < end);
}

/* The character or colour at `at`, and how many columns it takes. */
static size_t step_at(const char *at, const char *end, int *columns)
{
    size_t colour = colour_at(at, end), bytes = colour ? colour : ft__utf8_length(at, (size_t)(end - at));
    *columns = colour ? 0 : 1;
    return bytes ? bytes : 1;
}

static int width_of(const char *at, const char *end)
{
    int width = 0, columns;
    for (; at < end; width += columns) at += step_at(at, end, &columns);
    return width;
}

typedef struct folder {
    ft_text *out;
    int most, at; /* columns of the terminal; where the cursor stands */
    int again;    /* where a line goes on */
} folder;

static void go_on(folder *f)
{
    ft__text_addf(f->out, "\n%*s", f->again, "");
    f->at = f->again;
}

static void add_hard(folder *f, const char *at, const char *end)
{
    while (at < end) {
        int columns;
        size_t bytes = step_at(at, end, &columns);
        if (f->at + columns > f->most) go_on(f);
        ft__text_add_n(f->out, at, bytes);
        f->at += columns;
        at += bytes;
    }
}

static void add_words(folder *f, const char *at, const char *end)
{
    for (bool first = true; at < end; first = false) {
        const char *stop = memchr(at, ' ', (size_t)(end - at));
        if (!stop) stop = end;
        int width = width_of(at, stop);
        if (!first && f->at + 1 + width <= f->most) {
            ft__text_add(f->out, " ");
            f->at++;
        } else if (!first || (f->at + width > f->most && f->at > f->again)) {
            go_on(f);
        }
        add_hard(f, at, stop);
        at = stop < end ? stop + 1 : end;
    }
}

static const char *cell_end(const char *at, const char *end)
{
    while (at < end && !(at[0] == ' ' && at + 1 < end && at[1] == ' ')) at++;
    return at;
}

/* Whether this is a remark that stays in its column, the last of the line. */
static bool hangs(const folder *f, int column, const char *at, const char *stop, const char *end)
{
    return stop == end && column >= GOES_ON && 2 * column <= f->most && memchr(at, ' ', (size_t)(stop - at));
}

static void fold_line(folder *f, const char *at, const char *end)
{
    bool indented = at < end && *at == ' ', first = true, broken = false;
    f->at = 0;
    f->again = GOES_ON;
    while (end > at && end[-1] == ' ') end--;
    for (;;) {
        const char *blanks = at;
        while (at < end && *at == ' ') at++;
        if (at == end) return;
        const char *stop = cell_end(at, end);
        while (stop > at && stop[-1] == ' ') stop--;
        int width = width_of(at, stop), before = first ? (indented ? INDENT : 0) : 2, gap = (int)(at - blanks);
        const bool hung = !broken && hangs(f, f->at + gap, at, stop, end);
        if (!broken && (hung || f->at + gap + width <= f->most))
            before = gap; /* columns stay where they stand, as long as they can */
        if (hung) f->again = f->at + gap;
        if (first || hung || f->at + before + width <= f->most) {
            ft__text_addf(f->out, "%*s", before, "");
            f->at += before;
        } else {
            go_on(f);
            broken = true;
        }
        if (f->at + width <= f->most)
            add_hard(f, at, stop);
        else
            add_words(f, at, stop);
        first = false;
        at = stop;
    }
}

void ft__fold(ft_text *text, const ft_style *style)
{
    if (!style->terminal || text->failed || !text->at) return;
    ft_text out = {.cap = text->cap};
    folder f = {.out = &out, .most = style->width > GOES_ON + 4 ? style->width : GOES_ON + 4};
    for (const char *at = text->at, *end = text->at + text->length; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        if (width_of(at, stop) <= f.most)
            ft__text_add_n(&out, at, (size_t)(stop - at));
        else
            fold_line(&f, at, stop);
        if (stop < end) ft__text_add(&out, "\n");
        at = stop + (stop < end);
    }
    ft__text_free(text);
    *text = out;
}
