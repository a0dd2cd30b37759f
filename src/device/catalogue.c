/* catalogue.c: the GPUs compiled in from data/devices/, and finding one by the name somebody types.
 *
 * People write "H100-SXM", "a100 80gb pcie", "NVIDIA GeForce RTX 4090" or what torch.cuda.get_device_name() returns.
 * A name is cut into words, vendor words are dropped, and it means the one entry whose own words include all of them:
 * "h200" is h200_sxm, "a100_80gb_pcie" is a100_pcie_80gb. Where several do, the name is ambiguous and the answer
 * lists them, and which of them clouds mostly have: the H100s differ by a third in speed, so that guessing one would be
 * a wrong answer given with confidence.
 *
 * Only the entry found is parsed: the program's first answer does not pay for the other forty.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "device/embedded.h"
#include "device/gpu.h"
#include "device/spec.h"

size_t ft__catalogue_count(void) { return ft__embedded_device_count; }

const char *ft__catalogue_name(size_t index)
{
    return index < ft__embedded_device_count ? ft__embedded_devices[index].name : NULL;
}

const char *ft__catalogue_title(size_t index)
{
    return index < ft__embedded_device_count ? ft__embedded_devices[index].title : NULL;
}

const char *ft__catalogue_json(size_t index, size_t *length)
{
    if (index >= ft__embedded_device_count) return NULL;
    if (length) *length = ft__embedded_devices[index].length;
    return ft__embedded_devices[index].text;
}

bool ft__catalogue_follows(size_t index, const ft_device *d)
{
    if (index >= ft__embedded_device_count) return false;
    const struct ft__embedded_file *file = &ft__embedded_devices[index];
    return file->vendor == d->vendor && file->year >= d->year && strcmp(file->name, d->name) != 0;
}

bool ft__is_path(const char *name_or_path)
{
    size_t length = strlen(name_or_path);
    return strchr(name_or_path, '/') || (length > 5 && !strcmp(name_or_path + length - 5, ".json"));
}

/* -- words ------------------------------------------------------------------------------------- */

enum { MOST_WORDS = 8, LONGEST_WORD = 15 };

typedef struct words {
    char word[MOST_WORDS][LONGEST_WORD + 1];
    int count; /* -1: too many or too long to be a GPU's name */
} words;

static bool one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list)) return true;
    return false;
}

static void add_word(words *w, const char *text, size_t length)
{
    static const char *const dropped[] = {"nvidia", "amd",      "intel", "tesla", "geforce",
                                          "radeon", "instinct", "arc",   NULL};
    char word[LONGEST_WORD + 1];
    if (w->count < 0) return;
    if (length > LONGEST_WORD || w->count == MOST_WORDS) {
        w->count = -1;
        return;
    }
    memcpy(word, text, length);
    word[length] = '\0';
    if (one_of(word, dropped)) return;
    /* The socket's revision tells nothing that the GPU's number does not: sxm2 to sxm6. */
    if (length == 4 && !memcmp(word, "sxm", 3) && word[3] >= '0' && word[3] <= '9') word[3] = '\0';
    memcpy(w->word[w->count++], word, sizeof word);
}

static void split(const char *name, words *w)
{
    char folded[64 + 1];
    size_t length = 0;
    *w = (words){.count = 0};
    for (; *name && length < sizeof folded - 1; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        folded[length++] = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : ' ';
    }
    folded[length] = '\0';
    if (*name) w->count = -1;
    for (size_t at = 0; at < length;) {
        size_t n = strcspn(folded + at, " ");
        if (n) add_word(w, folded + at, n);
        at += n + 1;
    }
}

static void join(const words *w, const char *between, char *out, size_t room)
{
    size_t length = 0;
    out[0] = '\0';
    for (int i = 0; i < w->count && length < room; i++)
        length += (size_t)snprintf(out + length, room - length, "%s%s", i ? between : "", w->word[i]);
}

static size_t index_of(const char *name)
{
    size_t low = 0, high = ft__embedded_device_count; /* sorted by name */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, ft__embedded_devices[middle].name);
        if (order == 0) return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return ft__embedded_device_count;
}

/* Names that share no words with their entry: "4090", or what the driver calls a board. The sheets list them. */
static size_t by_alias(const words *wanted)
{
    char name[128];
    join(wanted, "_", name, sizeof name);
    size_t found = index_of(name);
    for (size_t i = 0; i < ft__embedded_alias_count && found == ft__embedded_device_count; i++)
        if (!strcmp(ft__embedded_aliases[i].alias, name)) found = index_of(ft__embedded_aliases[i].name);
    return found;
}

/* -- finding ----------------------------------------------------------------------------------- */

/* "h100" begins h100_sxm, and "80gb" is among its words or it is not meant. */
static bool includes(const words *entry, const words *wanted)
{
    if (wanted->count < 1 || strcmp(entry->word[0], wanted->word[0]) != 0) return false;
    for (int i = 1; i < wanted->count; i++) {
        bool found = false;
        for (int j = 1; j < entry->count; j++) found |= !strcmp(entry->word[j], wanted->word[i]);
        if (!found) return false;
    }
    return true;
}

/* Index of the one entry that is meant, or the count; `all` collects the candidates when there are several. */
static size_t by_words(const words *wanted, char *all, size_t room, int *candidates, const char **usual)
{
    size_t found = ft__embedded_device_count, length = 0;
    char squeezed[128], entry_squeezed[128];
    join(wanted, "", squeezed, sizeof squeezed);
    *candidates = 0;
    *usual = NULL;
    for (size_t i = 0; i < ft__embedded_device_count; i++) {
        words entry;
        split(ft__embedded_devices[i].name, &entry);
        join(&entry, "", entry_squeezed, sizeof entry_squeezed);
        if (*squeezed && !strcmp(squeezed, entry_squeezed)) { /* "rtx4090" */
            *candidates = 1;
            return i;
        }
        if (!includes(&entry, wanted)) continue;
        found = i;
        if (ft__embedded_devices[i].usual && !*usual) *usual = ft__embedded_devices[i].name;
        if (length < room)
            length += (size_t)snprintf(all + length, room - length, "%s%s", (*candidates)++ ? ", " : "",
                                       ft__embedded_devices[i].name);
    }
    return *candidates == 1 ? found : ft__embedded_device_count;
}

/* A whole number and what parts it from a name, as "8x", "8 * " or "8 "; 0: none. How many characters it takes. */
static size_t count_before(const char *text, int *count)
{
    size_t digits = strspn(text, "0123456789"), at = digits + strspn(text + digits, " ");
    if (!digits || digits > 6) return 0;
    bool times = text[at] == 'x' || text[at] == 'X' || text[at] == '*' || text[at] == ':';
    if (!times && at == digits) return 0;
    *count = atoi(text);
    at += times;
    return at + strspn(text + at, " ");
}

/* The same behind a name: "x8", ":8", " * 8". Where it begins; 0: none. */
static size_t count_after(const char *text, int *count)
{
    size_t end = strlen(text), at = end;
    while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') at--;
    if (at == end || end - at > 6) return 0;
    *count = atoi(text + at);
    while (at > 0 && text[at - 1] == ' ') at--;
    if (at == 0 || !strchr("xX*:", text[at - 1])) return 0;
    for (at--; at > 0 && text[at - 1] == ' ';) at--;
    return at;
}

bool ft__catalogue_counted(const char *name, int *count, char which[80])
{
    size_t at = count_before(name, count), length = strlen(name) - at, index;
    if (!at) length = count_after(name, count);
    if (!length || length >= 80 || *count < 1 || index_of(name) < ft__embedded_device_count) return false;
    memcpy(which, name + at, length);
    which[length] = '\0';
    words wanted;
    split(which, &wanted);
    if (wanted.count < 1) return false;
    char all[400];
    const char *usual = NULL;
    int candidates = 0;
    index = by_alias(&wanted);
    if (index == ft__embedded_device_count) index = by_words(&wanted, all, sizeof all, &candidates, &usual);
    if (index < ft__embedded_device_count) usual = ft__embedded_devices[index].name;
    if (usual) snprintf(which, 80, "%s", usual);
    return usual || candidates > 0;
}

/* "h100 80gb" has a word too many: what it begins with may be known. */
static bool begins_known(const words *wanted, char *all, size_t room)
{
    enum { SHOWN = 6 };
    const char *usual;
    int candidates = 0;
    for (words shorter = *wanted; --shorter.count > 0;) {
        size_t one = by_alias(&shorter);
        if (one == ft__embedded_device_count) one = by_words(&shorter, all, room, &candidates, &usual);
        if (one < ft__embedded_device_count) snprintf(all, room, "%s", ft__embedded_devices[one].name);
        if (one < ft__embedded_device_count || (candidates > 1 && candidates <= SHOWN)) return true;
    }
    return false;
}

static ft_status unknown(const char *name, const words *wanted, ft_error *err)
{
    char all[400];
    const char *names[256];
    size_t count = ft__embedded_device_count < 256 ? ft__embedded_device_count : 256;
    for (size_t i = 0; i < count; i++) names[i] = ft__embedded_devices[i].name;
    const char *nearest = ft__nearest(name, names, count);
    char shown[80];
    ft__spec_cut(shown, sizeof shown, name);
    char which[80];
    int gpus;
    if (ft__catalogue_counted(name, &gpus, which))
        return ft__fail(
            err, FT_E_NAME,
            "unknown GPU \"%s\"; \"gpu\" is its name alone, \"%s\"; give the number separately, as \"gpus\": %d or as "
            "ranks",
            shown, which, gpus);
    bool kind = wanted->count > 1 && begins_known(wanted, all, sizeof all);
    /* "5090 laptop" is nearer to a 5090 than to the laptop of another number. */
    if (nearest && (!kind || strstr(all, nearest) || !strncmp(nearest, all, strlen(all))))
        return ft__fail(err, FT_E_NAME, "unknown GPU \"%s\"; did you mean \"%s\"?", shown, nearest);
    if (kind) return ft__fail(err, FT_E_NAME, "unknown GPU \"%s\"; of that kind the catalogue has %s", shown, all);
    return ft__fail(err, FT_E_NAME,
                    "unknown GPU \"%s\"; the catalogue has %zu, from %s to %s, and a spec file works too", shown,
                    ft__embedded_device_count, names[0], names[count - 1]);
}

static ft_status find(const char *name, size_t *out, ft_error *err)
{
    *out = index_of(name);
    if (*out < ft__embedded_device_count) return FT_OK;
    words wanted;
    split(name, &wanted);
    if (wanted.count > 0) *out = by_alias(&wanted);
    if (*out < ft__embedded_device_count) return FT_OK;
    char all[400];
    const char *usual = NULL;
    int candidates = 0;
    if (wanted.count > 0) *out = by_words(&wanted, all, sizeof all, &candidates, &usual);
    if (*out < ft__embedded_device_count) return FT_OK;
    char shown[80];
    ft__spec_cut(shown, sizeof shown, name);
    if (candidates > 1 && usual)
        return ft__fail(err, FT_E_NAME, "\"%s\" may be any of %s: say which (clouds mostly have %s)", shown, all,
                        usual);
    if (candidates > 1) return ft__fail(err, FT_E_NAME, "\"%s\" may be any of %s: say which", shown, all);
    return unknown(name, &wanted, err);
}

ft_status ft__catalogue_spec(const char *name, ft_spec *out, ft_error *err)
{
    size_t index = 0;
    FT_TRY(find(name, &index, err));
    const struct ft__embedded_file *file = &ft__embedded_devices[index];
    json_t *json = NULL;
    const char *base = NULL;
    FT_TRY(ft__json_parse(file->text, file->length, file->name, &json, err));
    ft_status status = ft__spec_parse(json, file->name, out, &base, err);
    /* Entries are complete (a test holds them to it); this only says what null means. */
    if (status == FT_OK) status = ft__spec_complete(out, file->name, NULL, NULL, err);
    json_decref(json);
    return status;
}

ft_status ft__catalogue_find(const char *name, ft_device *out, ft_error *err)
{
    ft_spec spec;
    FT_TRY(ft__catalogue_spec(name, &spec, err));
    ft__spec_to_device(&spec, out);
    return FT_OK;
}
