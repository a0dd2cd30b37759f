/* gpu_screen.c: the catalogue as a table, and one GPU as a sheet with its sources. */
#include "report/text/gpu_screen.h"

#include <stdio.h>
#include <string.h>

#include "device/balance.h"
#include "report/text/columns.h"
#include "report/text/lines.h"

static void add_or_dash(ft_columns *c, double value, int digits)
{
    if (value > 0)
        ft__text_add_number(ft__cell(c), value, digits);
    else
        ft__cell_add(c, "-");
}

static void add_half_precision(ft_columns *c, const ft_device *d)
{
    /* Before bf16 there was fp16: marked, since a bf16 model does not run there as it is. */
    if (d->peak_tflops[FT_BF16] > 0 || d->peak_tflops[FT_FP16] <= 0) {
        add_or_dash(c, d->peak_tflops[FT_BF16], 5);
        return;
    }
    ft_text *cell = ft__cell(c);
    ft__text_add(cell, "fp16 ");
    ft__text_add_number(cell, d->peak_tflops[FT_FP16], 5);
}

bool ft__screen_gpus(ft_text *out, const ft_style *style, const ft_gpu_sheet *sheets, size_t count)
{
    static const char *const head[] = {"gpu",  "generation", "year", "GiB", "GB/s", "fp32",
                                       "bf16", "fp8",        "fp4",  "W",   "link", "$/h"};
    bool link = style->width >= 110, year = style->width >= 90; /* what a narrow terminal does without */
    ft_columns c;
    ft__columns_init(&c, link ? "llrrrrrrrrlr" : year ? "llrrrrrrrrr" : "llrrrrrrrr");
    c.drop = link ? "kcbifjhle" : year ? "cbifjhke" : "bheigjd"; /* name, memory and bf16 stay */
    for (int i = 0; i < 12; i++)
        if ((year || i != 2) && (link || i != 10)) ft__cell_add(&c, head[i]);
    for (size_t i = 0; i < count; i++) {
        const ft_device *d = &sheets[i].device;
        ft__cell_add(&c, d->name);
        ft__cell_add(&c, d->generation);
        if (year) add_or_dash(&c, d->year, 4);
        add_or_dash(&c, d->memory_gib, 5);
        add_or_dash(&c, d->memory_gbps, 5);
        add_or_dash(&c, d->peak_tflops[FT_FP32], 4);
        add_half_precision(&c, d);
        add_or_dash(&c, d->peak_tflops[FT_FP8], 5);
        add_or_dash(&c, d->peak_tflops[FT_FP4], 5);
        add_or_dash(&c, d->tdp_w, 4);
        if (link) ft__cell_add(&c, d->link_kind[0] ? d->link_kind : "-");
        if (d->price_usd_per_hour > 0)
            ft__cell_addf(&c, "%.2f", d->price_usd_per_hour);
        else
            ft__cell_add(&c, "-");
    }
    bool printed = ft__columns_print(&c, out, style, 0, true);
    ft__columns_free(&c);
    ft__text_addf(out, "\n%zu GPU%s; dense TFLOP/s by number format. Sources: foretell gpus NAME\n", count,
                  count == 1 ? "" : "s");
    return printed && !out->failed;
}

/* -- one GPU ----------------------------------------------------------------------------------- */

/* Text broken at blanks to fit between `indent` and the style's width; `at` is where the cursor stands. */
static void add_wrapped(ft_text *out, const ft_style *style, const char *text, int at, int indent)
{
    int width = style->width > 110 ? 110 : style->width;
    for (bool first = true; *text; first = false) {
        char word[256];
        size_t length = strcspn(text, " ");
        if (length >= sizeof word) length = sizeof word - 1;
        memcpy(word, text, length);
        word[length] = '\0';
        int room = ft__text_width(word);
        if (!first && at + 1 + room > width) {
            ft__text_add(out, "\n");
            ft__text_pad(out, indent);
            at = indent;
        } else if (!first) {
            ft__text_add(out, " ");
            at++;
        }
        ft__text_add_plain(out, word);
        at += room;
        text += length;
        while (*text == ' ') text++;
    }
    ft__text_add(out, "\n");
}

static bool add_peaks(ft_text *out, const ft_style *style, const ft_device *d)
{
    ft_columns c;
    ft__columns_init(&c, "lrrr");
    ft__cell_add(&c, "format");
    ft__cell_add(&c, "TFLOP/s");
    ft__cell_add(&c, "without matrix units");
    ft__cell_add(&c, "balance FLOP/B");
    for (int t = 0; t < FT_DTYPE_COUNT; t++) {
        if (d->peak_tflops[t] <= 0 && d->vector_tflops[t] <= 0) continue;
        ft__cell_add(&c, ft_dtype_name((ft_dtype)t));
        add_or_dash(&c, d->peak_tflops[t], 5);
        add_or_dash(&c, d->vector_tflops[t], 5);
        double balance = ft__machine_balance(d, (ft_dtype)t);
        if (balance > 0)
            ft__add_figure(ft__cell(&c), balance, 3);
        else
            ft__cell_add(&c, "-");
    }
    ft__heading(out, style, "Peaks, dense");
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

static bool add_memory(ft_text *out, const ft_style *style, const ft_device *d)
{
    ft_memory_level level[FT_MEMORY_LEVELS];
    ft__memory_levels(d, level);
    ft_columns c;
    ft__columns_init(&c, "lrrl");
    ft__cell_add(&c, "level");
    ft__cell_add(&c, "size");
    ft__cell_add(&c, "GB/s");
    ft__cell_add(&c, "bandwidth from");
    for (int i = 0; i < FT_MEMORY_LEVELS; i++) {
        ft__cell_add(&c, level[i].name);
        double mib = level[i].bytes / (1 << 20);
        ft_text *cell = ft__cell(&c);
        if (mib > 0) {
            ft__text_add_number(cell, mib >= 4096 ? mib / 1024 : mib, 4);
            ft__text_add(cell, mib >= 4096 ? " GiB" : " MiB");
        } else {
            ft__text_add(cell, "-");
        }
        if (level[i].gbps > 0)
            ft__text_addf(ft__cell(&c), "%.0f", level[i].gbps);
        else
            ft__cell_add(&c, "-");
        ft__cell_add(&c, level[i].basis ? level[i].basis : "");
    }
    ft__heading(out, style, "Memory");
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

static void add_clock(ft_text *facts, const char *what, double mhz)
{
    if (mhz > 0) ft__text_addf(facts, "%s%s %.0f MHz", facts->length ? ", " : "", what, mhz);
}

/* A line of facts, wrapped; the text is cleared for the next. */
static void add_facts(ft_text *out, const ft_style *style, ft_text *facts)
{
    if (facts->length) {
        ft__text_add(out, "  ");
        add_wrapped(out, style, facts->at, 2, 4);
    }
    ft__text_empty(facts);
}

/* One after the other, with commas. */
static void add_fact(ft_text *facts, const char *format, double value)
{
    if (facts->length) ft__text_add(facts, ", ");
    ft__text_addf(facts, format, value);
}

/* What its kernels can do, in words. */
static void add_traits(ft_text *facts, const ft_device *d)
{
    static const char *const issues[FT_ISSUE_COUNT] = {
        [FT_ISSUE_NONE] = "no matrix units",
        [FT_ISSUE_MMA] = "matrix instructions of warps (mma)",
        [FT_ISSUE_WGMMA] = "matrix instructions of warp groups (wgmma)",
        [FT_ISSUE_TCGEN05] = "matrix instructions of whole blocks (tcgen05)",
        [FT_ISSUE_MFMA] = "matrix instructions of wavefronts (mfma)",
        [FT_ISSUE_XMX] = "matrix instructions of vector engines (xmx)",
    };
    static const char *const copies[FT_COPY_COUNT] = {"through registers", "by cp.async", "by TMA"};
    if ((unsigned)d->matrix_issue < FT_ISSUE_COUNT) ft__text_add(facts, issues[d->matrix_issue]);
    if ((unsigned)d->async_copy < FT_COPY_COUNT) ft__text_addf(facts, ", copies %s", copies[d->async_copy]);
    if (d->dual_issue) ft__text_add(facts, ", dual issue");
    if (d->dies > 1) add_fact(facts, "%g dies", d->dies);
    if (d->l2_partitions > 1) add_fact(facts, "L2 in %g partitions", d->l2_partitions);
    if (d->inline_ecc) ft__text_add(facts, ", error correction inside the memory");
    if (d->matrix_pj_per_flop > 0) add_fact(facts, "%g pJ per bf16 flop", d->matrix_pj_per_flop);
    if (d->exp_per_clk_per_sm > 0) add_fact(facts, "%g exponentials per clock and SM", d->exp_per_clk_per_sm);
}

static void add_links(ft_text *facts, const ft_device *d)
{
    if (d->link_kind[0]) ft__text_addf(facts, "%s %g GB/s per direction", d->link_kind, d->link_gbps_per_direction);
    if (d->link_kind[0] && d->link_gpus > 1) ft__text_addf(facts, " among %d GPUs", d->link_gpus);
    if (d->link_apart) ft__text_add(facts, " whose bridge is sold apart");
    if (d->link_switched) ft__text_addf(facts, " behind a switch%s", d->link_reduces ? " that adds" : "");
    if (d->pcie_gbps > 0) add_fact(facts, "PCIe %g GB/s", d->pcie_gbps);
    if (d->server_nic_gbit > 0) add_fact(facts, "servers with ports of %g Gbit/s", d->server_nic_gbit);
}

static void add_chip(ft_text *out, const ft_style *style, const ft_device *d)
{
    const char *cores = d->vendor == FT_VENDOR_AMD ? "CUs" : d->vendor == FT_VENDOR_INTEL ? "Xe cores" : "SMs";
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add_plain(out, d->title[0] ? d->title : d->name);
    ft__ink_end(out, style);
    ft__text_add(out, "  ");
    ft__text_add_plain(out, d->name);
    ft__text_add(out, "\n");
    ft_text facts = {0};
    ft__text_addf(&facts, "%s %s %s", ft__vendor_name(d->vendor), d->architecture, d->generation);
    if (d->compute_capability[0]) ft__text_addf(&facts, " %s", d->compute_capability);
    if (d->year > 0) ft__text_addf(&facts, ", %d", d->year);
    if (d->process_nm > 0) ft__text_addf(&facts, ", %g nm", d->process_nm);
    if (d->tdp_w > 0) ft__text_addf(&facts, ", %g W", d->tdp_w);
    if (d->power_cap_w > 0) ft__text_addf(&facts, " held to %g", d->power_cap_w);
    add_facts(out, style, &facts);
    ft__text_addf(&facts, "%d %s", d->sms, cores);
    if (d->lanes_per_sm > 0) ft__text_addf(&facts, " of %d fp32 lanes", d->lanes_per_sm);
    if (d->matrix_fma_per_clk_sm > 0)
        ft__text_addf(&facts, " and %g fp16 matrix FMA per clock", d->matrix_fma_per_clk_sm);
    if (d->uncapped_fma_per_clk_sm > d->matrix_fma_per_clk_sm)
        ft__text_addf(&facts, " (%g where no cap holds them)", d->uncapped_fma_per_clk_sm);
    add_facts(out, style, &facts);
    add_traits(&facts, d);
    add_facts(out, style, &facts);
    add_clock(&facts, "boost", d->boost_mhz);
    add_clock(&facts, "base", d->base_mhz);
    add_clock(&facts, "runs at", d->running_mhz);
    add_clock(&facts, "matrix peak at", d->matrix_mhz);
    add_clock(&facts, "sustained", d->sustained_mhz);
    add_facts(out, style, &facts);
    add_links(&facts, d);
    if (d->price_usd_per_hour > 0)
        ft__text_addf(&facts, "%sabout $%.2f per hour", facts.length ? ", " : "", d->price_usd_per_hour);
    add_facts(out, style, &facts);
    ft__text_drop(&facts, out);
}

static void add_warnings(ft_text *out, const ft_style *style, const char *warnings)
{
    if (!warnings || !*warnings) return;
    ft__heading(out, style, "Warnings");
    while (*warnings) {
        char one[512];
        size_t length = strcspn(warnings, "\n");
        snprintf(one, sizeof one, "%.*s", (int)(length < sizeof one ? length : sizeof one - 1), warnings);
        ft__text_add(out, "  ");
        ft__ink(out, style, FT_INK_YELLOW);
        add_wrapped(out, style, one, 2, 2);
        ft__ink_end(out, style);
        warnings += length;
        if (*warnings) warnings++;
    }
}

static void add_sources(ft_text *out, const ft_style *style, const json_t *spec)
{
    const json_t *notes = json_object_get(spec, "notes"), *sources = json_object_get(spec, "sources");
    if (json_array_size(notes) > 0) {
        ft__heading(out, style, "Notes");
        for (size_t i = 0; i < json_array_size(notes); i++) {
            const char *note = json_string_value(json_array_get(notes, i));
            if (!note) continue;
            ft__text_add(out, "  ");
            add_wrapped(out, style, note, 2, 2);
        }
    }
    if (json_object_size(sources) > 0) {
        ft__heading(out, style, "Sources");
        const char *key;
        json_t *value, *readable = json_object_get(spec, "sources");
        json_object_foreach (readable, key, value) {
            if (!json_is_string(value)) continue;
            ft__text_add(out, "  ");
            ft__ink(out, style, FT_INK_DIM);
            add_wrapped(out, style, key, 2, 2);
            ft__ink_end(out, style);
            ft__text_add(out, "      ");
            add_wrapped(out, style, json_string_value(value), 6, 6);
        }
    }
}

bool ft__screen_gpu(ft_text *out, const ft_style *style, const ft_gpu_sheet *sheet)
{
    const ft_device *device = &sheet->device;
    add_chip(out, style, device);
    bool printed = add_peaks(out, style, device) && add_memory(out, style, device);
    add_warnings(out, style, sheet->warnings);
    if (sheet->spec) add_sources(out, style, sheet->spec);
    return printed && !out->failed;
}
