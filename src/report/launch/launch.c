/* launch.c: which launch files there are, and of which framework's plans. */
#include "report/launch/launch.h"

#include <stdio.h>
#include <string.h>

#include "base/software.h"
#include "report/launch/megatron.h"

static const ft_launcher launchers[] = {
    {"megatron", "flags of Megatron-LM's pretrain_gpt.py", false, ft__launch_megatron},
    {"bridge", "overrides of a Megatron-Bridge recipe", false, ft__launch_bridge},
    {"nemo", "a program that starts a NeMo recipe", false, ft__launch_nemo},
    {"torchtitan", "a torchtitan configuration", false, ft__launch_torchtitan},
    {"deepspeed", "a DeepSpeed configuration", false, ft__launch_deepspeed},
    {"accelerate", "an Accelerate configuration", false, ft__launch_accelerate},
    {"torchrun", "a torchrun command, for every node", true, ft__launch_torchrun},
    {"srun", "a Slurm batch script", true, ft__launch_srun},
    {"mpirun", "an Open MPI command", true, ft__launch_mpirun},
};
static const size_t launcher_count = sizeof launchers / sizeof *launchers;
static const char every_file[] = "all"; /* whatever starts such a plan of such a model */

/* `files`: names, each between blanks. */
static bool lists(const char *files, const char *name)
{
    char word[64];
    snprintf(word, sizeof word, " %.60s ", name);
    return *name && strstr(files, word);
}

static bool serves(const ft_launcher *l, const ft_framework *f) { return l->anybody || lists(f->files, l->name); }

static ft_status starts_none(const char *name, const ft_framework *f, ft_error *err)
{
    char others[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < launcher_count; i++)
        if (serves(&launchers[i], f) && used < sizeof others)
            used += (size_t)snprintf(others + used, sizeof others - used, "%s%s", *others ? ", " : "",
                                     launchers[i].name);
    return ft__fail_at(err, FT_E_RANGE, "emit", 0, 0, "\"%s\" cannot start a plan of \"%s\"; these can: %s", name,
                       f->name, others);
}

ft_status ft__launcher_find(const char *name, const ft_framework *f, const ft_launcher **out, ft_error *err)
{
    const char *names[16] = {0};
    for (size_t i = 0; i < launcher_count; i++) {
        names[i] = launchers[i].name;
        if (strcmp(name, names[i]) != 0) continue;
        *out = &launchers[i];
        if (serves(*out, f)) return FT_OK;
        return starts_none(name, f, err);
    }
    const char *near = ft__nearest_software(name, names, launcher_count);
    return near ? ft__fail_at(err, FT_E_NAME, "emit", 0, 0, "cannot emit \"%.40s\"; did you mean \"%s\"?", name, near)
                : ft__fail_at(err, FT_E_NAME, "emit", 0, 0,
                              "cannot emit \"%.40s\"; there are megatron, bridge, nemo, torchtitan, deepspeed, "
                              "accelerate, torchrun, srun and mpirun, or all",
                              name);
}

bool ft__launches(const ft_framework *f, const char *file, const ft_arch *a)
{
    return !lists(f->files_for_decoders, file) || (a->design == FT_DECODER_ONLY && ft__megatron_attends(a));
}

/* Flags of a program that trains no such model would start another one. */
static ft_status check_model(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, const ft_framework *f,
                             const char *file, ft_error *err)
{
    ft_model_request read;
    FT_TRY(ft__plan_model(ft, scratch, r->base, &read, err));
    if (ft__launches(f, file, read.arch)) return FT_OK;
    return ft__fail_at(
        err, FT_E_RANGE, "emit", 0, 0,
        read.arch->design == FT_DECODER_ONLY
            ? "\"%s\" writes flags of %.*s, whose layers are attention and a network, which this model's "
              "are not; bridge and nemo take a recipe that knows the model"
            : "\"%s\" writes flags of %.*s, which trains decoders, which this model is not; torchrun, "
              "srun and mpirun start any",
        file, (int)strcspn(f->runs, " "), f->runs);
}

/* A framework's own program trains on tokens that it is given: started for anything else it would do another job. */
static ft_status check_trainer(const ft_plan_request *r, const ft_framework *f, ft_error *err)
{
    const char *trainer = json_string_value(ft__key_get(r->base, FT_KEY_ID_TRAINER));
    if (!trainer || f->own_program || !strcmp(trainer, ft__trainer_words[FT_TRAINER_SFT])) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, "emit", 0, 0,
                       "what %s starts trains on given tokens, not by \"%.20s\"; launch files of \"framework\" fsdp, "
                       "deepspeed and ddp start a program of your own",
                       f->title, trainer);
}

ft_status ft__launch_check(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_error *err)
{
    const ft_framework *f;
    const ft_launcher *ignored;
    if (r->emit_count && r->framework)
        FT_TRY(ft__framework_find(r->framework, &f, err));
    else if (r->emit_count)
        FT_TRY(ft__framework_usual(ft, scratch, r->base, &f, err));
    if (r->emit_count) FT_TRY(check_trainer(r, f, err));
    for (size_t i = 0; i < r->emit_count; i++) {
        if (!strcmp(r->emit[i], every_file)) continue;
        FT_TRY(ft__launcher_find(r->emit[i], f, &ignored, err));
        if (lists(f->files_for_decoders, r->emit[i])) FT_TRY(check_model(ft, scratch, r, f, r->emit[i], err));
    }
    return FT_OK;
}

void ft__launch_modules(ft_text *out, const ft_launch *l, const char *quote, const char *between)
{
    unsigned again = l->search->request.work.again;
    const char *next = "";
    if (l->plan->layout.recompute != FT_RECOMPUTE_SELECTIVE) return;
    for (int i = 0; i < FT_MODULE_COUNT; i++) {
        if (!(again & 1u << i)) continue;
        ft__text_addf(out, "%s%s%s%s", next, quote, ft__module_words[i], quote);
        next = between;
    }
}

static unsigned graphed(const ft_launch *l)
{
    ft_workload work = l->search->request.work;
    work.recompute = l->plan->layout.recompute;
    work.offload = l->plan->layout.offload;
    return ft__graphed(&work);
}

const char *ft__launch_graphs(const ft_launch *l)
{
    const unsigned modules = graphed(l);
    return !modules ? NULL : modules & 1u << FT_GRAPHED_FULL_ITERATION ? "full_iteration" : "transformer_engine";
}

void ft__launch_graphed(ft_text *out, const ft_launch *l, const char *quote, const char *between)
{
    const unsigned modules = graphed(l);
    const char *next = "";
    if (modules & (1u << FT_GRAPHED_LAYER | 1u << FT_GRAPHED_FULL_ITERATION)) return;
    for (int i = 0; i < FT_GRAPHED_COUNT; i++) {
        if (!(modules & 1u << i)) continue;
        ft__text_addf(out, "%s%s%s%s", next, quote, ft__graphed_words[i], quote);
        next = between;
    }
}

int64_t ft__offloaded_layers(const ft_launch *l)
{
    int64_t named = l->search->request.work.offload_layers, layers = l->search->model.layers;
    return named > 0 ? named : layers > 5 ? layers - 4 : 1;
}

size_t ft__launch_files(const ft_plan *p, const ft_launcher *out[FT_PLAN_MOST_EMITTED])
{
    const ft_plan_request *asked = p->search.asked;
    const ft_framework *f = p->search.framework;
    size_t count = 0;
    bool all = false;
    ft_error ignored;
    for (size_t i = 0; i < asked->emit_count; i++) all = all || !strcmp(asked->emit[i], every_file);
    if (!all) {
        for (size_t i = 0; i < asked->emit_count; i++)
            if (ft__launcher_find(asked->emit[i], f, &out[count], &ignored) == FT_OK) count++;
        return count;
    }
    for (size_t i = 0; i < launcher_count && count < FT_PLAN_MOST_EMITTED; i++) {
        const ft_launcher *l = &launchers[i];
        if (serves(l, f) && ft__launches(f, l->name, p->search.request.arch)) out[count++] = l;
    }
    return count;
}

ft_launch ft__launch_of(const ft_plan *p, const ft_candidate *plan)
{
    int64_t gpus = p->search.asked->gpus, each = p->search.cluster.gpus_per_node;
    if (each < 1 || each > gpus) each = gpus;
    return (ft_launch){.search = &p->search, .plan = plan, .nodes = (gpus + each - 1) / each, .gpus_per_node = each};
}
