/* loader.c: step = max(compute, read, prepare), and what cannot overlap on top. */
#include "explain/loader.h"

#include <math.h>

#include "explain/bounds_constants.h"

ft_loading ft__loader_time(const ft_loader *l, const ft_device *device, double samples, double compute_ms)
{
    ft_loading t = {.compute_ms = compute_ms};
    if (!l->given || !(samples > 0)) return t;
    /* From pageable memory the driver copies into a pinned buffer first. */
    double sold = device->pcie_gbps > 0 ? device->pcie_gbps : FT_K_BOUNDS_USUAL_GBPS;
    double link = sold * FT_K_BOUNDS_OF_LINK * (l->pageable ? FT_K_BOUNDS_OF_PINNED : 1);
    if (l->samples_per_s_disk > 0) t.read_ms = samples / l->samples_per_s_disk * 1e3;
    t.prepare_ms = samples * l->worker_ms / fmax((double)l->workers, 1);
    t.copy_ms = samples * l->sample_bytes / (link * 1e6);

    double pace = compute_ms;
    if (l->workers < 1) {
        pace += t.read_ms + t.prepare_ms; /* nobody reads ahead */
    } else {
        pace = fmax(pace, fmax(t.read_ms, t.prepare_ms));
    }
    pace = l->pageable || l->workers < 1 ? pace + t.copy_ms : fmax(pace, t.copy_ms);
    t.wait_ms = pace - compute_ms;
    if (t.wait_ms <= 0) return t;
    const double by[] = {t.read_ms, t.prepare_ms, t.copy_ms};
    static const ft_loading_stage stages[] = {FT_LOADS_DISK, FT_LOADS_WORKERS, FT_LOADS_COPY};
    bool reads = l->workers < 1 || fmax(t.read_ms, t.prepare_ms) > compute_ms; /* else the copy alone adds to it */
    int worst = reads ? 0 : 2;
    for (int i = 1; i < 3; i++)
        if (by[i] > by[worst]) worst = i;
    t.stage = stages[worst];
    return t;
}

int64_t ft__loader_workers(const ft_loader *l, double samples, double compute_ms)
{
    double enough = compute_ms > 0 ? ceil(samples * l->worker_ms / compute_ms) : 1;
    return enough < 1 ? 1 : enough > 4096 ? 4096 : (int64_t)enough;
}

void ft__loader_apply(const ft_loader *l, const ft_device *device, double samples, ft_step *step, ft_loading *out)
{
    ft_loading t = ft__loader_time(l, device, samples, step->step_ms);
    if (out) *out = t;
    if (!(t.wait_ms > 0) || !(step->step_ms > 0)) return;
    double longer = (step->step_ms + t.wait_ms) / step->step_ms;
    step->low_ms += ft__loader_time(l, device, samples, step->low_ms).wait_ms;
    step->high_ms += ft__loader_time(l, device, samples, step->high_ms).wait_ms;
    step->step_ms += t.wait_ms;
    step->idle_ms += t.wait_ms;
    step->tokens_per_s /= longer;
    step->model_tflops /= longer;
    step->mfu /= longer;
    step->hfu /= longer;
    for (int i = 0; i < 4; i++) step->regime[i] /= longer;
    step->regime[FT_BOUND_OVERHEAD] += t.wait_ms / step->step_ms;
    for (int i = 0; i < 4; i++)
        if (step->regime[i] > step->regime[step->bound]) step->bound = (ft_bound)i;
}
