/* gpu_here.c: what /proc/driver/nvidia says. */
#define _POSIX_C_SOURCE 200809L
#include "gpu_here.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "study/catalogue.h"

/* -- titles and names -------------------------------------------------------------------------- */

enum { WORDS = 12, LETTERS = 24 };

/* Lower-case words of letters and digits: "NVIDIA A100-SXM4-80GB" has four. */
static size_t words_of(const char *text, char out[WORDS][LETTERS])
{
    size_t count = 0, length = 0;
    for (;; text++) {
        char c = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (letter && count < WORDS && length + 1 < LETTERS) out[count][length++] = c;
        if (!letter && length) {
            out[count++][length] = '\0';
            length = 0;
        }
        if (!c) return count;
    }
}

/* A word of a name is in a title that has one beginning with it: "sxm" in "SXM4". With digits it is there as it is. */
static bool said(const char *word, char title[WORDS][LETTERS], size_t count)
{
    bool whole = strpbrk(word, "0123456789") != NULL;
    for (size_t i = 0; i < count; i++)
        if (whole ? !strcmp(title[i], word) : !strncmp(title[i], word, strlen(word))) return true;
    return false;
}

/* How well a name fits; 0: another GPU. Its first word with a digit is the model, "a100". */
static int alike(const char *name, char title[WORDS][LETTERS], size_t count)
{
    char words[WORDS][LETTERS];
    size_t many = words_of(name, words);
    int score = 0;
    bool model = false;
    for (size_t i = 0; i < many; i++) {
        bool there = said(words[i], title, count), digits = strpbrk(words[i], "0123456789") != NULL;
        if (digits && !model && !there) return 0;
        model = model || digits;
        score += there ? 4 : -1;
    }
    return model && score > 0 ? score : 0;
}

/* Fills `alike` by the words that a title and a name share. */
static void fill_alike(cli_gpu_here *gpu)
{
    char title[WORDS][LETTERS];
    size_t count = words_of(gpu->title, title);
    int best = 0;
    gpu->alike_count = 0;
    for (size_t i = 0; ft__gpu_name(i); i++) {
        int score = alike(ft__gpu_name(i), title, count);
        if (!score || score < best) continue;
        if (score > best) gpu->alike_count = 0;
        best = score;
        if (gpu->alike_count < CLI_GPU_ALIKE) gpu->alike[gpu->alike_count++] = ft__gpu_name(i);
    }
}

/* -- the driver -------------------------------------------------------------------------------- */

static bool title_of(const char *path, char out[96])
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) {
        if (strncmp(line, "Model:", 6) != 0) continue;
        const char *at = line + 6 + strspn(line + 6, " \t");
        snprintf(out, 96, "%.*s", (int)strcspn(at, "\r\n"), at);
        found = *out != '\0';
    }
    fclose(file);
    return found;
}

size_t cli_gpus_here(const char *proc, cli_gpu_here out[CLI_GPUS_HERE])
{
    char folder[512], path[1024];
    size_t count = 0;
    snprintf(folder, sizeof folder, "%s/driver/nvidia/gpus", proc);
    DIR *all = opendir(folder);
    if (!all) return 0;
    for (const struct dirent *e = readdir(all); e && count < CLI_GPUS_HERE; e = readdir(all)) {
        cli_gpu_here gpu = {0};
        bool known = false;
        snprintf(path, sizeof path, "%s/%s/information", folder, e->d_name);
        if (e->d_name[0] == '.' || !title_of(path, gpu.title)) continue;
        for (size_t i = 0; i < count; i++) known = known || !strcmp(out[i].title, gpu.title);
        if (known) continue;
        fill_alike(&gpu);
        out[count++] = gpu;
    }
    closedir(all);
    return count;
}
