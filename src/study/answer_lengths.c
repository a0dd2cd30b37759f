/* answer_lengths.c: a distribution of answers, and how well packs hold them. */
#include "study/answer_lengths.h"

#include <math.h>

#include "model/lengths.h"

double ft__answer_width(double mean, double longest, double all)
{
    if (!(longest > mean)) return 0;
    const double z = ft__normal_quantile(1 - 1 / (all + 1)), reach = log(longest / mean), root = z * z - 2 * reach;
    return root > 0 ? z - sqrt(root) : fmax(z, reach);
}

double ft__answer_filling(double prompt, double mean, double longest, double all, double pack)
{
    enum { SAMPLED = 512 };
    double used[SAMPLED], sum = 0;
    const int count = (int)fmin(fmax(all, 1), SAMPLED);
    int packs = 0;
    const double width = ft__answer_width(mean, longest, all), place = log(mean) - width * width / 2;
    for (int i = 0; i < count; i++) { /* from the longest down */
        const double z = width > 0 ? ft__normal_quantile(1 - (i + 0.5) / count) : 0;
        const double tokens = fmin(prompt + fmin(exp(place + width * z), longest), pack);
        int into = 0;
        while (into < packs && used[into] + tokens > pack) into++;
        if (into == packs) used[packs++] = 0;
        used[into] += tokens;
        sum += tokens;
    }
    return sum / ((double)packs * pack);
}
