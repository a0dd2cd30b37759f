/* The table of request keys (keys_list.h has its rows), and what a request said of them. */
#ifndef FT_REQUEST_KEYS_H
#define FT_REQUEST_KEYS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "request/keys_list.h"

typedef enum ft_key_type {
    FT_KEY_WHOLE, /* with words, also one of them */
    FT_KEY_REAL,
    FT_KEY_SHARE, /* a REAL; typed also as "4%" */
    FT_KEY_SWITCH,
    FT_KEY_WORD,  /* one of a few */
    FT_KEY_NAMES, /* an array of some of a few */
    FT_KEY_TEXT,
    /* Those from here on are read by whoever uses them. */
    FT_KEY_DTYPE,       /* a number format */
    FT_KEY_WHOLES,      /* a whole number, or a list of them */
    FT_KEY_TRIED,       /* likewise, or "auto": what a search tries */
    FT_KEY_TRIED_WORDS, /* "auto", one of a few, or a list of them */
    FT_KEY_PAIR,        /* two numbers, [0.8, 1]; typed as "0.8:1" */
    FT_KEY_EXTENT,      /* height and width: "768x1024", [768, 1024], or one number for both */
    FT_KEY_TEXTS,       /* a text, or a list of them */
    FT_KEY_OBJECTS,     /* a list of objects, or of files that hold some */
    FT_KEY_GPU,         /* a name, a file or an object: the context finds it */
    FT_KEY_GPUS,        /* likewise, or a list of them */
    FT_KEY_NAMED,       /* a name of the catalogue, a file or an object */
    FT_KEY_SECTION,     /* an object with keys of its own; with a flag, also the text that is typed for it */
    FT_KEY_ANY,
    FT_KEY_TYPE_COUNT
} ft_key_type;

/* Which object a key stands in: keys_list.h says which of them stand at the top. */
typedef enum ft_section {
#define SECTION(name, list, title, inside) FT_SECTION_##name,
    FT_SECTION_LIST(SECTION)
#undef SECTION
        FT_SECTION_COUNT
} ft_section;

typedef enum ft_key_id {
#define X(id, ...) FT_KEY_ID_##id,
#define SECTION(name, list, title, inside) list(X, X)
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
    FT_BY_SCHEMA = 1 << 16,
    FT_BY_CHOOSE = 1 << 17,
    FT_BY_COLLECTIVE = 1 << 18,
    FT_BY_WEB = 1 << 19,
    FT_BY_EVERY = (1 << 20) - 1
};

typedef struct ft_key_row {
    const char *key;
    ft_section section;
    ft_key_type type;
    double low, high;
    const char *const *words;
    size_t word_count;
    double standard;  /* NAN: depends */
    const char *flag; /* without its hyphens; NULL: none */
    const char *help;
    const char *docs;
} ft_key_row;

extern const ft_key_row ft__keys[FT_KEY_COUNT];
/* How a key is written: FT_KEY(SEQ) is "seq". */
#define FT_KEY(id) (ft__keys[FT_KEY_ID_##id].key)

/* "parallel" of keys inside it; "" of those at the top. */
const char *ft__section_name(ft_section section);
/* What it is called among sections, in lower case: "common". Likewise of a type: "whole". */
const char *ft__section_title(ft_section section);
const char *ft__key_type_name(ft_key_type type);
/* The key of this name in a section; FT_KEY_COUNT: none. */
ft_key_id ft__key_find(ft_section section, const char *key);
/* Its default as text; "" where that depends. */
const char *ft__key_standard(const ft_key_row *key, char room[32]);

/* What one request said, key by key; where it said nothing, the default (0, or -1 of a word, where that depends). */
typedef struct ft_said_value {
    bool given;
    double real;        /* REAL */
    int64_t whole;      /* WHOLE, -1: its first word; the place of a WORD; 0 or 1 of a SWITCH; bits of NAMES */
    const char *text;   /* TEXT; lives as long as the document */
    const json_t *json; /* as it was given; NULL: it was not */
} ft_said_value;

typedef struct ft_said {
    ft_said_value at[FT_KEY_COUNT];
} ft_said;

void ft__said_init(ft_said *said);
/* Reads every key of the section from `object`. Keys that others read are marked as given. */
ft_status ft__said_read(const json_t *object, ft_section section, ft_said *said, ft_error *err);
/* The same of an object that stands at `where` in the request: "disaggregated.decode". */
ft_status ft__said_read_at(const json_t *object, ft_section section, const char *where, ft_said *said, ft_error *err);
/* An object inside a request, its keys known and read; missing: nothing is said. `form` shows one: {\"tp\": 8}. */
ft_status ft__said_inside(const json_t *object, ft_section section, const char *form, ft_said *said, ft_error *err);
/* Numbers of a WHOLES or TRIED key; none where it was not given, or is "auto". `where` is the path in errors. */
ft_status ft__wholes_of(const ft_said *said, ft_key_id id, const char *where, int64_t *out, size_t most, size_t *count,
                        ft_error *err);
/* Bits of a TRIED_WORDS key; 0 likewise. */
ft_status ft__tried_words_of(const ft_said *said, ft_key_id id, const char *where, unsigned *bits, ft_error *err);
/* Every key of the object is one of these sections'; the nearest stands in the message. */
ft_status ft__keys_known(const json_t *object, const ft_section *sections, size_t count, ft_error *err);
ft_status ft__keys_known_at(const json_t *object, const ft_section *sections, size_t count, const char *where,
                            ft_error *err);

/* -- writing (key_write.c) ----------------------------------------------------------------------- */

/* A value as it is typed on a command line: "4" of a WHOLE, "4%" of a SHARE, "a,b" of NAMES and TEXTS, "0.8:1" of a
 * PAIR; NULL of a switch is on. NULL: no number, out of memory, or text that is not UTF-8. */
json_t *ft__key_typed(ft_key_id id, const char *text);
/* Puts it where it stands in a request, {"parallel": {"tp": 4}}; takes `value`, which may be NULL. False as above. */
bool ft__key_put(json_t *request, ft_key_id id, json_t *value);
/* The same in `home`, the object that the key itself stands in: the request, or the section's. */
bool ft__key_set(json_t *home, ft_key_id id, json_t *value);
/* What `home` says of it, NULL: nothing; and takes it out, where it is. */
json_t *ft__key_get(const json_t *home, ft_key_id id);
void ft__key_drop(json_t *home, ft_key_id id);
/* The same of a list that grows: values of a WHOLES that is given again. */
bool ft__key_add(json_t *request, ft_key_id id, json_t *value);

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
