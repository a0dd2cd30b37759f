/* config.c: the user's defaults. */
#define _POSIX_C_SOURCE 200809L
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/error.h"
#include "base/file.h"
#include "toml.h"

enum {
    ANSWERS = CLI_TRAIN | CLI_INFER | CLI_SCALE | CLI_LARGEST | CLI_KERNEL | CLI_PLANS | CLI_SERVE | CLI_EXCHANGE,
    LOOKS = CLI_DOCTOR,
    FILE_CAP = 1 << 20
};

/* What can be kept. `only`: commands for which a kept value makes sense, of those that have the option; `first`: those
 * that take one value where several are kept. */
static const struct setting {
    const char *key, *variable;
    cli_option_id option;
    unsigned only, first;
    bool listed;
} settings[] = {
    {"gpu", "FORETELL_GPU", OPT_GPU, ANSWERS | LOOKS, CLI_PLANS | CLI_SERVE, true},
    {"predictor", "FORETELL_PREDICTOR", OPT_PREDICTOR,
     ANSWERS | LOOKS | CLI_CHOOSE | CLI_BATCH | CLI_COMPARE | CLI_TRACE | CLI_WEB, 0, false},
    {"calibration", "FORETELL_CALIBRATION", OPT_CALIBRATION,
     ANSWERS | LOOKS | CLI_CHOOSE | CLI_BATCH | CLI_COMPARE | CLI_TRACE | CLI_WEB, 0, false},
    {"price", "FORETELL_PRICE", OPT_OWN_PRICE, CLI_CHOOSE, 0, false},
};
enum { SETTINGS = sizeof settings / sizeof *settings };
static const char prices[] = "prices.";

static ft_status keep(cli_config *c, cli_option_id option, const char *value, size_t length, const char *from,
                      ft_error *err)
{
    if (c->count == CLI_CONFIG_MOST) return ft__fail(err, FT_E_RANGE, "%s: more than %d values", from, CLI_CONFIG_MOST);
    char *copy = malloc(length + 1);
    if (!copy) return ft__no_memory(err);
    memcpy(copy, value, length);
    copy[length] = '\0';
    struct cli_default *to = &c->defaults[c->count++];
    to->option = option;
    to->value = copy;
    to->from = from;
    return FT_OK;
}

static bool kept(const cli_config *c, cli_option_id option)
{
    for (int i = 0; i < c->count; i++)
        if (c->defaults[i].option == option) return true;
    return false;
}

/* -- the file ---------------------------------------------------------------------------------- */

static ft_status bad(const cli_config *c, const cli_toml_value *v, ft_status code, const char *expected, ft_error *err)
{
    return ft__fail_at(err, code, c->file, v->line, 0, "\"%s\" %s", v->path, expected);
}

static ft_status unknown(const cli_config *c, const cli_toml_value *v, ft_error *err)
{
    static const char *const known[] = {"gpu", "predictor", "calibration", "prices"};
    const char *near = ft__nearest(v->path, known, sizeof known / sizeof *known);
    return ft__fail_at(err, FT_E_KEY, c->file, v->line, 0, "unknown setting \"%.60s\"; %s%s%s", v->path,
                       near ? "did you mean \"" : "there are gpu, predictor, calibration and the table prices",
                       near ? near : "", near ? "\"?" : "");
}

static ft_status take_price(cli_config *c, const cli_toml_value *v, ft_error *err)
{
    const char *gpu = v->path + sizeof prices - 1;
    if (v->type != CLI_TOML_NUMBER || !(v->number > 0))
        return bad(c, v, FT_E_TYPE, "is dollars of a GPU-hour: a number above 0", err);
    if (strpbrk(gpu, ",=")) return bad(c, v, FT_E_NAME, "is not the name of a GPU", err);
    ft__text_addf(&c->prices, "%s%s=", c->prices.length ? "," : "", gpu);
    ft__text_add_number(&c->prices, v->number, 15); /* 2.2 as it was written */
    return c->prices.failed ? ft__no_memory(err) : FT_OK;
}

static ft_status take(void *user, const cli_toml_value *v, ft_error *err)
{
    cli_config *c = user;
    if (!strncmp(v->path, prices, sizeof prices - 1)) return take_price(c, v, err);
    const struct setting *s = NULL;
    for (int i = 0; i < SETTINGS; i++)
        if (!strcmp(v->path, settings[i].key) && settings[i].option != OPT_OWN_PRICE) s = &settings[i];
    if (!s) return unknown(c, v, err);
    for (int i = 0; i < c->count; i++)
        if (c->defaults[i].option == s->option && c->defaults[i].from == c->file)
            return bad(c, v, FT_E_SYNTAX, "stands there twice", err);
    if (kept(c, s->option)) return FT_OK; /* a variable said it */
    if (v->type == CLI_TOML_TEXT && *v->text) return keep(c, s->option, v->text, strlen(v->text), c->file, err);
    if (v->type != CLI_TOML_LIST || !s->listed || !v->count)
        return bad(c, v, FT_E_TYPE, s->listed ? "is a text, or a list of texts" : "is a text", err);
    const char *each = v->text;
    for (size_t i = 0; i < v->count; i++, each += strlen(each) + 1)
        FT_TRY(keep(c, s->option, each, strlen(each), c->file, err));
    return FT_OK;
}

/* True: `out` names a file; `must`: it was named by somebody. */
static bool file_of(char *out, size_t room, bool *must)
{
    const char *named = getenv("FORETELL_CONFIG"), *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    *must = named != NULL;
    int length = named                        ? snprintf(out, room, "%s", named)
                 : folder && folder[0] == '/' ? snprintf(out, room, "%s/foretell.toml", folder)
                 : home && home[0]            ? snprintf(out, room, "%s/.config/foretell.toml", home)
                                              : 0;
    return length > 0 && (size_t)length < room;
}

/* Settings become requests, which are UTF-8, as TOML is. */
static ft_status spelt(const cli_config *c, const char *text, size_t length, ft_error *err)
{
    int line = 1;
    for (size_t at = 0, n; at < length; at += n) {
        n = ft__utf8_length(text + at, length - at);
        if (!n) return ft__fail_at(err, FT_E_SYNTAX, c->file, line, 0, "a byte that is not UTF-8");
        line += text[at] == '\n';
    }
    return FT_OK;
}

static ft_status read_file(cli_config *c, ft_error *err)
{
    char path[4096];
    bool must;
    char *text = NULL;
    size_t length = 0;
    if (!file_of(path, sizeof path, &must) || (!must && !ft__file_exists(path))) return FT_OK;
    c->file = strdup(path);
    if (!c->file) return ft__no_memory(err);
    FT_TRY(ft__file_read(path, FILE_CAP, &text, &length, err));
    ft_status status = spelt(c, text, length, err);
    if (status == FT_OK) status = cli_toml_read(text, length, c->file, take, c, err);
    free(text);
    return status;
}

/* -- both -------------------------------------------------------------------------------------- */

ft_status cli_config_read(cli_config *c, ft_error *err)
{
    memset(c, 0, sizeof *c);
    for (int i = 0; i < SETTINGS; i++) {
        const char *said = getenv(settings[i].variable);
        if (!said || !*said) continue;
        if (!cli_is_utf8(said))
            return ft__fail_at(err, FT_E_SYNTAX, settings[i].variable, 0, 0, "its value is not UTF-8");
        for (const char *at = said; *at;) { /* "h100_sxm,h200_sxm" is two; a path or a price is one */
            size_t length = settings[i].listed ? strcspn(at, ",") : strlen(at);
            if (length) FT_TRY(keep(c, settings[i].option, at, length, settings[i].variable, err));
            at += length + (at[length] == ',');
        }
    }
    FT_TRY(read_file(c, err));
    if (c->prices.length && !kept(c, OPT_OWN_PRICE))
        FT_TRY(keep(c, OPT_OWN_PRICE, c->prices.at, c->prices.length, c->file, err));
    return FT_OK;
}

void cli_config_free(cli_config *c)
{
    for (int i = 0; i < c->count; i++) free(c->defaults[i].value);
    ft__text_free(&c->prices);
    free(c->file);
    memset(c, 0, sizeof *c);
}

bool cli_config_matters(const cli_command *command)
{
    for (int i = 0; i < SETTINGS; i++)
        if (settings[i].only & command->bit) return true;
    return false;
}

void cli_config_apply(const cli_config *c, cli_args *args)
{
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        if (!(s->only & args->command->bit) || cli_has(args, s->option)) continue;
        for (int k = 0; k < c->count; k++) {
            if (c->defaults[k].option != s->option) continue;
            args->given[args->given_count++] = (struct cli_given){s->option, c->defaults[k].value, c->defaults[k].from};
            if (s->first & args->command->bit) break;
        }
    }
}
