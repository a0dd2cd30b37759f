/* page_compare.c: answers side by side as a page: what was asked differently, where the time differs, and why. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html/page.h"
#include "report/html/page_compare.h"
#include "report/text/compare_screen.h"
#include "report/text/lines.h"

enum { MOST_KERNELS = 60 };

static const ft_style plain = {.unicode = true, .width = 100000};

typedef ft_compared_page page;

static bool timed(const ft_compared *c) { return c->kind == FT_COMPARE_STEP || c->kind == FT_COMPARE_KERNEL; }

static void change_cell(ft_page_table *t, double by)
{
    ft__markup_reset(t->out, &t->cell);
    if (by != 0) ft__text_add(&t->cell, by < 0 ? "−" : "+");
    ft__add_figure(&t->cell, fabs(by), 4);
    ft__page_table_cell(t, t->cell.at ? t->cell.at : "");
}

/* Counted, not measured; a share of a launch is what work of another size makes of it. */
static void count_cell(ft_page_table *t, double value)
{
    ft__markup_reset(t->out, &t->cell);
    if (value > 0) ft__text_addf(&t->cell, "%.10g", round(100 * value) / 100);
    ft__page_table_cell(t, t->cell.length ? t->cell.at : "");
}

/* -- tables of all answers --------------------------------------------------------------------- */

/* "A B C", after `before` columns that are there already, and the change of two. */
static void letters_of(page *p, size_t before, bool changes, char *columns)
{
    for (size_t i = 0; i < p->count; i++) {
        p->heads[before + i] = p->letters[i];
        columns[before + i] = 'r';
    }
    size_t n = before + p->count;
    if (changes && p->count == 2) {
        p->heads[n] = "B − A";
        columns[n++] = 'l';
    }
    columns[n] = 0;
}

static bool rows_table(page *p, const char *label, const char *first, const ft_compared_row *rows, size_t count,
                       bool changes)
{
    char columns[FT_MOST_COMPARED + 4] = "l";
    p->heads[0] = first;
    letters_of(p, 1, changes, columns);
    ft_page_table t;
    ft__page_table_open(&t, p->out, label, columns, p->heads);
    bool whole = true;
    for (size_t i = 0; i < count; i++) {
        ft__page_table_cell(&t, rows[i].label + strspn(rows[i].label, " "));
        for (size_t k = 0; k < p->count; k++) ft__page_table_cell(&t, rows[i].cell[k]);
        if (changes && p->count == 2) ft__page_table_cell(&t, rows[i].change);
        whole = whole && !rows[i].failed;
    }
    ft__page_table_close(&t);
    return whole;
}

static bool asked_section(page *p)
{
    ft_asked *asked = calloc(FT_COMPARED_ROWS + 1, sizeof *asked);
    ft_compared_row *rows = calloc(FT_COMPARED_ROWS, sizeof *rows);
    bool made = asked && rows;
    size_t found = made ? ft__compared_asked_rows(p->c, p->count, &plain, asked, rows) : 0;
    ft__page_section(p->out, "asked", "What was asked",
                     found == SIZE_MAX
                         ? "These answers do not say; a request file does, and what a command prints with "
                           "--json."
                     : found == 0 ? "The same of all of them."
                                  : "The keys whose values differ.");
    if (made && found > 0 && found != SIZE_MAX) made = rows_table(p, "what was asked", "key", rows, found, false);
    ft__page_section_end(p->out);
    free(asked);
    free(rows);
    return made;
}

static bool figures_section(page *p)
{
    ft_compared_row *rows = calloc(FT_COMPARED_ROWS, sizeof *rows);
    if (!rows) return false;
    size_t found = ft__compared_rows(p->c, p->count, &plain, rows);
    bool made = true;
    if (found > 0) {
        ft__page_section(p->out, "figures", "Figures", "");
        made = rows_table(p, "figures", "figure", rows, found, true);
        ft__page_section_end(p->out);
    }
    free(rows);
    return made;
}

static bool cells_section(page *p)
{
    ft_compared_cell *cells = calloc(FT_COMPARED_CELLS, sizeof *cells);
    if (!cells) return false;
    char columns[FT_MOST_COMPARED + 5] = "lrr", change[FT_COMPARED_CELL];
    size_t found = ft__compared_cells(p->c, p->count, cells, FT_COMPARED_CELLS);
    p->heads[0] = "ms of";
    p->heads[1] = "batch";
    p->heads[2] = "context";
    letters_of(p, 3, true, columns);
    ft__page_section(p->out, "cells", "Batches and contexts",
                     found ? "Those that all of them have." : "There is no batch and context that all of them have.");
    ft_page_table t;
    if (found) ft__page_table_open(&t, p->out, "batches and contexts", columns, p->heads);
    bool made = true;
    for (size_t k = 0; k < found; k++) {
        ft__page_table_cell(&t, cells[k].task);
        count_cell(&t, cells[k].batch);
        count_cell(&t, cells[k].seq);
        for (size_t i = 0; i < p->count; i++) ft__page_table_figure(&t, cells[k].ms[i], 4);
        made = made && ft__compared_change(change, cells[k].ms[0], cells[k].ms[1]);
        if (p->count == 2) ft__page_table_cell(&t, change);
    }
    if (found) ft__page_table_close(&t);
    ft__page_section_end(p->out);
    free(cells);
    return made;
}

static bool both(const page *p, bool (*draw)(const page *p, const ft_frame *f))
{
    return draw(p, &ft__frame_wide) && draw(p, &ft__frame_narrow);
}

/* -- why --------------------------------------------------------------------------------------- */

static void causes_table(page *p, size_t other)
{
    const ft_pair *pair = &p->pairs[other];
    char b_ms[16];
    snprintf(b_ms, sizeof b_ms, "%s, ms", p->letters[other]);
    const char *const head[] = {"part", "A, ms", b_ms, "change, ms", "why"};
    ft_page_table t;
    ft__page_table_open(&t, p->out, "parts of the difference", "lrrrw", head);
    for (size_t i = 0; i < pair->cause_count; i++) {
        const ft_cause *c = &pair->causes[i];
        double by = fabs(c->b_ms - c->a_ms);
        if (by < 0.005 * fabs(pair->change_ms) || !(by > 1e-4 * pair->a_ms)) continue; /* as on the screen */
        ft__page_table_cell(&t, c->name);
        ft__page_table_figure(&t, c->a_ms, 4);
        ft__page_table_figure(&t, c->b_ms, 4);
        change_cell(&t, c->b_ms - c->a_ms);
        ft__page_table_cell(&t, c->why);
    }
    ft__page_table_close(&t);
}

static void kernels_table(page *p, size_t other)
{
    const ft_pair *pair = &p->pairs[other];
    if (pair->kernel_count == 0) return;
    size_t shown = pair->kernel_count < MOST_KERNELS ? pair->kernel_count : MOST_KERNELS;
    char summary[96], b_x[16], b_ms[16];
    snprintf(summary, sizeof summary, "%s%zu kernels, the largest change first",
             shown < pair->kernel_count ? "The first of " : "", pair->kernel_count);
    snprintf(b_x, sizeof b_x, "%s ×", p->letters[other]);
    snprintf(b_ms, sizeof b_ms, "%s, ms", p->letters[other]);
    const char *const head[] = {"kernel", "phase", "op", "A ×", b_x, "A, ms", b_ms, "change, ms"};
    ft__page_details(p->out, summary);
    ft_page_table t;
    ft__page_table_open(&t, p->out, "kernels", "lllrrrrr", head);
    for (size_t i = 0; i < shown; i++) {
        const ft_kernel_pair *k = &pair->kernels[i];
        ft__page_table_cell(&t, k->name);
        ft__page_table_cell(&t, k->phase);
        ft__page_table_cell(&t, k->op);
        count_cell(&t, k->launches[0]);
        count_cell(&t, k->launches[1]);
        ft__page_table_figure(&t, k->ms[0], 4);
        ft__page_table_figure(&t, k->ms[1], 4);
        change_cell(&t, k->ms[1] - k->ms[0]);
    }
    ft__page_table_close(&t);
    ft__page_details_end(p->out);
}

static void why_section(page *p, size_t other)
{
    const ft_pair *pair = &p->pairs[other];
    char id[16], title[64];
    ft_text words = {.cap = 1024};
    snprintf(id, sizeof id, "why-%c", 'b' + (int)other - 1);
    snprintf(title, sizeof title, "Why %s is %s than A", p->letters[other], pair->change_ms < 0 ? "faster" : "slower");
    if (fabs(pair->change_ms) <= 5e-4 * pair->a_ms) snprintf(title, sizeof title, "%s against A", p->letters[other]);
    if (fabs(pair->work - 1) > 1e-6) {
        ft__text_addf(&words, "Times of %s are for the work of A's step, ", p->letters[other]);
        ft__add_figure(&words, pair->work, 3);
        ft__text_add(&words, " times its own. ");
    }
    ft__text_add(&words, pair->apart ? "Their intervals do not meet." : "Their intervals overlap.");
    ft__page_section(p->out, id, title, words.at ? words.at : "");
    causes_table(p, other);
    kernels_table(p, other);
    ft__page_section_end(p->out);
    p->out->failed |= words.failed;
    ft__text_free(&words);
}

/* -- the page ---------------------------------------------------------------------------------- */

static void top_figures(page *p)
{
    ft__page_figures(p->out);
    for (size_t i = 0; i < p->count; i++) {
        ft_text a = {.cap = 256}, b = {.cap = 512};
        const char *key = p->c[i].kind == FT_COMPARE_STEP ? "step_ms" : p->c[i].kind == FT_COMPARE_KERNEL ? "ms" : "";
        if (*key) {
            ft__add_figure(&a, ft__compared_figure(p->c[i].answer, key), 4);
            ft__text_add(&a, " ms");
        } else {
            ft__add_gib(&a, ft__compared_figure(p->c[i].answer, "memory.peak_bytes"));
            ft__text_add(&a, " GiB");
        }
        if (i > 0 && timed(p->c)) {
            ft__add_figure(&b, p->pairs[i].a_ms / p->pairs[i].b_ms, 3);
            ft__text_add(&b, " times as fast as A");
            if (fabs(p->pairs[i].work - 1) > 1e-6) ft__text_add(&b, ", for the same work");
        } else if (i == 0) {
            ft__text_add(&b, "what others are held against");
        }
        ft__page_figure(p->out, NULL, p->labels[i], a.at ? a.at : "", b.at ? b.at : "");
        p->out->failed |= a.failed || b.failed;
        ft__text_free(&a);
        ft__text_free(&b);
    }
    ft__page_figures_end(p->out);
}

static void name_all(page *p)
{
    for (size_t i = 0; i < p->count; i++) {
        ft_text name = {.cap = 1024}, cut = {0};
        snprintf(p->letters[i], sizeof p->letters[i], "%c", (char)('A' + i));
        const char *folder = strrchr(p->c[i].name, '/'); /* of the file: the letter tells equal ones apart */
        ft__text_add_plain(&name, folder && folder[1] ? folder + 1 : p->c[i].name);
        ft__add_cut(&cut, &name, 40);
        snprintf(p->labels[i], sizeof p->labels[i], "%c  %s", (char)('A' + i), cut.at ? cut.at : "");
        p->out->failed |= name.failed || cut.failed;
        ft__text_free(&name);
        ft__text_free(&cut);
    }
}

static bool fill(page *p)
{
    bool made = asked_section(p);
    if (p->c[0].kind == FT_COMPARE_KERNEL) {
        ft__page_section(p->out, "times", "Time", "");
        made = made && both(p, ft__svg_compared_kernels);
        ft__page_section_end(p->out);
    }
    if (p->c[0].kind == FT_COMPARE_STEP) {
        ft__page_section(p->out, "times", "Where the time goes",
                         "Kernels by class, and the rest: for as much work as A does.");
        made = made && both(p, ft__svg_compared_times);
        ft__page_section_end(p->out);
        for (size_t i = 1; i < p->count; i++) why_section(p, i);
    }
    if (p->c[0].kind == FT_COMPARE_GRID) made = made && cells_section(p);
    if (p->c[0].kind == FT_COMPARE_STEP || p->c[0].kind == FT_COMPARE_MEMORY) {
        ft__page_section(p->out, "memory", "Memory", "At its peak, on one GPU.");
        made = made && both(p, ft__svg_compared_memory);
        ft__page_section_end(p->out);
    }
    return made && figures_section(p);
}

bool ft__page_compared(ft_text *out, const ft_comparison *all)
{
    const ft_compared *c = all->compared;
    size_t count = all->count;
    page *p = calloc(1, sizeof *p);
    ft_pair *pairs = calloc(count + 1, sizeof *pairs);
    bool made = p && pairs;
    for (size_t i = 1; made && timed(c) && i < count; i++) made = ft__compare_pair(&c[0], &c[i], &pairs[i]);
    if (made) {
        *p = (page){.out = out, .c = c, .count = count, .pairs = pairs};
        name_all(p);
        char title[80];
        ft_text names = {.cap = 4096};
        snprintf(title, sizeof title, "What differs: %.40s", c[0].task);
        for (size_t i = 0; i < count; i++) ft__text_addf(&names, "%s%s", i ? ", " : "", p->labels[i]);
        ft__page_open(out, title, names.at ? names.at : "");
        if (c[0].kind != FT_COMPARE_GRID) top_figures(p);
        ft__page_warnings(out, all->warnings.at);
        made = fill(p);
        ft__page_close(out);
        ft__text_drop(&names, out);
    }
    for (size_t i = 1; pairs && i < count; i++) free(pairs[i].kernels);
    free(pairs);
    free(p);
    return made && !out->failed;
}
