/* compare_answer.c: a comparison as one JSON object. */
#include <stdlib.h>

#include "report/json/answer.h"
#include "report/text/compare_screen.h"

enum { MOST_ASKED = 48, DIGITS = 6 };

/* Differences may be below zero, which ft__answer_figure leaves out. */
static void add_number(ft_text *out, const char *key, double value) { ft__json_member_number(out, key, value, DIGITS); }

static bool add_asked(ft_text *out, const ft_compared *c, size_t count)
{
    ft_asked *asked = calloc(MOST_ASKED + 1, sizeof *asked);
    if (!asked) return false;
    size_t found = ft__compare_asked(c, count, asked, MOST_ASKED);
    ft__json_member_open(out, "asked");
    for (size_t i = 0; i < found; i++) {
        ft__json_member_list(out, asked[i].key);
        for (size_t k = 0; k < count; k++) ft__json_add_tree(out, asked[i].value[k]);
        ft__json_close_list(out);
    }
    ft__json_close(out);
    free(asked);
    return true;
}

static void add_pair(ft_text *out, const ft_pair *p)
{
    add_number(out, "work", p->work);
    add_number(out, "speedup", p->a_ms / p->b_ms);
    add_number(out, "change_ms", p->change_ms);
    ft__json_member_flag(out, "intervals_apart", p->apart);
    if (p->cause_count == 0) return;
    ft__json_member_list(out, "causes");
    for (size_t i = 0; i < p->cause_count; i++) {
        const ft_cause *c = &p->causes[i];
        ft__json_open(out);
        ft__json_member_text(out, "part", c->name);
        add_number(out, "a_ms", c->a_ms);
        add_number(out, "b_ms", c->b_ms);
        add_number(out, "change_ms", c->b_ms - c->a_ms);
        ft__answer_word(out, "why", c->why);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    if (!p->kernels) return;
    ft__json_member_list(out, "kernels");
    for (size_t i = 0; i < p->kernel_count; i++) {
        const ft_kernel_pair *k = &p->kernels[i];
        ft__json_open(out);
        ft__json_member_text(out, "name", k->name);
        ft__answer_word(out, "op", k->op);
        ft__answer_word(out, "phase", k->phase);
        ft__answer_word(out, "block", k->block);
        add_number(out, "a_launches", k->launches[0]);
        add_number(out, "b_launches", k->launches[1]);
        add_number(out, "a_ms", k->ms[0]);
        add_number(out, "b_ms", k->ms[1]);
        add_number(out, "change_ms", k->ms[1] - k->ms[0]);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

bool ft__answer_compared(ft_text *out, const json_t *id, const ft_compared *c, size_t count, const char *warnings)
{
    bool timed = c[0].kind == FT_COMPARE_STEP || c[0].kind == FT_COMPARE_KERNEL, made = true;
    ft__answer_begin(out, id);
    ft__answer_word(out, "task", c[0].task);
    made = add_asked(out, c, count);
    ft__json_member_list(out, "answers");
    for (size_t i = 0; i < count && made; i++) {
        ft__json_open(out);
        ft__json_member_text(out, "name", c[i].name);
        if (timed) ft__answer_figure(out, "ms", ft__compared_figure(c[i].answer, c[0].kind ? "ms" : "step_ms"));
        if (c[0].kind == FT_COMPARE_STEP || c[0].kind == FT_COMPARE_MEMORY)
            ft__answer_bytes(out, "peak_bytes", ft__compared_figure(c[i].answer, "memory.peak_bytes"));
        if (timed && i > 0) { /* against the first */
            ft_pair p;
            made = ft__compare_pair(&c[0], &c[i], &p);
            if (made) add_pair(out, &p);
            if (made) free(p.kernels);
        }
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__answer_lines(out, "warnings", warnings);
    ft__json_close(out);
    return made && !out->failed;
}
