/* key_table.c: the table of request keys as JSON, for whoever is not written in C: scripts/keys makes the tables of
 * docs/interface.md and Python's keywords from it. */
#include <math.h>

#include "base/json_write.h"
#include "generate.h"
#include "request/keys.h"

static const char *const sections[FT_SECTION_COUNT] = {
    [FT_SECTION_COMMON] = "common",     [FT_SECTION_OPERATOR] = "operator",     [FT_SECTION_MODEL] = "model",
    [FT_SECTION_PARALLEL] = "parallel", [FT_SECTION_CLUSTER] = "cluster",       [FT_SECTION_LOADER] = "loader",
    [FT_SECTION_KERNEL] = "kernel",     [FT_SECTION_COLLECTIVE] = "collective", [FT_SECTION_TRACE] = "trace",
    [FT_SECTION_LORA] = "lora",
};

static const char *const types[] = {
    [FT_KEY_WHOLE] = "whole", [FT_KEY_REAL] = "real",       [FT_KEY_SWITCH] = "switch", [FT_KEY_WORD] = "word",
    [FT_KEY_NAMES] = "names", [FT_KEY_DTYPE] = "dtype",     [FT_KEY_TEXT] = "text",     [FT_KEY_GPU] = "gpu",
    [FT_KEY_ANY] = "any",     [FT_KEY_SECTION] = "section",
};

static void add_key(ft_text *out, const ft_key_row *k)
{
    char room[32];
    const char *standard = ft__key_standard(k, room);
    ft__json_open(out);
    ft__json_member_text(out, "key", k->key);
    ft__json_member_text(out, "section", sections[k->section]);
    ft__json_member_text(out, "type", types[k->type]);
    if (k->type == FT_KEY_WHOLE || k->type == FT_KEY_REAL) {
        ft__json_member_number(out, "low", k->low, 17);
        ft__json_member_number(out, "high", k->high, 17);
    }
    if (k->word_count) {
        ft__json_member_list(out, "words");
        for (size_t i = 0; i < k->word_count; i++) ft__json_add_text(out, k->words[i]);
        ft__json_close_list(out);
    }
    ft__json_member_text(out, "default", *standard ? standard : NULL);
    ft__json_member_text(out, "flag", k->flag);
    ft__json_member_text(out, "help", k->help);
    ft__json_member_text(out, "docs", k->docs);
    ft__json_close(out);
}

void cli_add_keys(ft_text *out)
{
    ft__json_open_list(out);
    for (int i = 0; i < FT_KEY_COUNT; i++) {
        if (i) ft__json_line(out);
        if (i) ft__text_add(out, " ");
        add_key(out, &ft__keys[i]);
    }
    ft__json_close_list(out);
    ft__text_add(out, "\n");
}
