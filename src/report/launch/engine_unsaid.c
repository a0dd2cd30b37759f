/* engine_unsaid.c: what a request says of serving and an engine's command line has no flag for (unsaid.c has the same
 * of training). The flags themselves stand in engines.c. */
#include <string.h>

#include "report/launch/engines.h"
#include "request/keys.h"

enum { VLLM = 1 << 0, SGLANG = 1 << 1, TRTLLM = 1 << 2, ALL = VLLM | SGLANG | TRTLLM };

const char *ft__engine_drafter(const json_t *said)
{
    const char *name = json_string_value(said);
    return name && *name && !strpbrk(name, " '\"\\$`;&|<>(){}*?!#~\n") ? name : NULL;
}

static bool is_word(const json_t *said, const char *word)
{
    const char *text = json_string_value(said);
    return text && !strcmp(text, word);
}

/* Arithmetic in fp8 of a checkpoint that has more bits is what vLLM and SGLang make of it when they load it. */
static unsigned formats(const json_t *said)
{
    return is_word(said, "bf16") ? ALL : is_word(said, "fp16") || is_word(said, "fp8") ? VLLM | SGLANG : 0;
}

static unsigned caches(const json_t *said) { return is_word(said, "fp8") || is_word(said, "bf16") ? ALL : 0; }
static unsigned drafts(const json_t *said) { return ft__engine_drafter(said) ? VLLM | SGLANG : 0; }
static unsigned orders(const json_t *said)
{
    return is_word(said, "fcfs") ? ALL : is_word(said, "priority") ? VLLM : 0;
}
static unsigned adapters(const json_t *said) { return ft__json_whole_of(said) > 0 ? VLLM | SGLANG : ALL; }
static unsigned nobody(const json_t *said)
{
    (void)said;
    return 0;
}

static const struct {
    ft_key_id key;
    unsigned (*by)(const json_t *said);
    const char *what;
} rows[] = {
    {FT_KEY_ID_MODEL_DTYPE, formats, "its number format (a checkpoint in it does it)"},
    {FT_KEY_ID_WEIGHTS_DTYPE, nobody, "weights of fewer bits (a checkpoint that has them does it)"},
    {FT_KEY_ID_MODEL_KV_DTYPE, caches, "the format of its cache"},
    {FT_KEY_ID_ADAPTERS, adapters, "adapters"},
    {FT_KEY_ID_DRAFT, drafts, "a model that drafts"},
    {FT_KEY_ID_SPECULATIVE, nobody, "drafts of which is not said who makes them (\"draft\" names a model)"},
    {FT_KEY_ID_SCHEDULING, orders, "the order in which requests are served"},
};

void ft__engine_unsaid(ft_text *out, const char *name, const ft_fleet *f)
{
    const unsigned bit = !strcmp(name, "vllm") ? VLLM : !strcmp(name, "sglang") ? SGLANG : TRTLLM;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const json_t *said = ft__key_get(f->asked->base, rows[i].key);
        if (said && !(rows[i].by(said) & bit)) ft__text_addf(out, "%s%s", out->length ? "; " : "", rows[i].what);
    }
}

void ft__engine_warnings(ft_text *lines, const ft_fleet *f)
{
    for (size_t i = 0; i < f->asked->emit_count && f->plans; i++) {
        ft_text lacks = {0};
        ft__engine_unsaid(&lacks, f->asked->emit[i], f);
        if (lacks.length)
            ft__text_addf(lines, "%s\"%s\" has no flag for: %s", lines->length ? "\n" : "", f->asked->emit[i],
                          lacks.at);
        ft__text_drop(&lacks, lines);
    }
}
