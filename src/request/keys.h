/* The table of request keys (keys_list.h has its rows), and what a request said of them. */
#ifndef FT_REQUEST_KEYS_H
#define FT_REQUEST_KEYS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "request/keys_list.h"

typedef enum ft_key_type {
    FT_KEY_WHOLE,
    FT_KEY_REAL,
    FT_KEY_SWITCH,
    FT_KEY_WORD,    /* one of a few */
    FT_KEY_NAMES,   /* an array of some of a few */
    FT_KEY_DTYPE,   /* a number format */
    FT_KEY_TEXT,
    FT_KEY_GPU,     /* a name, a file or an object: the context finds it */
    FT_KEY_SECTION, /* an object with keys of its own */
    FT_KEY_ANY      /* whoever uses it reads it */
} ft_key_type;

/* Which object a key stands in. Those of COMMON, MODEL, OPERATOR, KERNEL, COLLECTIVE, TRACE and SERVE stand at the
 * top. */
typedef enum ft_section {
#define SECTION(name, list) FT_SECTION_##name,
    FT_SECTION_LIST(SECTION)
#undef SECTION
    FT_SECTION_COUNT
} ft_section;

typedef enum ft_key_id {
#define X(id, ...) FT_KEY_ID_##id,
#define SECTION(name, list) list(X, X)
    FT_SECTION_LIST(SECTION)
#undef SECTION
#undef X
    FT_KEY_COUNT
} ft_key_id;

/* Commands of the program that have a key's flag, as bits. */
enum {
    FT_BY_TRAIN = 1 << 0,
    FT_BY_INFER = 1 << 1,
    FT_BY_LARGEST = 1 << 2,
    FT_BY_KERNEL = 1 << 3,
    FT_BY_MODELS = 1 << 4,
    FT_BY_GPUS = 1 << 5,
    FT_BY_FIT = 1 << 6,
    FT_BY_VALIDATE = 1 << 7,
    FT_BY_BATCH = 1 << 8,
    FT_BY_HELP = 1 << 9,
    FT_BY_SCALE = 1 << 10,
    FT_BY_COMPARE = 1 << 11,
    FT_BY_CALIBRATE = 1 << 12,
    FT_BY_TRACE = 1 << 13,
    FT_BY_SERVE = 1 << 14,
    FT_BY_PLAN = 1 << 15,
    FT_BY_EVERY = (1 << 16) - 1
};

typedef struct ft_key_row {
    const char *key;
    ft_section section;
    ft_key_type type;
    double low, high;
    const char *const *words;
    size_t word_count;
    double standard;      /* NAN: depends */
    const char *flag;     /* without its hyphens; NULL: none */
    const char *help;
    const char *docs;
} ft_key_row;

extern const ft_key_row ft__keys[FT_KEY_COUNT];

/* "parallel" of keys inside it; "" of those at the top. */
const char *ft__section_name(ft_section section);
/* The key of this name in a section; FT_KEY_COUNT: none. */
ft_key_id ft__key_find(ft_section section, const char *key);
/* Its default as text; "" where that depends. */
const char *ft__key_standard(const ft_key_row *key, char room[32]);

/* What one request said, key by key; where it said nothing, the default (0, or -1 of a word, where that depends). */
typedef struct ft_said_value {
    bool given;
    double real;          /* REAL */
    int64_t whole;        /* WHOLE; the place of a WORD; 0 or 1 of a SWITCH; bits of NAMES */
    const char *text;     /* TEXT; lives as long as the document */
} ft_said_value;

typedef struct ft_said {
    ft_said_value at[FT_KEY_COUNT];
} ft_said;

void ft__said_init(ft_said *said);
/* Reads every key of the section from `object`. Keys that others read are marked as given. */
ft_status ft__said_read(const json_t *object, ft_section section, ft_said *said, ft_error *err);
/* Every key of the object is one of these sections'; the nearest stands in the message. */
ft_status ft__keys_known(const json_t *object, const ft_section *sections, size_t count, ft_error *err);
/* The given keys of the section, as they would stand in a request. NULL: out of memory. */
json_t *ft__said_write(const ft_said *said, ft_section section);

static inline bool ft__given(const ft_said *s, ft_key_id id) { return s->at[id].given; }
static inline int64_t ft__whole_of(const ft_said *s, ft_key_id id) { return s->at[id].whole; }
static inline int ft__word_of(const ft_said *s, ft_key_id id) { return (int)s->at[id].whole; }
static inline bool ft__switch_of(const ft_said *s, ft_key_id id) { return s->at[id].whole != 0; }
static inline double ft__real_of(const ft_said *s, ft_key_id id) { return s->at[id].real; }
/* 1 or 0 as said; -1: not said. */
static inline int ft__tristate_of(const ft_said *s, ft_key_id id)
{
    return s->at[id].given ? s->at[id].whole != 0 : -1;
}
#endif
