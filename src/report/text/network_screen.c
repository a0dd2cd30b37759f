/* network_screen.c: who talks to whom, and what it costs where cables are shared. */
#include "report/text/network_screen.h"

#include <inttypes.h>
#include <math.h>

#include "report/json/answer.h"
#include "report/text/columns.h"

enum { SHOWN_GROUPS = 16, SHOWN_MEMBERS = 16, GROUPS_A_LINE = 4, INDENT = 11, ANSWERED_RANKS = 4096 };

static const char *const axis_names[FT_AXIS_COUNT] = {"tensor", "context", "expert", "data", "pipeline"};

/* -- groups ------------------------------------------------------------------------------------ */

static int64_t group_count(const ft_parallel *p, ft_axis axis, int64_t *size, int64_t *stride)
{
    ft__parallel_group(p, axis, size, stride);
    return *size > 0 ? ft__parallel_ranks(p) / *size : 0;
}

/* The first rank of the n-th group: groups are counted by their first members. */
static int64_t first_of(int64_t n, int64_t size, int64_t stride) { return n / stride * stride * size + n % stride; }

/* Four groups a line, fewer where that would be wider than the screen. */
static void add_groups(ft_text *out, const ft_style *style, int64_t size, int64_t stride, int64_t count)
{
    ft_text one = {0};
    size_t width = 0, on_line = 0;
    for (int64_t n = 0; n < count && n < SHOWN_GROUPS; n++) {
        ft__text_empty(&one);
        ft__text_add(&one, " [");
        for (int64_t i = 0; i < size && i < SHOWN_MEMBERS; i++)
            ft__text_addf(&one, "%s%" PRId64, i ? "," : "", first_of(n, size, stride) + i * stride);
        ft__text_add(&one, size > SHOWN_MEMBERS ? ",...]" : "]");
        if (on_line == GROUPS_A_LINE || (on_line && INDENT + width + one.length > (size_t)style->width)) {
            ft__text_addf(out, "\n%*s", INDENT, "");
            width = on_line = 0;
        }
        ft__text_add(out, one.at ? one.at : "");
        width += one.length;
        on_line++;
    }
    ft__text_drop(&one, out);
}

void ft__screen_groups(ft_text *out, const ft_style *style, const ft_parallel *p)
{
    if (ft__parallel_ranks(p) < 2) {
        ft__text_add(out, "\nOne GPU has no rank groups.\n");
        return;
    }
    ft__text_addf(out, "\nRank groups of %" PRId64 " GPUs, rank = tensor + tp (context + cp (data + dp pipeline)):\n",
                  ft__parallel_ranks(p));
    for (int a = 0; a < FT_AXIS_COUNT; a++) {
        int64_t size, stride, count = group_count(p, (ft_axis)a, &size, &stride);
        if (size < 2) continue;
        ft__text_addf(out, "  %-9s", axis_names[a]);
        add_groups(out, style, size, stride, count);
        if (count > SHOWN_GROUPS) {
            ft__ink(out, style, FT_INK_DIM);
            ft__text_addf(out, " and %" PRId64 " more", count - SHOWN_GROUPS);
            ft__ink_end(out, style);
        }
        ft__text_add(out, "\n");
    }
    if (p->cp < 2) return;
    ft__text_add(out, "  Context ranks hold the same weights, whose gradients are summed over \"data\".\n");
}

void ft__answer_groups(ft_text *out, const ft_parallel *p)
{
    ft__json_member_open(out, "groups");
    for (int a = 0; a < FT_AXIS_COUNT; a++) {
        int64_t size, stride, count = group_count(p, (ft_axis)a, &size, &stride), listed = count;
        if (size < 2) continue;
        if (listed * size > ANSWERED_RANKS) listed = ANSWERED_RANKS / size > 1 ? ANSWERED_RANKS / size : 1;
        ft__json_member_open(out, axis_names[a]);
        ft__json_member_whole(out, "size", size);
        ft__json_member_whole(out, "stride", stride);
        ft__json_member_whole(out, "count", count);
        ft__json_member_list(out, "ranks");
        for (int64_t n = 0; n < listed; n++) {
            ft__json_open_list(out);
            for (int64_t i = 0; i < size && i < ANSWERED_RANKS; i++)
                ft__json_add_whole(out, first_of(n, size, stride) + i * stride);
            ft__json_close_list(out);
        }
        ft__json_close_list(out);
        ft__json_close(out);
    }
    ft__json_close(out);
}

/* -- the network ------------------------------------------------------------------------------- */

bool ft__screen_network(ft_text *out, const ft_style *style, const ft_simulated *s)
{
    ft_columns c;
    ft__columns_init(&c, "lrrrrrr");
    ft__text_add(out, "\nBetween nodes, simulated (SimGrid): ");
    ft__platform_words(&s->platform, out);
    ft__text_add(out, "\n");
    static const char *const heads[] = {"exchange", "ranks", "MiB", "flows", "closed", "simulated", ""};
    for (int i = 0; i < 7; i++) ft__cell_add(&c, heads[i]);
    for (size_t i = 0; i < s->count; i++) {
        const ft_exchanged *e = &s->rows[i];
        double more = e->simulated_ms / fmax(e->closed.ms, 1e-12) - 1;
        ft__cell_addf(&c, "%s, %s", ft__collective_name(e->op), e->algorithm);
        ft__cell_addf(&c, "%" PRId64, e->group.size);
        ft__add_figure(ft__cell(&c), e->bytes / 1048576, 3);
        ft__cell_addf(&c, "%" PRId64, e->flows);
        ft__add_figure(ft__cell(&c), e->closed.ms, 4);
        ft_text *ms = ft__cell(&c);
        ft__add_figure(ms, e->simulated_ms, 4);
        ft__text_add(ms, " ms");
        ft__add_change(ft__cell(&c), more);
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

void ft__answer_network(ft_text *out, const ft_simulated *s)
{
    ft_text words = {0};
    ft__platform_words(&s->platform, &words);
    ft__json_member_open(out, "network");
    ft__json_member_text(out, "simulator", "simgrid");
    ft__json_member_whole(out, "levels", s->platform.levels);
    ft__answer_word(out, "platform", words.at ? words.at : "");
    ft__text_drop(&words, out);
    ft__json_member_list(out, "exchanges");
    for (size_t i = 0; i < s->count; i++) {
        const ft_exchanged *e = &s->rows[i];
        ft__json_open(out);
        ft__json_member_text(out, "op", ft__collective_name(e->op));
        ft__json_member_text(out, "algorithm", e->algorithm);
        ft__json_member_whole(out, "ranks", e->group.size);
        ft__json_member_whole(out, "stride", e->group.stride);
        ft__json_member_whole(out, "flows", e->flows);
        ft__answer_figure(out, "bytes", e->bytes);
        ft__answer_figure(out, "closed_ms", e->closed.ms);
        ft__answer_figure(out, "simulated_ms", e->simulated_ms);
        ft__answer_figure(out, "wire_ms", e->wire_ms);
        ft__answer_figure(out, "flows_ms", e->flows_ms);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__json_close(out);
}
