/* key_table.c: the table of request keys as JSON, for whoever is not written in C: scripts/keys makes the tables of
 * docs/interface.md and Python's keywords from it. */
#include "foretell.h"

#include "base/json_write.h"
#include "generate.h"
#include "request/keys.h"
#include "request/request.h"

static void add_key(ft_text *out, const ft_key_row *k)
{
    char room[32];
    const char *standard = ft__key_standard(k, room);
    ft__json_open(out);
    ft__json_member_text(out, "key", k->key);
    ft__json_member_text(out, "section", ft__section_title(k->section));
    ft__json_member_text(out, "inside", *ft__section_name(k->section) ? ft__section_name(k->section) : NULL);
    ft__json_member_text(out, "type", ft__key_type_name(k->type));
    if (k->low < k->high) {
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

static void add_fields(ft_text *out, const char *name, const ft_field *fields, size_t count, ft_need need)
{
    ft__json_member_list(out, name);
    for (size_t i = 0; i < count; i++)
        if (fields[i].need == need) ft__json_add_text(out, fields[i].key);
    ft__json_close_list(out);
}

/* The names of a kind, and which of its keys it needs. */
static void add_operator(ft_text *out, ft_op_kind kind)
{
    size_t count, names;
    const ft_field *fields = ft__request_fields(kind, &count);
    const char *const *all = ft__request_op_names(&names);
    ft__json_open(out);
    ft__json_member_list(out, "op");
    for (size_t i = 0; i < names; i++) {
        ft_op op;
        ft_op_init(&op, all[i]);
        if (op.kind == kind) ft__json_add_text(out, all[i]);
    }
    ft__json_close_list(out);
    add_fields(out, "needed", fields, count, FT_REQUIRED);
    add_fields(out, "optional", fields, count, FT_OPTIONAL);
    ft__json_close(out);
}

void cli_add_keys(ft_text *out)
{
    ft__json_open(out);
    ft__json_member_list(out, "keys");
    for (int i = 0; i < FT_KEY_COUNT; i++) {
        ft__json_line(out);
        add_key(out, &ft__keys[i]);
    }
    ft__json_close_list(out);
    ft__json_member_list(out, "operators");
    for (int i = 0; i < FT_OP_KIND_COUNT; i++) {
        size_t count;
        ft__request_fields((ft_op_kind)i, &count);
        if (count) add_operator(out, (ft_op_kind)i);
    }
    ft__json_close_list(out);
    ft__json_close(out);
    ft__text_add(out, "\n");
}
