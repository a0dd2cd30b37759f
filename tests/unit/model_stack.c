/* Stacks: the files, the reader, what follows where none is named, what one refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "failing_alloc.h"
#include "model/stack.h"

static const ft_stack *named(const char *name)
{
    const ft_stack *stack = NULL;
    ft_error err;
    if (ft__stack_find(name, &stack, &err) != FT_OK) fail_msg("%s", err.message);
    return stack;
}

static bool same_traits(const ft_stack *a, const ft_stack *b, const char **first)
{
    size_t count;
    const ft_trait *traits = ft__stack_traits(&count);
    for (size_t i = 0; i < count; i++) {
        static const size_t sizes[] = {
            [FT_TRAIT_FLAG] = sizeof(bool), [FT_TRAIT_WORD] = sizeof(ft_sharding), [FT_TRAIT_NUMBER] = sizeof(double)};
        *first = traits[i].name;
        if (memcmp((const char *)a + traits[i].offset, (const char *)b + traits[i].offset, sizes[traits[i].type]))
            return false;
    }
    return true;
}

/* What the build compiled in is what the reader of users' files makes of the same files. */
static void files_and_table_agree(void **state)
{
    (void)state;
    size_t bases = 0;
    for (size_t i = 0; i < ft__stack_count; i++) {
        const ft_stack *compiled = &ft__stacks[i], *read = NULL;
        char path[512];
        const char *first = "";
        ft_stack own;
        ft_error err;
        json_t *file = NULL, *object = NULL;
        snprintf(path, sizeof path, "%s/data/stacks/%s.json", getenv("FORETELL_SOURCE_ROOT"), compiled->name);
        assert_int_equal(ft__json_load(path, &file, &err), FT_OK);
        if (!json_object_get(file, "base")) { /* the one below all others: on top of itself */
            json_object_set_new(file, "base", json_string(compiled->name));
            bases++;
        }
        object = file;
        if (ft__stack_read(object, "stack", &own, &read, &err) != FT_OK) fail_msg("%s: %s", err.where, err.message);
        if (!same_traits(compiled, read, &first)) fail_msg("%s: %s", compiled->name, first);
        assert_int_equal(read->executions, compiled->executions);
        assert_int_equal(read->execution, compiled->execution);
        assert_int_equal(read->attention, compiled->attention);
        assert_int_equal(read->master_weights, compiled->master_weights);
        assert_int_equal(read->zero, compiled->zero);
        assert_int_equal(read->compile_scope, compiled->compile_scope);
        assert_string_equal(read->cp_kind, compiled->cp_kind);
        assert_string_equal(read->name, compiled->name);
        assert_string_equal(read->title, compiled->title);
        assert_true(compiled->executions >> compiled->execution & 1);
        json_decref(file);
    }
    assert_int_equal(bases, 1);
}

static void every_trait_is_in_a_file(void **state)
{
    (void)state;
    size_t count;
    const ft_trait *traits = ft__stack_traits(&count);
    char path[512];
    json_t *file = NULL;
    ft_error err;
    snprintf(path, sizeof path, "%s/data/stacks/pytorch.json", getenv("FORETELL_SOURCE_ROOT"));
    assert_int_equal(ft__json_load(path, &file, &err), FT_OK);
    for (size_t i = 0; i < count; i++)
        if (!json_object_get(json_object_get(file, "traits"), traits[i].name)) fail_msg("%s", traits[i].name);
    assert_int_equal(json_object_size(json_object_get(file, "traits")), count);
    json_decref(file);
}

static void refused(const char *text, ft_status code, const char *where, const char *message)
{
    ft_stack own;
    const ft_stack *out = NULL;
    ft_error err;
    json_t *said = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(said);
    ft_status status = ft__stack_read(said, "stack", &own, &out, &err);
    json_decref(said);
    if (status != code || strcmp(err.where, where) || !strstr(err.message, message))
        fail_msg("%s: %d, \"%s\", \"%s\"", text, (int)status, err.where, err.message);
}

static void what_is_no_stack_is_refused(void **state)
{
    (void)state;
    refused("\"megatron2021\"", FT_E_NAME, "stack", "did you mean \"megatron_2021\"?");
    refused("\"zzz\"", FT_E_NAME, "stack", "expected automodel, ddp, deepspeed, ");
    refused("3", FT_E_TYPE, "stack", "must be a name, a file or an object");
    refused("\"/nowhere/at/all.json\"", FT_E_FILE, "/nowhere/at/all.json", "");
    refused("{}", FT_E_MISSING, "stack.base", "needs \"base\"");
    refused("{\"base\": \"fsdp_2\"}", FT_E_NAME, "stack", "did you mean \"fsdp2\"?");
    refused("{\"base\": \"fsdp2\", \"trait\": {}}", FT_E_KEY, "stack.trait", "did you mean \"traits\"?");
    refused("{\"base\": \"fsdp2\", \"traits\": []}", FT_E_TYPE, "stack.traits", "must be an object");
    refused("{\"base\": \"fsdp2\", \"traits\": {\"fused_norm\": true}}", FT_E_KEY, "stack.traits.fused_norm",
            "did you mean \"fused_norms\"?");
    refused("{\"base\": \"fsdp2\", \"traits\": {\"fused_norms\": 1}}", FT_E_TYPE, "stack.traits.fused_norms",
            "true or false");
    refused("{\"base\": \"fsdp2\", \"traits\": {\"sharding\": \"layers\"}}", FT_E_NAME, "stack.traits.sharding",
            "\"units\", \"buckets\", \"parameters\"");
    refused("{\"base\": \"fsdp2\", \"traits\": {\"bucket_mib\": -1}}", FT_E_RANGE, "stack.traits.bucket_mib",
            "from 0 to 1000000");
    refused("{\"base\": \"fsdp2\", \"defaults\": {\"attention\": \"fast\"}}", FT_E_NAME, "stack.defaults.attention",
            "\"sdpa\"");
    refused("{\"base\": \"fsdp2\", \"defaults\": {\"execution\": \"eager\"}}", FT_E_TYPE, "stack.defaults.execution",
            "array of words");
    refused("{\"base\": \"fsdp2\", \"defaults\": {\"execution\": [3]}}", FT_E_TYPE, "stack.defaults.execution",
            "element 1 is not a string");
    refused("{\"base\": \"fsdp2\", \"defaults\": {\"cp_kind\": \"p2p\"}}", FT_E_NAME, "stack.defaults.cp_kind",
            "\"ring\"");
    refused("{\"base\": \"fsdp2\", \"defaults\": {\"zero\": 4}}", FT_E_RANGE, "stack.defaults.zero", "from 0 to 3");
}

static void a_users_own_stands_on_a_known_one(void **state)
{
    (void)state;
    ft_stack own;
    const ft_stack *out = NULL;
    ft_error err;
    const char *first = "";
    json_t *said = json_loads("{\"base\": \"fsdp2\", \"traits\": {\"fused_norms\": true, \"sharding\": \"buckets\", "
                              "\"bucket_mib\": 100}, \"defaults\": {\"execution\": [\"compile\"], \"zero\": 2}}",
                              0, NULL);
    assert_int_equal(ft__stack_read(said, "stack", &own, &out, &err), FT_OK);
    assert_ptr_equal(out, &own);
    assert_string_equal(own.name, "fsdp2, own");
    assert_true(own.fused_norms && own.sharding == FT_SHARDING_BUCKETS && own.bucket_mib == 100 && own.zero == 2);
    assert_int_equal(own.executions, 1u << FT_RUN_COMPILE);
    own.fused_norms = false;
    own.sharding = FT_SHARDING_UNITS;
    own.bucket_mib = 25;
    assert_true(same_traits(&own, named("fsdp2"), &first));
    json_decref(said);
}

static ft_status read_once(void *object)
{
    ft_stack own;
    const ft_stack *out = NULL;
    ft_error err;
    return ft__stack_read(object, "stack", &own, &out, &err);
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/data/stacks/torchtitan.json", getenv("FORETELL_SOURCE_ROOT"));
    json_t *file = json_string(path);
    assert_true(failing_alloc_sweep(read_once, file) > 5);
    json_decref(file);
}

/* The rule of docs/stacks.md. */
static void left_out_it_follows_from_the_rest(void **state)
{
    (void)state;
    static const struct {
        ft_workload work;
        int zero;
        int64_t replicas;
        const char *name;
    } cases[] = {
        {{.task = FT_TRAIN}, 0, 1, "pytorch"},
        {{.task = FT_TRAIN}, 0, 8, "ddp"},
        {{.task = FT_TRAIN}, 1, 8, "ddp"},
        {{.task = FT_TRAIN}, 2, 8, "fsdp2"},
        {{.task = FT_TRAIN}, 3, 8, "sharded"},
        {{.task = FT_FORWARD_PASS}, 3, 8, "fsdp2"},
        {{.task = FT_TRAIN, .execution = FT_RUN_COMPILE}, 3, 8, "fsdp2"},
        {{.task = FT_TRAIN, .master_weights = true}, 0, 1, "framework"},
        {{.task = FT_TRAIN, .master_weights = true}, 3, 8, "framework"},
        {{.task = FT_FORWARD_PASS, .master_weights = true}, 0, 1, "pytorch"},
        {{.task = FT_TRAIN, .execution = FT_RUN_FUSED}, 0, 1, "megatron_recipe"},
        {{.task = FT_TRAIN, .execution = FT_RUN_FUSED, .before_fp8 = true}, 1, 8, "recipe_2023"},
        {{.task = FT_FORWARD_PASS, .execution = FT_RUN_FUSED, .before_fp8 = true}, 0, 1, "megatron_recipe"},
        {{.task = FT_TRAIN, .before_fp8 = true}, 0, 1, "pytorch"},
        {{.task = FT_TRAIN, .execution = FT_RUN_FUSED, .dtype = FT_FP16, .master_weights = true},
         3,
         8,
         "megatron_recipe"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(ft__stack_of(&cases[i].work, cases[i].zero, cases[i].replicas)->name, cases[i].name);
}

/* Where a GPU's first software was carried over from another's, its fused kernels for few bits are that; not those of
 * adapters, which came later, nor anything in 16 bits. */
static void a_port_is_meant_below_16_bits(void **state)
{
    (void)state;
    const ft_workload fp8 = {.task = FT_TRAIN, .execution = FT_RUN_FUSED, .dtype = FT_FP8, .ported = true};
    ft_workload bf16 = fp8, eager = fp8, adapters = fp8, said = fp8, elsewhere = fp8;
    bf16.dtype = FT_BF16;
    eager.execution = FT_RUN_EAGER;
    adapters.lora_rank = 16;
    said.stack = named("megatron");
    elsewhere.ported = false;
    assert_string_equal(ft__stack_of(&fp8, 0, 8)->name, "transformer_engine_2024");
    assert_string_equal(ft__stack_of(&bf16, 0, 8)->name, "megatron_recipe");
    assert_string_equal(ft__stack_of(&eager, 0, 1)->name, "pytorch");
    assert_string_equal(ft__stack_of(&adapters, 0, 8)->name, "megatron_recipe");
    assert_string_equal(ft__stack_of(&said, 0, 8)->name, "megatron");
    assert_string_equal(ft__stack_of(&elsewhere, 0, 8)->name, "megatron_recipe");
    ft_stack of = {.default_gpus = "mi300x mi300a"};
    assert_true(ft__stack_of_gpu(&of, "mi300x") && ft__stack_of_gpu(&of, "mi300a"));
    assert_false(ft__stack_of_gpu(&of, "mi300") || ft__stack_of_gpu(&of, "mi300x mi300a") || ft__stack_of_gpu(&of, ""));
    assert_false(ft__stack_of_gpu(named("megatron_recipe"), "mi300x"));
}

static void what_a_stack_has_not_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *stack;
        ft_execution execution;
        int zero;
        bool cut, sequence;
        const char *where, *message;
    } cases[] = {
        {"fsdp2", FT_RUN_FUSED, 3, false, false, "execution", "does not run \"fused\"; it runs \"eager\", \"compile\""},
        {"maxtext", FT_RUN_CUDA_GRAPH, 3, false, false, "execution", "it runs \"compile\""},
        {"megatron", FT_RUN_EAGER, 0, false, false, "execution", "it runs \"fused\""},
        {"ddp", FT_RUN_EAGER, 3, false, false, "parallel.zero", "up to \"zero\": 1, not 3"},
        {"llm_c", FT_RUN_FUSED, 0, true, false, "parallel", "data ranks alone"},
        {"megatron_2021", FT_RUN_FUSED, 0, true, true, "parallel.sp", "no sequence parallelism"},
        {"megatron_2021", FT_RUN_FUSED, 3, true, false, NULL, NULL},
        {"torchtitan", FT_RUN_COMPILE, 3, true, true, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_workload w = {.execution = cases[i].execution, .stack = named(cases[i].stack)};
        ft_error err;
        ft_status status = ft__stack_check(&w, cases[i].zero, cases[i].cut, cases[i].sequence, &err);
        if (!cases[i].where) {
            assert_int_equal(status, FT_OK);
        } else {
            assert_int_equal(status, FT_E_RANGE);
            assert_string_equal(err.where, cases[i].where);
            if (!strstr(err.message, cases[i].message)) fail_msg("%s", err.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_and_table_agree),
        cmocka_unit_test(every_trait_is_in_a_file),
        cmocka_unit_test(what_is_no_stack_is_refused),
        cmocka_unit_test(a_users_own_stands_on_a_known_one),
        cmocka_unit_test(running_out_of_memory_is_an_error),
        cmocka_unit_test(left_out_it_follows_from_the_rest),
        cmocka_unit_test(a_port_is_meant_below_16_bits),
        cmocka_unit_test(what_a_stack_has_not_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
