/* read_word.c: a key whose value is one of a few words. An unknown one is answered by what it stands for in other
 * programs, by the nearest word, or by the list. */
#include <stdio.h>
#include <string.h>

#include "base/software.h"
#include "request/foreign.h"
#include "request/formats.h"
#include "request/request.h"

ft_status ft__request_word(const json_t *object, const char *key, const char *const *words, size_t count, int *out,
                           ft_error *err)
{
    return ft__request_word_in(object, "", key, words, count, out, err);
}

ft_status ft__request_word_in(const json_t *object, const char *section, const char *key, const char *const *words,
                              size_t count, int *out, ft_error *err)
{
    char where[80];
    const char *word = NULL;
    snprintf(where, sizeof where, "%s%s%s", section, *section ? "." : "", key);
    FT_TRY(ft__json_string(object, key, FT_OPTIONAL, &word, section, err));
    return word ? ft__request_word_said(word, where, key, words, count, out, err) : FT_OK;
}

ft_status ft__request_word_said(const char *word, const char *where, const char *key, const char *const *words,
                                size_t count, int *out, ft_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(words[i], word)) {
            *out = (int)i;
            return FT_OK;
        }
    char list[320] = "";
    for (size_t i = 0, at = 0; i < count && at < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", words[i]);
    FT_TRY(ft__stored_not_computed(word, where, key, err));
    const char *beside = "", *theirs = ft__foreign_word(key, word, words, count, &beside);
    if (theirs)
        return ft__fail_at(err, FT_E_NAME, where, 0, 0, "unknown %s \"%.60s\"; here it is \"%s\"%s", key, word, theirs,
                           beside);
    const char *nearest = ft__nearest_software(word, words, count);
    if (nearest)
        return ft__fail_at(err, FT_E_NAME, where, 0, 0, "unknown %s \"%.60s\"; did you mean \"%s\"?", key, word,
                           nearest);
    return ft__fail_at(err, FT_E_NAME, where, 0, 0, "unknown %s \"%.60s\"; it is one of %s", key, word, list);
}
