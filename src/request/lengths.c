/* lengths.c: reading "lengths".
 *
 * A name of the table of public data sets, "MEAN:SPREAD", a list ("100,900", "512=0.7,2048=0.3", arrays of the
 * same), or an object. What the sequences are cut to is "seq"; what stands in a batch's way of it is said by
 * "batching", "longer" and "pad_multiple". */
#include "request/lengths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "request/data_sets_constants.h"

#define WHERE "lengths"

typedef struct figures {
    double mean, spread, least, most;
    double samples, of; /* of a run; of the data set */
} figures;

static ft_status wrong(ft_error *err)
{
    return ft__fail_at(err, FT_E_TYPE, WHERE, 0, 0,
                       "\"lengths\" must be a data set's name (sharegpt), {\"mean\": 300, \"spread\": 200}, a list of "
                       "tokens [100, 900], or one with shares [[512, 0.7], [2048, 0.3]]");
}

/* -- names ------------------------------------------------------------------------------------- */

static ft_status of_data_set(const char *name, figures *out, ft_error *err)
{
    const char *known[FT_K_DATA_SETS_KNOWN_COUNT];
    for (size_t i = 0; i < FT_K_DATA_SETS_KNOWN_COUNT; i++) {
        known[i] = ft__k_data_sets_known[i].name;
        if (strcmp(known[i], name) != 0) continue;
        *out = (figures){ft__k_data_sets_known[i].mean,    ft__k_data_sets_known[i].spread,
                         ft__k_data_sets_known[i].least,   ft__k_data_sets_known[i].most,
                         ft__k_data_sets_known[i].samples, ft__k_data_sets_known[i].samples};
        return FT_OK;
    }
    const char *near = ft__nearest(name, known, FT_K_DATA_SETS_KNOWN_COUNT);
    char alike[160] = ""; /* "alpaca" is a part of several */
    for (size_t i = 0, used = 0; i < FT_K_DATA_SETS_KNOWN_COUNT && *name; i++)
        if (strstr(known[i], name) && used < sizeof alike)
            used += (size_t)snprintf(alike + used, sizeof alike - used, "%s%s", used ? ", " : "", known[i]);
    if (*alike)
        return ft__fail_at(err, FT_E_NAME, WHERE, 0, 0,
                           "unknown data set \"%.*s\"; known are %s. An object {\"mean\": ..., \"spread\": ...} "
                           "describes any other",
                           (int)ft__utf8_cut(name, 60), name, alike);
    return ft__fail_at(err, FT_E_NAME, WHERE, 0, 0,
                       "no data set \"%.*s\" has known lengths%s%s%s {\"mean\": ..., \"spread\": ...} describes them",
                       (int)ft__utf8_cut(name, 60), name, near ? "; did you mean \"" : "", near ? near : "",
                       near ? "\"? An object" : ": an object");
}

/* -- lists ------------------------------------------------------------------------------------- */

static ft_status add(ft_length_mix *m, double tokens, double share, ft_error *err)
{
    if (m->count == FT_MIX_MOST)
        return ft__fail_at(err, FT_E_RANGE, WHERE, 0, 0,
                           "\"lengths\" has more than %d lengths; shares say how often "
                           "each is there",
                           FT_MIX_MOST);
    if (!(tokens >= 1) || tokens > (double)FT_LARGEST_SIZE || !(share > 0) || !isfinite(share)) return wrong(err);
    m->at[m->count] = floor(tokens + 0.5);
    m->below[m->count++] = share;
    return FT_OK;
}

static ft_status of_list(const json_t *list, ft_length_mix *m, ft_error *err)
{
    size_t n;
    json_t *one;
    json_array_foreach ((json_t *)(uintptr_t)list, n, one) {
        const bool pair = json_array_size(one) == 2;
        if (!pair && !json_is_number(one)) return wrong(err);
        FT_TRY(add(m, json_number_value(pair ? json_array_get(one, 0) : one),
                   pair ? json_number_value(json_array_get(one, 1)) : 1, err));
    }
    return m->count > 0 ? FT_OK : wrong(err);
}

/* The number in front of one of `ends`, or of the end; *at stands behind it then. No locale. */
static bool number(const char **at, const char *ends, double *out)
{
    char digits[64];
    size_t length = strcspn(*at, ends);
    if (length >= sizeof digits) return false;
    memcpy(digits, *at, length);
    digits[length] = '\0';
    if (!ft__number_parse(digits, out)) return false;
    *at += length;
    return true;
}

/* "300:200", "100,900", "512=0.7,2048=0.3", or a name; names may begin with a digit, lengths do not have letters. */
static ft_status of_text(const char *text, ft_length_mix *m, figures *f, ft_error *err)
{
    const char *at = text;
    double first, share;
    if (*text == '{' || *text == '[') return wrong(err); /* what was typed as an object, and is none */
    if (!number(&at, ":,=", &first)) return strpbrk(text, ":,=") ? wrong(err) : of_data_set(text, f, err);
    if (*at == ':') {
        at++;
        f->mean = first;
        const bool fine = number(&at, "", &f->spread) && f->mean >= 1 && f->spread >= 0 && f->mean + f->spread < 1e9;
        return fine ? FT_OK : wrong(err);
    }
    for (at = text;; at++) {
        if (!number(&at, ",=", &first)) return wrong(err);
        share = 1;
        if (*at == '=') {
            at++;
            if (!number(&at, ",", &share)) return wrong(err);
        }
        FT_TRY(add(m, first, share, err));
        if (!*at) return FT_OK;
    }
}

/* -- objects ----------------------------------------------------------------------------------- */

static ft_status of_object(const json_t *value, ft_said *said, figures *f, ft_error *err)
{
    FT_TRY(ft__keys_known(value, &(ft_section){FT_SECTION_LENGTHS}, 1, err));
    FT_TRY(ft__said_read(value, FT_SECTION_LENGTHS, said, err));
    if (ft__given(said, FT_KEY_ID_LENGTHS_OF)) FT_TRY(of_data_set(said->at[FT_KEY_ID_LENGTHS_OF].text, f, err));
    if (ft__given(said, FT_KEY_ID_LENGTHS_MEAN)) f->mean = ft__real_of(said, FT_KEY_ID_LENGTHS_MEAN);
    if (ft__given(said, FT_KEY_ID_LENGTHS_SPREAD)) f->spread = ft__real_of(said, FT_KEY_ID_LENGTHS_SPREAD);
    if (ft__given(said, FT_KEY_ID_LENGTHS_MIN)) f->least = ft__real_of(said, FT_KEY_ID_LENGTHS_MIN);
    if (ft__given(said, FT_KEY_ID_LENGTHS_MAX)) f->most = ft__real_of(said, FT_KEY_ID_LENGTHS_MAX);
    if (ft__given(said, FT_KEY_ID_LENGTHS_SAMPLES)) f->samples = ft__real_of(said, FT_KEY_ID_LENGTHS_SAMPLES);
    if (!(f->mean > 0))
        return ft__fail_at(err, FT_E_MISSING, "lengths.mean", 0, 0, "\"lengths\" needs a \"mean\", or a \"name\"");
    if (f->mean < f->least || f->mean > f->most)
        return ft__fail_at(err, FT_E_RANGE, "lengths.mean", 0, 0,
                           "a mean of %g tokens does not lie between the shortest, %g, and the longest, %g", f->mean,
                           f->least, f->most);
    return FT_OK;
}

static ft_status read(const json_t *value, ft_said *said, ft_length_mix *m, ft_error *err)
{
    figures f = {.least = 1, .most = INFINITY, .samples = FT_K_DATA_SETS_SAMPLES};
    if (json_is_string(value))
        FT_TRY(of_text(json_string_value(value), m, &f, err));
    else if (json_is_array(value))
        FT_TRY(of_list(value, m, err));
    else if (json_is_object(value))
        FT_TRY(of_object(value, said, &f, err));
    else
        return wrong(err);
    if (m->count > 0)
        ft__mix_list(m);
    else
        ft__mix_spread(m, f.mean, f.spread, f.least, f.most, f.of > 0 ? f.of : f.samples);
    m->samples = f.samples;
    return FT_OK;
}

/* -- what it is to this request ---------------------------------------------------------------- */

/* Whoever shares a sequence has an equal part of it. */
static int64_t parts_of(const ft_model_request *r) { return r->parallel.sp && r->parallel.tp > 1 ? r->parallel.tp : 1; }

static ft_status check(const ft_model_request *r, ft_error *err)
{
    const ft_workload *w = &r->work;
    const char *beside = r->parallel.cp > 1          ? "cp"
                         : ft__generates(w->trainer) ? "trainer"
                         : w->loss_positions > 0     ? "loss_positions"
                         : w->packed > 0             ? "packing"
                                                     : NULL;
    if (beside)
        return ft__fail_at(err, FT_E_UNSUPPORTED, WHERE, 0, 0, "\"lengths\" is not forecast with \"%s\"%s", beside,
                           w->packed > 0 ? ": \"batching\" \"pack\" says it" : "");
    if (ft__mix_tokens(&r->lengths, w->seq, 1) > 0) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, WHERE, 0, 0, "no sequence has %lld tokens or fewer: all are dropped",
                       (long long)w->seq);
}

ft_status ft__lengths_settle(const json_t *object, ft_said *said, ft_model_request *out, ft_error *err)
{
    const json_t *value = ft__key_get(object, FT_KEY_ID_SAMPLE_LENGTHS);
    ft_length_mix *m = &out->lengths;
    ft_workload *w = &out->work;
    if (!value || w->task != FT_TRAIN) return FT_OK; /* serving has a file of that name */
    FT_TRY(read(value, said, m, err));
    m->batching = (ft_batching)ft__word_of(said, FT_KEY_ID_BATCHING);
    m->longer = (ft_longer)ft__word_of(said, FT_KEY_ID_LONGER);
    m->multiple = ft__whole_of(said, FT_KEY_ID_PAD_MULTIPLE);
    const int64_t parts = parts_of(out);
    if (m->multiple % parts) m->multiple *= parts;
    m->given = !ft__counts_samples(out->arch) && out->arch->fixed_seq < 1;
    if (!m->given) return FT_OK;
    FT_TRY(check(out, err));
    if (m->batching == FT_BATCH_PACK) { /* what a token sees is its own sequence */
        w->packed = (int64_t)floor(ft__mix_mean_by_tokens(m, w->seq) + 0.5);
        m->given = false;
        return FT_OK;
    }
    const double even = ft__mix_padded(m, w->seq, 1, 1);
    w->padded = w->batch > 1 && !ft__mix_even(m, w->seq);
    if (ft__mix_padded(m, w->seq, 1, 0) < even) return FT_OK;
    w->seq = (int64_t)even;
    m->given = false;
    return FT_OK;
}
