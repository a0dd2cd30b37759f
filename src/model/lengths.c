/* lengths.c: distributions of lengths, and of the longest in a batch.
 *
 * Texts' lengths are near a lognormal, as those of serving's requests are drawn, too; some have more short ones and
 * fewer very long ones, as Weibull's distribution has. Of a public data set mean, deviation and both ends are known:
 * of the two that one is taken whose longest is nearer, and place and width are sought that give the mean and the
 * deviation between the ends. The longest of n independent draws lies below x with the n-th power of one draw's
 * chance. */
#include "model/lengths.h"

#include <math.h>

#include "model/lengths_constants.h"

enum { NODES = 64, ROUNDS = 24, STEPS = 60 };

/* -- the normal distribution ------------------------------------------------------------------- */

static double normal_below(double x) { return 0.5 * erfc(-x / sqrt(2)); }

/* Newton's steps, halving where they would leave what is known of the root. */
double ft__normal_quantile(double p)
{
    const double slope = 1 / sqrt(2 * acos(-1)), far = 38;
    double low = -far, high = far, x = 0;
    if (!(p > 0)) return low;
    if (!(p < 1)) return high;
    for (int i = 0; i < STEPS; i++) {
        const double off = normal_below(x) - p, rate = slope * exp(-x * x / 2);
        if (off == 0) break;
        if (off > 0)
            high = x;
        else
            low = x;
        double next = rate > 0 ? x - off / rate : low;
        if (!(next > low && next < high)) next = (low + high) / 2;
        if (fabs(next - x) < 1e-12) break;
        x = next;
    }
    return x;
}

/* -- one sequence ------------------------------------------------------------------------------ */

/* Of a standard one, what the logarithm is measured in: the share below, and its inverse. */
static double standard_below(bool steep, double z) { return steep ? -expm1(-exp(z)) : normal_below(z); }

static double standard_at(bool steep, double p)
{
    if (!steep) return ft__normal_quantile(p);
    return p > 0 ? log(-log1p(-fmin(p, 1 - 1e-15))) : -INFINITY;
}

static double share_below(const ft_length_mix *m, double tokens)
{
    if (m->count == 0) {
        if (tokens >= m->most) return 1;
        if (tokens < m->least) return 0;
        if (!(m->width > 0)) return tokens >= m->scale ? 1 : 0;
        return (standard_below(m->steep, log(tokens / m->scale) / m->width) - m->under) / m->within;
    }
    double below = 0;
    for (int i = 0; i < m->count && m->at[i] <= tokens; i++) below = m->below[i];
    return below;
}

static double as_written(const ft_length_mix *m, double p)
{
    if (m->count == 0) {
        if (!(m->width > 0)) return m->scale;
        const double z = standard_at(m->steep, m->under + m->within * p);
        return fmin(fmax(m->scale * exp(m->width * z), m->least), m->most);
    }
    int i = 0;
    while (i < m->count - 1 && m->below[i] < p) i++;
    return m->at[i];
}

double ft__mix_kept(const ft_length_mix *m, int64_t seq)
{
    return m->longer == FT_LONGER_DROP ? share_below(m, (double)seq) : 1;
}

double ft__mix_tokens(const ft_length_mix *m, int64_t seq, double p)
{
    const double kept = ft__mix_kept(m, seq);
    if (!(kept > 0)) return 0;
    return fmin(fmax(floor(as_written(m, p * kept) + 0.5), 1), (double)seq);
}

/* Mean of a power of the tokens. */
static double moment(const ft_length_mix *m, int64_t seq, int power)
{
    double sum = 0;
    for (int i = 0; i < NODES; i++) {
        const double x = ft__mix_tokens(m, seq, (i + 0.5) / NODES);
        sum += power == 2 ? x * x : x;
    }
    return sum / NODES;
}

static double moment_of_list(const ft_length_mix *m, int64_t seq, int power)
{
    double sum = 0, before = 0, kept = ft__mix_kept(m, seq);
    for (int i = 0; i < m->count; i++) {
        const double share = m->below[i] - before, x = fmin(m->at[i], (double)seq);
        before = m->below[i];
        if (m->longer == FT_LONGER_DROP && m->at[i] > (double)seq) continue;
        sum += share / kept * (power == 2 ? x * x : x);
    }
    return sum;
}

double ft__mix_mean(const ft_length_mix *m, int64_t seq)
{
    return m->count ? moment_of_list(m, seq, 1) : moment(m, seq, 1);
}

double ft__mix_mean_by_tokens(const ft_length_mix *m, int64_t seq)
{
    if (m->count) return moment_of_list(m, seq, 2) / moment_of_list(m, seq, 1);
    return moment(m, seq, 2) / moment(m, seq, 1);
}

bool ft__mix_even(const ft_length_mix *m, int64_t seq)
{
    return ft__mix_tokens(m, seq, 0) == ft__mix_tokens(m, seq, 1);
}

/* -- distributions ----------------------------------------------------------------------------- */

static void cut_ends(ft_length_mix *m)
{
    m->under = standard_below(m->steep, log(m->least / m->scale) / m->width);
    m->within = standard_below(m->steep, log(m->most / m->scale) / m->width) - m->under;
}

/* Place and width that give mean and deviation between the ends, as near as they can. */
static void seek(ft_length_mix *m, bool steep, double mean, double spread, double least, double most)
{
    m->steep = steep;
    m->least = least;
    m->most = most;
    m->width = sqrt(log(1 + spread / mean * (spread / mean)));
    m->scale = mean;
    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0, squares = 0;
        cut_ends(m);
        if (!(m->within > 0)) break;
        for (int i = 0; i < NODES; i++) {
            const double x = as_written(m, (i + 0.5) / NODES);
            sum += x / NODES;
            squares += x * x / NODES;
        }
        const double seen = sqrt(fmax(squares - sum * sum, 0)) / sum;
        if (!(seen > 0)) break;
        m->scale = fmin(fmax(m->scale * (mean / sum), least), most);
        m->width = fmin(m->width * sqrt(spread / mean / seen), FT_K_LENGTHS_WIDEST);
    }
    cut_ends(m);
    if (m->within > 0) return;
    m->width = 0;
    m->scale = mean;
}

/* How many times longer than the longest that is known the longest of all samples would be, or how many times
 * shorter. */
static double missed_end(bool steep, double mean, double spread, double most, double samples)
{
    ft_length_mix free = {0};
    seek(&free, steep, mean, spread, 1, INFINITY);
    const double z = standard_at(steep, pow(0.5, 1 / samples));
    return fabs(log(free.scale * exp(free.width * z) / most));
}

void ft__mix_spread(ft_length_mix *m, double mean, double spread, double least, double most, double samples)
{
    m->count = 0;
    if (!(spread > 0)) {
        *m = (ft_length_mix){.scale = mean, .least = mean, .most = mean};
        return;
    }
    const bool steep = isfinite(most) &&
                       missed_end(true, mean, spread, most, samples) < missed_end(false, mean, spread, most, samples);
    seek(m, steep, mean, spread, least, most);
}

void ft__mix_list(ft_length_mix *m)
{
    for (int i = 1; i < m->count; i++)
        for (int k = i; k > 0 && m->at[k - 1] > m->at[k]; k--) {
            const double at = m->at[k], share = m->below[k];
            m->at[k] = m->at[k - 1], m->below[k] = m->below[k - 1];
            m->at[k - 1] = at, m->below[k - 1] = share;
        }
    int last = 0;
    for (int i = 1; i < m->count; i++) {
        if (m->at[i] == m->at[last]) {
            m->below[last] += m->below[i];
            continue;
        }
        last++;
        m->at[last] = m->at[i], m->below[last] = m->below[i];
    }
    m->count = last + 1;
    double sum = 0;
    for (int i = 0; i < m->count; i++) sum += m->below[i];
    for (int i = 0; i < m->count; i++) m->below[i] = (i > 0 ? m->below[i - 1] : 0) + m->below[i] / sum;
    m->below[m->count - 1] = 1;
}

/* -- batches ----------------------------------------------------------------------------------- */

/* Of a group that was sorted the k-th batch ends with its (k times batch)-th sequence, whose place among n draws is
 * k times batch / (n + 1) in the mean. */
static double place_in_group(int64_t batch, double p)
{
    const double batches = FT_K_LENGTHS_GROUP, each = (double)batch;
    const double k = fmin(floor(p * batches) + 1, batches);
    return k * each / (batches * each + 1);
}

double ft__mix_padded(const ft_length_mix *m, int64_t seq, int64_t batch, double p)
{
    const double place = m->batching == FT_BATCH_BUCKET && batch > 1 ? place_in_group(batch, p)
                                                                     : pow(p, 1 / (double)batch);
    const double multiple = m->multiple > 1 ? (double)m->multiple : 1;
    return ceil(ft__mix_tokens(m, seq, place) / multiple) * multiple;
}
