/* catalogue.c: the models compiled in from data/models/, found by name, alias or hub id; and opening whatever a request
 * calls a model: such a name, a config.json, or a folder that holds one. */
#define _GNU_SOURCE /* S_ISDIR under -std=c17 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "import/config/config.h"
#include "import/config/quantization.h"
#include "import/embedded.h"
#include "import/graphfile/graphfile.h"
#include "import/onnx/onnx.h"

enum { LONGEST_NAME = 128, LONGEST_PATH = 4096, MOST_NAMES = 4096, FAMILY_SHOWN = 6 };

size_t ft__model_count(void) { return ft__embedded_model_count; }

const ft_model_entry *ft__model_at(size_t index)
{
    return index < ft__embedded_model_count ? &ft__embedded_models[index] : NULL;
}

/* As scripts/embed_models.py writes the list: "Llama_3 8B" is llama-3-8b. */
static bool fold(const char *text, char out[LONGEST_NAME + 1])
{
    size_t i = 0;
    for (; text[i]; i++) {
        if (i == LONGEST_NAME) return false;
        char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        out[i] = c == '_' || c == ' ' ? '-' : c;
    }
    out[i] = '\0';
    return true;
}

/* The same letters and digits, separators aside. */
static bool same_squeezed(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '-' || *a == '.') a++;
        while (*b == '-' || *b == '.') b++;
        if (*a != *b) return false;
        if (!*a) return true;
    }
}

typedef struct ft__embedded_model_name model_name;

/* gpt-2 is gpt2 and phi4 phi-4, where only one model can be meant. Paths have a slash or a dot in front. */
static const model_name *find_squeezed(const char *wanted)
{
    const model_name *found = NULL;
    size_t length = strlen(wanted);
    if (!length || *wanted == '.' || wanted[length - 1] == '-' || strchr(wanted, '/')) return NULL;
    for (size_t i = 0; i < ft__embedded_model_name_count; i++) {
        const model_name *known = &ft__embedded_model_names[i];
        if (!same_squeezed(wanted, known->name)) continue;
        if (found && found->entry != known->entry) return NULL;
        found = known;
    }
    return found;
}

static const model_name *find_exact(const char *wanted)
{
    size_t low = 0, high = ft__embedded_model_name_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(wanted, ft__embedded_model_names[middle].name);
        if (order == 0) return &ft__embedded_model_names[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static const model_name *find_plain(const char *wanted)
{
    const model_name *found = find_exact(wanted);
    return found ? found : find_squeezed(wanted);
}

/* By what stands behind the owner's name, whoever that is: somebody's copy or conversion of a known model. */
static const model_name *find_tail(const char *tail)
{
    const model_name *found = find_exact(tail);
    for (size_t i = 0; !found && i < ft__embedded_model_name_count; i++) {
        const char *slash = strchr(ft__embedded_model_names[i].name, '/');
        if (slash && !strcmp(slash + 1, tail)) found = &ft__embedded_model_names[i];
    }
    return found;
}

/* Takes the suffix off a name that has it. */
static bool strip(char *name, const struct ft__embedded_suffix *s, const char *owner)
{
    size_t n = strlen(name), m = strlen(s->suffix);
    if (n <= m || strcmp(name + n - m, s->suffix) != 0) return false;
    if (s->owner && (strncmp(owner, s->owner, strlen(s->owner)) != 0 || owner[strlen(s->owner)] != '/')) return false;
    name[n - m] = '\0';
    return true;
}

/* Owner/Model-Instruct-FP8: ends are taken off one after the other until a model is known by the rest. */
static const model_name *find_suffixed(const char *wanted, const char **quantization)
{
    enum { MOST_SUFFIXES = 4 };
    char tail[LONGEST_NAME + 1];
    const char *slash = strchr(wanted, '/');
    if (*wanted == '.' || *wanted == '/' || (slash && strchr(slash + 1, '/'))) return NULL;
    strcpy(tail, slash ? slash + 1 : wanted);
    const model_name *found = find_tail(tail);
    for (int taken = 0; !found && taken < MOST_SUFFIXES; taken++) {
        const struct ft__embedded_suffix *s = ft__embedded_suffixes;
        while (s->suffix && !strip(tail, s, wanted)) s++;
        if (!s->suffix) return NULL;
        if (!*quantization) *quantization = s->quantization;
        found = find_tail(tail);
    }
    return found;
}

/* `quantization`: how the weights are stored where the name says so, as quantization_config has it; else NULL. */
static const ft_model_entry *find(const char *name, const char **quantization)
{
    char wanted[LONGEST_NAME + 1];
    *quantization = NULL;
    if (!fold(name, wanted)) return NULL;
    const model_name *found = find_plain(wanted);
    if (!found) found = find_suffixed(wanted, quantization);
    if (!found) return NULL;
    if (!*quantization) *quantization = found->quantization;
    return ft__model_at(found->entry);
}

const ft_model_entry *ft__model_find(const char *name)
{
    const char *quantization;
    return find(name, &quantization);
}

/* -- opening -------------------------------------------------------------------------------------- */

/* Models that see or hear nest the language model's keys: the part that has a vocabulary. */
static json_t *speaking(json_t *config)
{
    const char *key;
    json_t *part;
    json_object_foreach (config, key, part)
        if (json_object_get(part, "vocab_size")) return part;
    return config;
}

/* Keys of `over` in place of the config's own. */
static ft_status put_over(json_t *config, const json_t *over, ft_error *err)
{
    const char *key;
    json_t *value, *inner = speaking(config);
    json_object_foreach ((json_t *)(uintptr_t)over, key, value) {
        char meant[48];
        if (strcmp(key, "base") != 0 && !json_object_get(config, key) && ft__config_meant(inner, key, meant))
            return ft__fail_at(err, FT_E_KEY, "model", 0, 0, "unknown key \"%.*s\"; did you mean \"%s\"?",
                               (int)ft__utf8_cut(key, 60), key, meant);
    }
    json_object_foreach ((json_t *)(uintptr_t)over, key, value)
        if (strcmp(key, "base") != 0 && json_object_set(json_object_get(config, key) ? config : inner, key, value) != 0)
            return ft__no_memory(err);
    return FT_OK;
}

/* `over`: NULL, or what of its config is another. */
static ft_status read_entry(const ft_model_entry *entry, const char *quantization, const json_t *over, ft_arch *out,
                            ft_error *err)
{
    json_t *config, *stored = NULL;
    ft_status status = FT_OK;
    FT_TRY(ft__json_parse(entry->config, strlen(entry->config), entry->name, &config, err));
    if (ft__graphfile_is(config)) status = ft__graphfile_spell(config, err);
    if (status == FT_OK && quantization && ft__graphfile_is(config)) {
        json_decref(config);
        return ft__fail_at(err, FT_E_UNSUPPORTED, "model", 0, 0,
                           "%s is known as a graph of its operators, with weights in 16 bits: leave out what the name "
                           "says of their format",
                           entry->name);
    }
    if (status == FT_OK && quantization)
        status = ft__json_parse(quantization, strlen(quantization), entry->name, &stored, err);
    if (stored && !json_object_size(stored)) { /* {}: a copy of it in 16 bits */
        json_object_del(config, "quantization_config");
        json_decref(stored);
    } else if (stored && json_object_set_new(config, "quantization_config", stored) != 0) {
        status = ft__no_memory(err);
    }
    if (status == FT_OK && over) status = put_over(config, over, err);
    if (status == FT_OK) status = ft__config_read(config, NULL, entry->name, out, err);
    json_decref(config);
    return status;
}

/* Python writes Infinity where JSON has no such number (mamba2's time_step_limit). It stands in no key that is read:
 * null takes its place, byte for byte, so that lines and columns stay. */
static void blank_infinities(char *text)
{
    static const char *const words[] = {"-Infinity", "Infinity"};
    bool quoted = false;
    for (char *at = text; *at; at++) {
        if (quoted && *at == '\\' && at[1])
            at++;
        else if (*at == '"')
            quoted = !quoted;
        if (quoted || (*at != '-' && *at != 'I')) continue;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            size_t length = strlen(words[i]);
            if (strncmp(at, words[i], length) != 0) continue;
            memset(at, ' ', length);
            memcpy(at, "null", 4);
            at += length - 1;
            break;
        }
    }
}

static ft_status read_file(const char *path, const char *nearest, ft_arch *out, ft_error *err)
{
    char *text;
    size_t length;
    json_t *config;
    FT_TRY(ft__file_read(path, (size_t)64 << 20, &text, &length, err));
    blank_infinities(text);
    ft_status status = ft__json_parse(text, length, path, &config, err);
    free(text);
    if (status != FT_OK) return status;
    status = ft__config_read(config, nearest, path, out, err);
    json_decref(config);
    return status == FT_OK ? ft__quantization_file(path, out, err) : status;
}

static ft_status read_folder(const char *folder, const char *nearest, ft_arch *out, ft_error *err)
{
    char path[LONGEST_PATH];
    struct stat found;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') length--;
    int written = snprintf(path, sizeof path, "%.*s/config.json", (int)length, folder);
    if (written < 0 || (size_t)written >= sizeof path)
        return ft__fail_at(err, FT_E_FILE, "model", 0, 0, "the path is longer than %d bytes", LONGEST_PATH);
    if (stat(path, &found) != 0) return ft__fail_at(err, FT_E_FILE, path, 0, 0, "the folder holds no config.json");
    return read_file(path, nearest, out, err);
}

/* Whether it is one of a family: llama3 is one, llama-3-8b is of it, llama-33b is not; flux.1-dev and qwen3-4b are of
 * flux and of qwen, and yolo11n, whose last letter is a size, of yolo11. */
static bool is_of_family(const char *name, const char *family)
{
    const char *a = family, *b = name;
    for (; *a; a++, b++) {
        while (*a != '-' && *b == '-') b++;
        while (*a == '-' && *b != '-') a++;
        if (!*a || *a != *b) break;
    }
    const bool word = a > family && isalpha((unsigned char)a[-1]);
    const bool size = a > family && isdigit((unsigned char)a[-1]) && isalpha((unsigned char)*b) && !b[1];
    return !*a && (*b == '-' || size || (word && (*b == '.' || isdigit((unsigned char)*b))));
}

/* The shorter name first: what a family is called by, and not one of its variants. */
static int by_length(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    size_t m = strlen(x), n = strlen(y);
    return m != n ? (m > n) - (m < n) : strcmp(x, y);
}

/* How many models a family has; `names`: the first of them. */
static size_t find_family(const char *wanted, const char **names)
{
    const char *all[MOST_NAMES];
    size_t count = 0;
    if (!*wanted || *wanted == '-' || *wanted == '.') return 0;
    for (size_t i = 0; i < ft__embedded_model_count && count < MOST_NAMES; i++)
        if (is_of_family(ft__embedded_models[i].name, wanted)) all[count++] = ft__embedded_models[i].name;
    if (count > 1) qsort(all, count, sizeof *all, by_length);
    for (size_t i = 0; i < count && i < FAMILY_SHOWN; i++) names[i] = all[i];
    return count;
}

static ft_status name_family(const char *what, const char *const *names, size_t count, ft_error *err)
{
    char all[FAMILY_SHOWN * (LONGEST_NAME + 2)] = "";
    size_t shown = count < FAMILY_SHOWN ? count : FAMILY_SHOWN, length = 0;
    for (size_t i = 0; i < shown; i++)
        length += (size_t)snprintf(all + length, sizeof all - length, "%s%s", i ? ", " : "", names[i]);
    int cut = (int)ft__utf8_cut(what, 100);
    if (count > shown)
        return ft__fail_at(err, FT_E_NAME, "model", 0, 0,
                           "\"%.*s\" may be any of %s and %zu more: say which (`foretell models %.*s` lists them)", cut,
                           what, all, count - shown, cut, what);
    return ft__fail_at(err, FT_E_NAME, "model", 0, 0, "\"%.*s\" may be any of %s: say which", cut, what, all);
}

static ft_status unknown(const char *what, ft_error *err)
{
    const char *names[MOST_NAMES];
    char wanted[LONGEST_NAME + 1];
    size_t count = ft__embedded_model_name_count < MOST_NAMES ? ft__embedded_model_name_count : MOST_NAMES;
    for (size_t i = 0; i < count; i++) names[i] = ft__embedded_model_names[i].name;
    const char *nearest = fold(what, wanted) ? ft__nearest(wanted, names, count) : NULL;
    const char *family[FAMILY_SHOWN];
    size_t members = fold(what, wanted) ? find_family(wanted, family) : 0;
    if (members > 1 && !strchr(what, '/')) return name_family(what, family, members, err);
    const char *meant = members ? family[0] : nearest;
    const ft_model_entry *entry = meant ? ft__model_find(meant) : NULL;
    int shown = (int)ft__utf8_cut(what, 100);
    if (entry)
        return ft__fail_at(err, FT_E_NAME, "model", 0, 0, "unknown model \"%.*s\"; did you mean \"%s\"?", shown, what,
                           strchr(what, '/') && entry->hub ? entry->hub : entry->name);
    return ft__fail_at(err, FT_E_NAME, "model", 0, 0,
                       "unknown model \"%.*s\": neither one of the %zu of `foretell models`, nor a config.json, nor a "
                       "folder with one; any PyTorch model can be exported: `python -m foretell export`",
                       shown, what, ft__embedded_model_count);
}

static bool ends_in(const char *what, const char *end)
{
    size_t length = strlen(what), n = strlen(end);
    return length > n && !strcmp(what + length - n, end);
}

/* A file of weights, whatever is in it: what it is called may be a name that is known ("Qwen3-14B-Q4_K_M.gguf"). */
static ft_status refuse_weights(const char *what, const char *ending, ft_error *err)
{
    char stem[LONGEST_NAME + 1];
    const char *slash = strrchr(what, '/'), *file = slash ? slash + 1 : what, *quantization;
    size_t length = strlen(file) - strlen(ending);
    if (length > 0 && length < sizeof stem) {
        memcpy(stem, file, length);
        stem[length] = '\0';
        if (find(stem, &quantization))
            return ft__fail_at(err, FT_E_UNSUPPORTED, "model", 0, 0, "weights are never read; did you mean \"%s\"?",
                               stem);
    }
    return ft__fail_at(err, FT_E_UNSUPPORTED, "model", 0, 0,
                       "weights are never read: a name of `foretell models` is expected, or the config.json beside "
                       "them");
}

/* Names come first: a folder that happens to be called gpt2 does not change what gpt2 means. ./gpt2 is the folder. */
ft_status ft__model_open(const char *what, const char *nearest, ft_arch *out, ft_error *err)
{
    struct stat found;
    size_t length = strlen(what);
    const char *quantization;
    char wanted[LONGEST_NAME + 1];
    const model_name *known = fold(what, wanted) ? find_plain(wanted) : NULL;
    if (known) return read_entry(ft__model_at(known->entry), known->quantization, NULL, out, err);
    if (!length) return ft__fail_at(err, FT_E_NAME, "model", 0, 0, "\"model\" is empty: a name or a path is expected");
    if (ends_in(what, ".json")) return read_file(what, nearest, out, err);
    if (ends_in(what, ".onnx")) return ft__onnx_open(what, out, err);
    if (ends_in(what, ".pt2")) /* pickles and PyTorch's own schema: PyTorch reads it */
        return ft__fail_at(err, FT_E_UNSUPPORTED, "model", 0, 0,
                           "a program that torch.export saved is read in Python: `python -m foretell export %.*s -o "
                           "model.ft.json` makes a graph file of it",
                           (int)ft__utf8_cut(what, 200), what);
    static const char *const weights[] = {".gguf", ".safetensors", ".bin", ".pt", ".pth", ".ckpt"};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (ends_in(what, weights[i])) return refuse_weights(what, weights[i], err);
    if (stat(what, &found) != 0) { /* a folder that is there is meant before somebody's copy of a model */
        const ft_model_entry *entry = find(what, &quantization);
        return entry ? read_entry(entry, quantization, NULL, out, err) : unknown(what, err);
    }
    if (S_ISDIR(found.st_mode)) return read_folder(what, nearest, out, err);
    return read_file(what, nearest, out, err);
}

/* No path: what reads files for others looks at names alone (cli/web). */
ft_status ft__model_read(const json_t *object, const char *nearest, ft_arch *out, ft_error *err)
{
    const char *base = json_string_value(json_object_get(object, "base")), *quantization;
    if (!base || json_object_get(object, "model_type")) return ft__config_read(object, nearest, "model", out, err);
    const ft_model_entry *entry = find(base, &quantization);
    return entry ? read_entry(entry, quantization, object, out, err) : unknown(base, err);
}
