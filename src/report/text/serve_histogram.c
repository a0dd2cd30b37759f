/* serve_histogram.c: how times of requests are spread: first tokens on the left, further ones on the right. Bounds are
 * round numbers, each as many times the last, so that tails stay in sight. */
#include <math.h>

#include "report/text/columns.h"
#include "report/text/lines.h"
#include "report/text/serve_screen.h"

enum { ROWS = 7, WIDTH = 16 };

typedef struct histogram {
    const ft_tally *t;
    double bound[ROWS + 1], share[ROWS];
    int rows;
    double most;
} histogram;

/* 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten: the next at or above. */
static double round_up(double x)
{
    static const double steps[] = {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10};
    double power = pow(10, floor(log10(x)));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i] * power >= x * (1 - 1e-9)) return steps[i] * power;
    return 10 * power;
}

static void spread(histogram *h, const ft_tally *t)
{
    double low = t->least, high = fmax(t->most, low);
    *h = (histogram){.t = t};
    if (t->count <= 0 || low <= 0) return;
    double ratio = fmax(pow(high / low, 1.0 / (ROWS - 1)), 1.01), below = 0;
    for (double at = low * ratio; h->rows < ROWS; at *= ratio) {
        double bound = round_up(at);
        if (h->rows > 0 && bound <= h->bound[h->rows]) continue;
        double share = bound >= high ? 1 : ft__tally_share(t, bound);
        h->bound[h->rows + 1] = bound;
        h->share[h->rows] = share - below;
        h->most = fmax(h->most, share - below);
        h->rows++;
        below = share;
        if (bound >= high) return;
    }
    h->share[ROWS - 1] += 1 - below;
    h->bound[ROWS] = round_up(high);
    h->most = fmax(h->most, h->share[ROWS - 1]);
}

static void add_row(ft_columns *c, const ft_style *style, const histogram *h, int i)
{
    ft_text *range = ft__cell(c);
    if (i < h->rows) {
        double from = h->bound[i];
        ft__text_add(range, i > 0 ? "" : "to ");
        if (i > 0) ft__add_figure(range, from, 3);
        if (i > 0) ft__text_addf(range, " %s ", ft__dash(style));
        ft__add_figure(range, h->bound[i + 1], 3);
    }
    ft_text *share = ft__cell(c);
    if (i < h->rows) ft__add_percent(share, h->share[i]);
    ft_text *bar = ft__cell(c);
    if (i < h->rows) ft__add_bar(bar, style, h->share[i] / h->most, WIDTH);
}

bool ft__screen_serve_histogram(ft_text *out, const ft_style *style, const ft_serving *s)
{
    histogram of[2];
    ft_columns c;
    spread(&of[0], &s->out->ttft);
    spread(&of[1], &s->out->tpot);
    if (!s->stable) of[0].rows = 0;
    if (s->out->requests < ROWS || of[0].rows + of[1].rows == 0) return true;
    ft__text_add(out, "\n");
    static const char *const names[] = {"TTFT ms", "TPOT ms"};
    ft__columns_init(&c, of[0].rows && of[1].rows ? "rrlrrl" : "rrl");
    for (int k = 0; k < 2; k++)
        for (int i = 0; of[k].rows && i < 3; i++) ft__cell_add(&c, i ? "" : names[k]);
    for (int i = 0; i < of[0].rows || i < of[1].rows; i++)
        for (int k = 0; k < 2; k++)
            if (of[k].rows) add_row(&c, style, &of[k], i);
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}
