/* find_gpu.c: which GPU of the catalogue a trace was recorded on. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/gpu.h"
#include "trace/recorded_constants.h"
#include "trace/report.h"

/* Lower case, words parted by single blanks: "NVIDIA A100-SXM4-40GB" -> "nvidia a100 sxm4 40gb". */
static void plain(const char *from, char *to, size_t room)
{
    size_t n = 0;
    for (; *from && n + 1 < room; from++) {
        unsigned char c = (unsigned char)*from;
        if (isalnum(c))
            to[n++] = (char)tolower(c);
        else if (n > 0 && to[n - 1] != ' ')
            to[n++] = ' ';
    }
    to[n] = 0;
}

static bool has_word(const char *text, const char *word, size_t length)
{
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++) {
        bool begins = p == text || p[-1] == ' ', ends = p[length] == 0 || p[length] == ' ';
        if (begins && ends) return true;
    }
    return false;
}

/* How well a device's names fit, or -1: its model number must be there. */
static double names_fit(const char *name, const char *own_title, const char *own_name)
{
    char title[160], word[32];
    plain(own_title, title, sizeof title);
    size_t used = strlen(title);
    if (used + 2 < sizeof title) {
        title[used++] = ' ';
        plain(own_name, title + used, sizeof title - used);
    }
    double score = 0;
    bool number = false;
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, " ");
        if (n > 0 && n < sizeof word) {
            memcpy(word, p, n);
            word[n] = 0;
            bool digits = strpbrk(word, "0123456789") != NULL, memory = n > 2 && !strcmp(word + n - 2, "gb");
            bool there = has_word(title, word, n);
            if (there) score += digits ? ft__k_recorded_word.digits : ft__k_recorded_word.other;
            /* "H100", "4090", "MI300X", "T4": the first word with a digit that is no memory size and no board */
            if (digits && !memory && strncmp(word, "sxm", 3) != 0 && strncmp(word, "hbm", 3) != 0 && !number) {
                number = true;
                if (!there) return -1;
            }
        }
        p += n;
        while (*p == ' ') p++;
    }
    return number ? score : -1;
}

/* Of those whose names fit, multiprocessors, memory and boards tell. */
static double figures_fit(const ft_record *r, const char *name, const ft_device *d)
{
    double score = 0;
    if (r->gpu_sms > 0)
        score += ft__k_recorded_sms.same - ft__k_recorded_sms.off * fabs(log((double)r->gpu_sms / fmax(1, d->sms)));
    if (r->gpu_memory_bytes > 0 && d->memory_gib > 0)
        score += ft__k_recorded_memory.same -
                 ft__k_recorded_memory.off * fabs(log(r->gpu_memory_bytes / 0x1p30 / d->memory_gib));
    static const char *const boards[] = {"pcie", "nvl"}; /* drivers say so; of boards with a socket they do not */
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        if (!strstr(name, boards[i]) != !strstr(d->name, boards[i])) score -= FT_K_RECORDED_OTHER_BOARD;
    return score;
}

bool ft__find_recorded(const ft_record *r, ft_device *out, char note[200])
{
    char name[96];
    plain(r->gpu_name, name, sizeof name);
    note[0] = 0;
    double best = -1e9;
    if (!name[0]) {
        snprintf(note, 200, "the trace does not say which GPU recorded it");
        return false;
    }
    for (size_t i = 0; i < ft__catalogue_count(); i++) {
        ft_device d;
        double score = names_fit(name, ft__catalogue_title(i), ft__catalogue_name(i));
        if (score < 0 || ft__catalogue_find(ft__catalogue_name(i), &d, NULL) != FT_OK) continue;
        score += figures_fit(r, name, &d);
        if (score <= best) continue;
        best = score;
        *out = d;
    }
    if (best <= -1e8) {
        const char *names[512];
        size_t count = ft__catalogue_count() < 512 ? ft__catalogue_count() : 512;
        for (size_t i = 0; i < count; i++) names[i] = ft__catalogue_name(i);
        const char *near = ft__nearest(name, names, count);
        snprintf(note, 200, "the catalogue has no \"%.60s\"%s%s", r->gpu_name, near ? "; the nearest name is " : "",
                 near ? near : "");
        return false;
    }
    if (r->gpu_sms > 0 && r->gpu_sms != out->sms)
        snprintf(note, 200, "\"%.60s\" with %d multiprocessors is taken as %s, which has %d", r->gpu_name, r->gpu_sms,
                 out->name, out->sms);
    return true;
}
