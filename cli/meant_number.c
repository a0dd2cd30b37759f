/* meant_number.c: what was meant by "$100k".
 *
 * Options take plain decimal numbers: a suffix would be a thousand to one reader and 1024 to another, and a comma a
 * decimal point in half of Europe. Who types them is told the number that would be taken; no sum is guessed at where
 * the money is another country's. */
#include "meant_number.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char *const dollars[] = {"us$", "usd", "dollars", "dollar", "$"};
static const char *const others[] = {"eur", "euro",         "euros", "\xe2\x82\xac", "gbp",      "\xc2\xa3",
                                     "cny", "rmb",          "jpy",   "yen",          "\xc2\xa5", "chf",
                                     "inr", "\xe2\x82\xb9", "krw",   "\xe2\x82\xa9", "aud",      "cad"};
static const struct {
    const char *word, *power;
} thousands[] = {{"kb", "e3"},       {"mb", "e6"}, {"gb", "e9"},  {"tb", "e12"},     {"k", "e3"},
                 {"thousand", "e3"}, {"m", "e6"},  {"mio", "e6"}, {"million", "e6"}, {"bn", "e9"},
                 {"billion", "e9"},  {"b", "e9"},  {"g", "e9"},   {"t", "e12"},      {"trillion", "e12"}};

static void trim(char *text)
{
    size_t length = strlen(text), lead = strspn(text, " ");
    while (length > lead && text[length - 1] == ' ') length--;
    memmove(text, text + lead, length - lead);
    text[length - lead] = '\0';
}

/* Takes `word` off either end. */
static bool off(char *text, const char *word)
{
    size_t length = strlen(text), n = strlen(word);
    if (length <= n) return false;
    if (!memcmp(text, word, n))
        memmove(text, text + n, length - n + 1);
    else if (!memcmp(text + length - n, word, n))
        text[length - n] = '\0';
    else
        return false;
    trim(text);
    return true;
}

static bool off_any(char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (off(text, words[i])) return true;
    return false;
}

/* "16,384", "16_384" and "16'384" as "16384": groups of three behind the first mark, which are all alike. */
static void ungroup(char *text)
{
    const char *first = strpbrk(text, ",_'");
    if (!first || first == text) return;
    const char mark = *first;
    for (const char *at = first; *at == mark; at += 4)
        if (strspn(at + 1, "0123456789") < 3 ||
            (at[4] && at[4] != mark && at[4] != '.' && !isalpha((unsigned char)at[4])))
            return;
    char *to = text;
    for (const char *at = text; *at; at++)
        if (*at != mark) *to++ = *at;
    *to = '\0';
}

/* Full-width digits, as an East Asian input method types them (U+FF10 to U+FF19), as ASCII. */
static void to_ascii_digits(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++)
        if (!strncmp(at, "\xef\xbc", 2) && (unsigned char)at[2] >= 0x90 && (unsigned char)at[2] <= 0x99) {
            *to++ = (char)('0' + ((unsigned char)at[2] - 0x90));
            at += 2;
        } else
            *to++ = *at;
    *to = '\0';
}

/* "4 GiB" as 4294967296: bytes alone are counted so. */
static bool binary(const char *said, cli_meant *meant)
{
    static const char *const words[] = {"kib", "mib", "gib", "tib"};
    char number[40];
    double value;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(said, words[i]);
        if (!at || at[strlen(words[i])]) continue;
        snprintf(number, sizeof number, "%.*s", (int)(at - said), said);
        trim(number);
        if (!ft__number_parse(number, &value) || value < 0 || value > 1e6) return false;
        for (size_t k = 0; k <= i; k++) value *= 1024;
        snprintf(meant->number, sizeof meant->number, "%.0f", value);
        return true;
    }
    return false;
}

cli_meant cli_meant_number(const char *text)
{
    cli_meant meant = {0};
    char said[40];
    double value;
    const char *power = "";
    if (strlen(text) >= sizeof said) return meant;
    for (size_t i = 0; i <= strlen(text); i++) said[i] = (char)tolower((unsigned char)text[i]);
    to_ascii_digits(said);
    trim(said);
    if (binary(said, &meant)) return meant;
    meant.foreign = off_any(said, others, sizeof others / sizeof *others);
    if (!meant.foreign) off_any(said, dollars, sizeof dollars / sizeof *dollars);
    ungroup(said);
    for (size_t i = 0; i < sizeof thousands / sizeof *thousands && !*power; i++) {
        size_t length = strlen(said), n = strlen(thousands[i].word);
        if (length <= n || strcmp(said + length - n, thousands[i].word) != 0) continue;
        said[length - n] = '\0';
        trim(said);
        if (ft__number_parse(said, &value)) power = thousands[i].power;
    }
    if (!ft__number_parse(said, &value)) {
        meant.foreign = false;
        return meant;
    }
    if (*power && strpbrk(said, "e")) return meant; /* "1e3k" */
    if (!strcmp(power, "e3") && value >= 1 && value < 1e6 && value == (double)(long)value)
        snprintf(meant.binary, sizeof meant.binary, "%.0f", 1024 * value);
    snprintf(meant.number, sizeof meant.number, "%s%s", said, power);
    return meant;
}
