/* ask.c: a command line as a request. */
#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json/answer.h"
#include "simulator.h"
#include "terminal.h"

void cli_ask_key(cli_option_id option, char key[48])
{
    const cli_option *o = &cli_options[option];
    snprintf(key, 48, "%s", o->key ? o->key->key : o->name);
    for (char *at = key; !o->key && *at; at++)
        if (*at == '-') *at = '_';
}

static json_t *value_of(const cli_option *o, const char *text)
{
    int64_t whole;
    double real;
    if (o->kind == CLI_SWITCH) return json_boolean(text == NULL);
    if (o->kind != CLI_WHOLE && o->kind != CLI_REAL) return json_string(text);
    if (ft__whole_parse(text, &whole)) return json_integer(whole);
    return ft__number_parse(text, &real) ? json_real(real) : NULL;
}

/* "core_attn,moe_act" as an array. */
static json_t *list_of(const char *text)
{
    json_t *list = json_array();
    for (const char *at = text; list && at;) {
        size_t length = strcspn(at, ",");
        if (json_array_append_new(list, json_stringn(at, length)) != 0) {
            json_decref(list);
            return NULL;
        }
        at = at[length] ? at + length + 1 : NULL;
    }
    return list;
}

/* The object that holds an option's key: the request, or one inside it, made when it is first needed. */
static json_t *home_of(const cli_option *o, json_t *object)
{
    const char *key = ft__section_name(o->key->section);
    if (!*key) return object;
    json_t *inner = json_object_get(object, key);
    if (inner) return inner;
    return json_object_set_new(object, key, json_object()) == 0 ? json_object_get(object, key) : NULL;
}

bool cli_ask_flags(const cli_args *args, json_t *object)
{
    bool fine = object != NULL;
    for (int i = 0; fine && i < args->given_count; i++) {
        cli_option_id id = args->given[i].option;
        const cli_option *o = &cli_options[id];
        char key[48];
        if (!cli_option_asks(o) || id == OPT_GPU) continue;
        cli_ask_key(id, key);
        json_t *home = home_of(o, object);
        const char *text = args->given[i].value;
        json_t *value = o->key->type == FT_KEY_NAMES ? list_of(text) : value_of(o, text);
        fine = home && json_object_set_new(home, key, value) == 0;
    }
    return fine;
}

bool cli_ask_option(const cli_args *args, cli_option_id option, json_t *object)
{
    char key[48];
    if (!cli_has(args, option)) return true;
    cli_ask_key(option, key);
    return json_object_set_new(object, key, value_of(&cli_options[option], cli_value(args, option))) == 0;
}

bool cli_ask_operand(const cli_args *args, const char *key, json_t *object)
{
    return json_object_set_new(object, key, json_string(args->operands[0])) == 0;
}

bool cli_ask_operands(const cli_args *args, const char *key, json_t *object)
{
    json_t *list = json_array();
    bool fine = list != NULL;
    for (int i = 0; fine && i < args->operand_count; i++)
        fine = json_array_append_new(list, json_string(args->operands[i])) == 0;
    return json_object_set_new(object, key, list) == 0 && fine;
}

int cli_ask_whole(const cli_args *args, cli_option_id option, int64_t low, int64_t high, json_t *object)
{
    int64_t value = 0;
    char key[48];
    int status = cli_whole(args, option, low, high, &value);
    if (status || !cli_has(args, option)) return status;
    cli_ask_key(option, key);
    return json_object_set_new(object, key, json_integer(value)) ? cli_complain(FT_E_MEMORY, "out of memory") : 0;
}

int cli_ask_wholes(const cli_args *args, cli_option_id option, const char *key, size_t most, json_t *object)
{
    char flag[48];
    int64_t value;
    if (!cli_has(args, option)) return 0;
    json_t *list = json_array();
    bool fine = json_object_set_new(object, key, list) == 0;
    for (int i = 0; fine && i < args->given_count; i++) {
        if (args->given[i].option != option) continue;
        if (json_array_size(list) == most)
            return cli_usage(args->command, "%s: at most %zu of them", cli_flag(option, flag), most);
        if (!ft__whole_parse(args->given[i].value, &value) || value < 1 || value > FT_LARGEST_SIZE)
            return cli_usage(args->command, "%s takes a whole number from 1 to 2^40, not \"%s\"",
                             cli_flag(option, flag), args->given[i].value);
        fine = json_array_append_new(list, json_integer(value)) == 0;
    }
    return fine ? 0 : cli_complain(FT_E_MEMORY, "out of memory");
}

void cli_ask_answered(ft_text *out, const json_t *request)
{
    ft__json_reopen(out);
    ft__json_member_text(out, "version", FT_VERSION);
    ft__json_member_tree(out, "request", request);
    ft__json_close(out);
}

void cli_ask_name_flag(const cli_args *args, const char *operand_key, ft_error *err)
{
    char path[64], flag[48];
    const char *where = err->where;
    if (!strcmp(where, operand_key) && args->operand_count) {
        snprintf(err->where, sizeof err->where, "%s", args->operands[0]);
        return;
    }
    for (int i = 0; i < OPT_COUNT; i++) {
        const cli_option *o = &cli_options[i];
        if (!(o->commands & args->command->bit) || !cli_option_asks(o)) continue;
        const char *section = ft__section_name(o->key->section);
        snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", o->key->key);
        if (strcmp(path, where) != 0) continue;
        snprintf(err->where, sizeof err->where, "%s", cli_flag((cli_option_id)i, flag));
        return;
    }
}

int cli_ask_fail(const cli_args *args, const char *operand_key, ft_error *err)
{
    if (!strcmp(err->where, operand_key) || err->code == FT_E_NAME)
        err->where[0] = '\0';
    else
        cli_ask_name_flag(args, operand_key, err);
    return cli_fail(err);
}

/* -- whole models ------------------------------------------------------------------------------ */

int cli_asker_open(cli_asker *a, const cli_args *args, const char *task)
{
    ft_error err = {0};
    memset(a, 0, sizeof *a);
    a->args = args;
    a->json = cli_has(args, OPT_JSON);
    a->scratch.simulator = &cli_simulator;
    if (!cli_values(args, OPT_GPU, &a->gpus, &a->gpu_count)) return cli_complain(FT_E_MEMORY, "out of memory");
    if (a->gpu_count == 0) return cli_usage(args->command, "which GPU? --gpu h100_sxm (foretell gpus lists them)");
    ft_options options = {.predictor = cli_value(args, OPT_PREDICTOR), .calibration = cli_value(args, OPT_CALIBRATION)};
    if (ft_open(&a->ft, &options, &err) != FT_OK) return cli_fail(&err);
    a->object = json_object();
    const char *model = args->operand_count ? args->operands[0] : NULL;
    bool fine = a->object && json_object_set_new(a->object, "task", json_string(task)) == 0 &&
                (!model || json_object_set_new(a->object, "model", json_string(model)) == 0) &&
                json_object_set_new(a->object, "gpu", json_string(a->gpus[0])) == 0;
    if (!fine || !cli_ask_flags(args, a->object)) return cli_complain(FT_E_SYNTAX, "an argument is not UTF-8");
    return 0;
}

void cli_asker_close(cli_asker *a)
{
    ft__scratch_free(&a->scratch);
    json_decref(a->object);
    ft_close(a->ft);
    free(a->gpus);
}

bool cli_asker_set(cli_asker *a, const char *key, json_t *value)
{
    return json_object_set_new(a->object, key, value) == 0;
}

ft_status cli_asker_forecast(cli_asker *a, ft_step_view *out, ft_error *err)
{
    ft_model_request request;
    FT_TRY(ft__model_request_of(a->ft, &a->scratch, a->object, &request, err));
    return ft__step_of(a->ft, &a->scratch, &request, out, err);
}

int cli_asker_fail(const cli_asker *a, ft_error *err)
{
    if (a->json) {
        ft_text out = {0};
        ft__answer_error(&out, NULL, err, 0);
        ft__text_add(&out, "\n");
        cli_print(&out);
    }
    cli_ask_name_flag(a->args, "model", err);
    return cli_fail(err);
}

void cli_say_warnings(const char *about, const char *lines)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        fprintf(stderr, "foretell: %s: warning: %.*s\n", about, (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

bool cli_leave_out(const ft_error *err, size_t gpus, const char *gpu, bool json, ft_text *out)
{
    if (gpus < 2 || err->code != FT_E_UNSUPPORTED || strcmp(err->where, "dtype") != 0) return false;
    if (json) {
        json_t *id = json_string(gpu);
        ft__answer_error(out, id, err, 0);
        ft__text_add(out, "\n");
        json_decref(id);
        return true;
    }
    fprintf(stderr, "foretell: %s is left out: %s\n", gpu, err->message);
    return true;
}
