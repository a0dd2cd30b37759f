/* ask.c: a command line as a request. */
#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/json/answer.h"
#include "request/foreign.h"
#include "simulator.h"
#include "terminal.h"

void cli_ask_key(cli_option_id option, char key[48])
{
    const cli_option *o = &cli_options[option];
    snprintf(key, 48, "%s", o->key ? o->key->key : o->name);
    for (char *at = key; !o->key && *at; at++)
        if (*at == '-') *at = '_';
}

bool cli_ask_flags(const cli_args *args, json_t *object)
{
    bool fine = object != NULL;
    for (int i = 0; fine && i < args->given_count; i++) {
        cli_option_id option = args->given[i].option;
        const cli_option *o = &cli_options[option];
        if (!cli_option_asks(o) || option == OPT_GPU) continue;
        ft_key_id id = (ft_key_id)(o->key - ft__keys);
        json_t *value = ft__key_typed(id, args->given[i].value);
        fine = o->key->type == FT_KEY_WHOLES ? ft__key_add(object, id, value) : ft__key_put(object, id, value);
    }
    return fine;
}

bool cli_is_utf8(const char *text)
{
    for (size_t n; text && *text; text += n)
        if (!(n = ft__utf8_length(text, strlen(text)))) return false;
    return true;
}

int cli_ask_unread(const cli_args *args)
{
    bool valid = true;
    for (int i = 0; i < args->given_count; i++) valid = valid && cli_is_utf8(args->given[i].value);
    for (int i = 0; i < args->operand_count; i++) valid = valid && cli_is_utf8(args->operands[i]);
    return valid ? cli_complain(FT_E_MEMORY, "out of memory") : cli_complain(FT_E_SYNTAX, "an argument is not UTF-8");
}

bool cli_ask_operand(const cli_args *args, ft_key_id key, json_t *object)
{
    return ft__key_set(object, key, json_string(args->operands[0]));
}

bool cli_ask_operands(const cli_args *args, ft_key_id key, json_t *object)
{
    json_t *list = json_array();
    bool fine = list != NULL;
    for (int i = 0; fine && i < args->operand_count; i++)
        fine = json_array_append_new(list, json_string(args->operands[i])) == 0;
    return ft__key_set(object, key, list) && fine;
}

json_t *cli_ask_copy(const json_t *object)
{
    json_t *readable = (json_t *)(uintptr_t)object, *copy = json_copy(readable);
    if (json_object_size(copy) == json_object_size(readable)) return copy; /* Jansson's leaves out what does not fit */
    json_decref(copy);
    return NULL;
}

json_t *cli_ask_id(ft_text *out, const char *name)
{
    json_t *id = json_string(name);
    if (!id) out->failed = true;
    return id;
}

void cli_ask_answered(ft_text *out, const json_t *request)
{
    if (!request) out->failed = true;
    ft__json_reopen(out);
    ft__json_member_text(out, "version", FT_VERSION);
    ft__json_member_tree(out, "request", request);
    ft__json_close(out);
}

/* The flag that says what a request has at `path`; with `given`, one that the command line has. OPT_COUNT: none. */
static int flag_of(const cli_args *args, const char *path, bool given)
{
    char own[64];
    for (int i = 0; i < OPT_COUNT; i++) {
        const cli_option *o = &cli_options[i];
        if (!(o->commands & args->command->bit) || !cli_option_asks(o)) continue;
        if (given && !cli_has(args, (cli_option_id)i)) continue;
        const char *section = ft__section_name(o->key->section);
        snprintf(own, sizeof own, "%s%s%s", section, *section ? "." : "", o->key->key);
        if (!strcmp(own, path)) return i;
    }
    return OPT_COUNT;
}

/* "search.tp" has no flag of its own: it came from --fix, or from --tp; "failures.rate" from --failures. Files have
 * points in their names too: what stands before it must be a part of requests. */
static int flag_around(const cli_args *args, const char *where)
{
    const char *dot = strrchr(where, '.');
    char path[64];
    if (!dot) return OPT_COUNT;
    snprintf(path, sizeof path, "%.*s", (int)(dot - where), where);
    int found = flag_of(args, path, false);
    if (found == OPT_COUNT || cli_options[found].key->type != FT_KEY_SECTION) return OPT_COUNT;
    if (cli_has(args, (cli_option_id)found)) return found;
    snprintf(path, sizeof path, "parallel%s", dot);
    found = flag_of(args, path, true);
    return found == OPT_COUNT ? flag_of(args, dot + 1, true) : found;
}

/* The flag of this command for a key by its name alone: one that was typed before others; OPT_COUNT: none. */
static int flag_of_key(const cli_args *args, const char *key, size_t length)
{
    int found = OPT_COUNT;
    for (int i = 0; i < OPT_COUNT; i++) {
        const cli_option *o = &cli_options[i];
        if (!(o->commands & args->command->bit) || !cli_option_asks(o) || o->group == CLI_ALIAS) continue;
        if (strlen(o->key->key) != length || memcmp(o->key->key, key, length) != 0) continue;
        if (cli_has(args, (cli_option_id)i)) return i;
        if (found == OPT_COUNT) found = i;
    }
    return found;
}

/* "tp" is --tp to who types it. Words in quotes that this command has no flag for stay, and so does what is typed as it
 * stands: members of an object, {"rate": 4}, and a word alone in brackets. `only`: no other flag than this one. */
static void say_flags(const cli_args *args, const char *text, size_t length, int only, ft_text *out)
{
    const char *begin = text, *end = text + length;
    int braces = 0;
    while (text < end) {
        const char *close = *text == '"' ? memchr(text + 1, '"', (size_t)(end - text - 1)) : NULL;
        braces += (*text == '{') - (*text == '}');
        const bool alone = close && close + 1 < end && close[1] == ')' && text > begin && text[-1] == '(';
        const bool names = close && braces <= 0 && !alone;
        int found = names ? flag_of_key(args, text + 1, (size_t)(close - text - 1)) : OPT_COUNT;
        if (found != OPT_COUNT && (only == OPT_COUNT || found == only)) {
            char flag[48];
            ft__text_add(out, cli_flag((cli_option_id)found, flag));
        } else {
            ft__text_add_n(out, text, close ? (size_t)(close + 1 - text) : 1);
        }
        text = close ? close + 1 : text + 1;
    }
}

/* The message of an error in flags; what it is about is said once, where the message begins with it. Of a flag whose
 * text has members ("--fix tp=4") those are named as they are typed, and names that nobody knows are the user's own
 * words. */
static void name_flags(const cli_args *args, int about, ft_error *err)
{
    ft_text said = {.cap = sizeof err->message};
    const bool members = about != OPT_COUNT && cli_options[about].key->type == FT_KEY_SECTION;
    if (err->code == FT_E_NAME || !strncmp(err->message, "unknown ", 8)) return;
    say_flags(args, err->message, strlen(err->message), members ? about : OPT_COUNT, &said);
    if (!said.failed && said.length) {
        const size_t length = strlen(err->where);
        if (length && !strncmp(said.at, err->where, length) && said.at[length] == ' ') err->where[0] = '\0';
        snprintf(err->message, sizeof err->message, "%s", said.at);
    }
    ft__text_free(&said);
}

void cli_ask_name_flag(const cli_args *args, const char *operand_key, ft_error *err)
{
    char flag[48];
    const bool of_operand = args->operand_count && !strcmp(err->where, operand_key), nowhere = !*err->where;
    int found = of_operand || nowhere ? OPT_COUNT : flag_of(args, err->where, false);
    if (found == OPT_COUNT && !of_operand && !nowhere) found = flag_around(args, err->where);
    const char *from = NULL;                                          /* where a value that nobody typed came from */
    for (int i = 0; i < args->given_count && found != OPT_COUNT; i++) /* --gpu is several options of one name */
        if (!strcmp(cli_options[args->given[i].option].name, cli_options[found].name)) from = args->given[i].from;
    if (of_operand) snprintf(err->where, sizeof err->where, "%s", args->operands[0]);
    if (found != OPT_COUNT)
        snprintf(err->where, sizeof err->where, "%s", from ? from : cli_flag((cli_option_id)found, flag));
    if (found != OPT_COUNT || of_operand || nowhere) name_flags(args, found, err); /* elsewhere: a file's own keys */
}

int cli_ask_fail(const cli_args *args, const char *operand_key, ft_error *err)
{
    if (cli_has(args, OPT_JSON)) cli_answer_error(err);
    if (!strcmp(err->where, operand_key) || err->code == FT_E_NAME)
        err->where[0] = '\0';
    else
        cli_ask_name_flag(args, operand_key, err);
    return cli_fail(err);
}

/* -- requests that are asked again ------------------------------------------------------------- */

static bool has_gpus(const cli_args *args)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (cli_options[i].commands & args->command->bit && !strcmp(cli_options[i].name, "gpus")) return true;
    return false;
}

/* "--gpu 8xh100_sxm": what to write instead is said, in the flags that this command has. */
static int counted(const cli_asker *a)
{
    char which[80];
    int count;
    ft_error err = {0};
    const unsigned bit = a->args->command->bit;
    for (size_t i = 0; i < a->gpu_count; i++) {
        if (!ft__foreign_gpus(a->gpus[i], &count, which)) continue;
        const bool ranks = bit & (CLI_SERVE | CLI_INFER), one = bit & CLI_KERNEL;
        const char *how = one                  ? ": a kernel runs on one"
                          : bit & CLI_EXCHANGE ? " --ranks "
                          : ranks              ? ", and how many with --tp, --dp or both, as --tp "
                          : has_gpus(a->args)  ? " --gpus "
                                               : NULL;
        char many[16] = "";
        if (!how) continue;
        if (!one) snprintf(many, sizeof many, "%d", count);
        (void)ft__fail_at(&err, FT_E_NAME, "gpu", 0, 0, "\"%s\" is a name and a number; write --gpu %s%s%s", a->gpus[i],
                          which, how, many);
        return cli_asker_fail(a, &err);
    }
    return 0;
}

int cli_asker_open(cli_asker *a, const cli_args *args, const char *task)
{
    ft_error err = {0};
    memset(a, 0, sizeof *a);
    a->args = args;
    const ft_key_id operand = args->command->bit & CLI_KERNEL     ? FT_KEY_ID_OP
                              : args->command->bit & CLI_EXCHANGE ? FT_KEY_ID_EXCHANGE
                                                                  : FT_KEY_ID_MODEL;
    a->operand = ft__keys[operand].key;
    a->json = cli_has(args, OPT_JSON);
    a->scratch.simulator = &cli_simulator;
    if (!cli_values(args, OPT_GPU, &a->gpus, &a->gpu_count)) return cli_complain(FT_E_MEMORY, "out of memory");
    bool open = args->command->bit == CLI_CHOOSE; /* which GPU is what it asks */
    int status = counted(a);
    if (status) return status;
    if (a->gpu_count == 0 && !open)
        return cli_usage(args->command, "which GPU? --gpu h100_sxm (foretell gpus lists them)");
    ft_options options = {.predictor = cli_value(args, OPT_PREDICTOR), .calibration = cli_value(args, OPT_CALIBRATION)};
    if (ft_open(&a->ft, &options, &err) != FT_OK) return cli_fail(&err);
    a->object = json_object();
    bool fine = a->object && ft__key_set(a->object, FT_KEY_ID_TASK, json_string(task)) &&
                (!args->operand_count || cli_ask_operand(args, operand, a->object)) &&
                (open || ft__key_set(a->object, FT_KEY_ID_GPU, json_string(a->gpus[0])));
    if (!fine || !cli_ask_flags(args, a->object)) return cli_ask_unread(args);
    return 0;
}

void cli_asker_close(cli_asker *a)
{
    ft__scratch_free(&a->scratch);
    json_decref(a->object);
    ft_close(a->ft);
    free(a->gpus);
}

bool cli_asker_set(cli_asker *a, ft_key_id key, json_t *value) { return ft__key_set(a->object, key, value); }

int cli_asker_fail(const cli_asker *a, ft_error *err)
{
    if (a->json) cli_answer_error(err);
    cli_ask_name_flag(a->args, a->operand, err);
    return cli_fail(err);
}

void cli_ask_in_flags(const cli_args *args, const char *lines, ft_text *out)
{
    while (lines && *lines) {
        const size_t length = strcspn(lines, "\n"), whole = length + (lines[length] == '\n');
        say_flags(args, lines, length, OPT_COUNT, out);
        ft__text_add_n(out, lines + length, whole - length);
        lines += whole;
    }
}

void cli_say_warnings(const cli_args *args, const char *about, const char *lines)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        ft_text one = {.cap = 4096};
        ft__text_add(&one, "warning: ");
        if (args)
            say_flags(args, lines, length, OPT_COUNT, &one);
        else
            ft__text_add_n(&one, lines, length);
        if (!one.failed) cli_say(about, one.at);
        ft__text_free(&one);
        lines += length + (lines[length] == '\n');
    }
}

void cli_say_left_out(const char *name, const ft_error *err)
{
    ft_text line = {.cap = 4096};
    ft__text_addf(&line, "%s is left out: %s", name, err->message);
    if (!line.failed) cli_say(NULL, line.at);
    ft__text_free(&line);
}

bool cli_leave_out(const ft_error *err, size_t gpus, const char *gpu, bool json, ft_text *out)
{
    if (gpus < 2 || err->code != FT_E_UNSUPPORTED || strcmp(err->where, "dtype") != 0) return false;
    if (json) {
        json_t *id = cli_ask_id(out, gpu);
        ft__answer_error(out, id, err, 0);
        ft__text_add(out, "\n");
        json_decref(id);
        return true;
    }
    cli_say_left_out(gpu, err);
    return true;
}
