/* The backward pass: every trained parameter of every model gets a gradient, and operators have the gradients that
 * PyTorch's have. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "graph/emit.h"
#include "graph/pointwise.h"
#include "import/config/config.h"
#include "model/workload.h"
#include "named_site.h"

/* -- whole models ------------------------------------------------------------------------------ */

typedef struct tally {
    double trained, gradients, trained_elements, gradient_elements;
} tally;

/* A token that stands for what is masked, where nothing is, and the like: autograd leaves its gradient out. */
static bool *read_by_a_kernel(const ft_graph *g)
{
    bool *read = test_calloc((size_t)g->tensor_count, sizeof *read);
    for (int32_t n = 0; n < g->node_count; n++)
        for (int k = 0; k < g->nodes[n].in_count; k++)
            if (g->nodes[n].in[k] >= 0) read[g->tensors[g->nodes[n].in[k]].storage] = true;
    return read;
}

static tally count(const ft_graph *g)
{
    tally c = {0};
    bool *read = read_by_a_kernel(g);
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->storage != i) continue;
        double copies = (double)t->copies, all = ft__tensor_numel(t) * copies;
        if (t->role == FT_PARAMETER && t->trained && read[i]) c.trained += copies, c.trained_elements += all;
        if (t->role == FT_GRADIENT) c.gradients += copies, c.gradient_elements += all;
    }
    test_free(read);
    return c;
}

/* Read, and without a gradient: the gain of a normed filter of 128 taps, and a table of distances that attention takes
 * as its mask. A kernel of a few hundred numbers each. */
static double left_out(const char *model)
{
    return !strncmp(model, "hubert", 6) || !strncmp(model, "wav2vec2", 8) ? 128 : !strncmp(model, "mpnet", 5) ? 384 : 0;
}

static int holes(const ft_workload *work, const char *how)
{
    ft_arena *arena = ft__arena_new(0);
    int wrong = 0;
    assert_non_null(arena);
    for (size_t i = 0; i < ft__model_count(); i++) {
        const ft_model_entry *e = ft__model_at(i);
        ft_arch arch = {0};
        ft_error err = {0};
        ft_graph *g = NULL;
        ft_status opened = ft__model_open(e->name, NULL, &arch, &err);
        ft_workload sized = *work; /* a graph of the catalogue may have one batch and one length */
        if (arch.fixed_batch > 0) sized.batch = arch.fixed_batch;
        if (arch.fixed_seq > 0) sized.seq = arch.fixed_seq;
        if (opened != FT_OK || ft__model_graph(&arch, &sized, arena, &g, &err) != FT_OK) {
            print_message("%s, %s: %s\n", e->name, how, err.message);
            wrong++;
        } else {
            tally c = count(g);
            double hole = c.trained > c.gradients ? left_out(e->name) : 0; /* fused away where compiled */
            /* The loss of a graph of the catalogue is that of its first result: other heads get no gradient. */
            bool part = arch.design == FT_CUSTOM && c.gradient_elements <= c.trained_elements &&
                        c.gradient_elements > 0.8 * c.trained_elements;
            if (part) {
                ft__arch_release(&arch);
                ft__arena_reset(arena);
                continue;
            }
            if (c.trained != c.gradients + (hole > 0) || c.trained_elements != c.gradient_elements + hole) {
                print_message("%s, %s: %.0f trained tensors of %.0f elements, %.0f gradients of %.0f\n", e->name, how,
                              c.trained, c.trained_elements, c.gradients, c.gradient_elements);
                wrong++;
            }
        }
        ft__arch_release(&arch);
        ft__arena_reset(arena);
    }
    ft__arena_free(arena);
    return wrong;
}

static ft_workload training(void)
{
    return (ft_workload){.task = FT_TRAIN,
                         .dtype = FT_BF16,
                         .kv_dtype = FT_BF16,
                         .batch = 2,
                         .seq = 64,
                         .attention = FT_SDPA,
                         .execution = FT_RUN_EAGER,
                         .optimizer = FT_ADAMW,
                         .accumulate = 1};
}

static void every_trained_parameter_of_every_model_gets_a_gradient(void **state)
{
    ft_workload sdpa = training(), eager = training(), mixed = training(), again = training(), selective = training();
    (void)state;
    eager.attention = FT_EAGER;
    mixed.autocast = true;
    again.recompute = FT_RECOMPUTE_FULL;
    assert_int_equal(0, holes(&sdpa, "sdpa"));
    assert_int_equal(0, holes(&eager, "eager attention"));
    assert_int_equal(0, holes(&mixed, "autocast"));
    assert_int_equal(0, holes(&again, "recomputation"));
    selective.recompute = FT_RECOMPUTE_SELECTIVE;
    assert_int_equal(0, holes(&selective, "selective recomputation"));
    selective.execution = FT_RUN_COMPILE;
    assert_int_equal(0, holes(&selective, "selective recomputation, compiled"));
}

static void adapters_are_all_that_is_trained_with_them(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_arch arch;
    ft_error err = {0};
    ft_graph *g;
    ft_workload work = training();
    (void)state;
    work.lora_rank = 16;
    assert_int_equal(FT_OK, ft__model_open("llama-3.2-1b", NULL, &arch, &err));
    assert_int_equal(FT_OK, ft__model_graph(&arch, &work, arena, &g, &err));
    tally c = count(g);
    assert_true(c.trained == 2.0 * 7 * 16 && c.gradients == c.trained); /* two per linear, seven linears, 16 layers */
    for (ft_ref i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].role == FT_PARAMETER && g->tensors[i].trained) assert_true(g->tensors[i].element_bytes == 4);
    arch.layers = 1; /* the only layer of its kind has them too */
    assert_int_equal(FT_OK, ft__model_graph(&arch, &work, arena, &g, &err));
    c = count(g);
    assert_true(c.trained == 2.0 * 7 && c.gradients == c.trained);
    ft__arena_free(arena);
}

static int products_again(const char *model, ft_execution execution)
{
    ft_arena *arena = ft__arena_new(0);
    ft_arch arch;
    ft_error err = {0};
    ft_graph *g;
    ft_workload work = training();
    work.recompute = FT_RECOMPUTE_FULL;
    work.execution = execution;
    assert_int_equal(FT_OK, ft__model_open(model, NULL, &arch, &err));
    assert_int_equal(FT_OK, ft__model_graph(&arch, &work, arena, &g, &err));
    int found = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        found += g->nodes[i].phase == FT_RECOMPUTE && g->nodes[i].verb == FT_DO_LINEAR;
    ft__arch_release(&arch);
    ft__arena_free(arena);
    return found;
}

/* Counted in traces of PyTorch: nothing saves what Llama's down_proj makes; GPT-2's dropout behind c_proj saves a
 * mask. */
static void checkpoints_stop_at_the_last_tensor_that_was_saved(void **state)
{
    (void)state;
    assert_int_equal(products_again("llama-3.2-1b", FT_RUN_EAGER), 6);
    assert_int_equal(products_again("gpt2", FT_RUN_EAGER), 4);
    int megatron = products_again("llama-3.2-1b", FT_RUN_FUSED); /* q, k, v and gate, up are one product each there */
    assert_int_equal(megatron, 4);
}

/* -- single operators -------------------------------------------------------------------------- */

enum { ROWS = 64, COLS = 32 };

typedef struct bench {
    ft_arena *arena;
    ft_graph *g;
    ft_build b;
    ft_ref x; /* a trained [ROWS, COLS] that comes into the block under test */
    int32_t forward;
} bench;

static bench open_bench(ft_error *err)
{
    bench t = {.arena = ft__arena_new(0)};
    t.g = ft__graph_new(t.arena, FT_BF16);
    t.b = ft__build_begin(t.g, FT_BF16, false, true, err);
    ft__block_open(&t.b, &(const ft_block_info){.name = "test"}, 1, FT_NONE);
    ft_ref table = FT_NONE, indices = ft__input(&t.b, 1, ROWS, 8);
    t.x = ft__embedding(&t.b, named_site(t.g, "x"), indices, 100, COLS, &table);
    return t;
}

/* The names of the kernels that undo what was built on x, in order, without the one that undoes x itself. */
static const char *undone(bench *t, ft_ref y)
{
    static char text[512];
    ft_error err = {0};
    ft__block_close(&t->b, y);
    t->forward = t->g->node_count;
    assert_int_equal(FT_OK, t->b.status);
    assert_int_equal(FT_OK, ft__graph_backward(t->g, FT_RECOMPUTE_NONE, true, (ft_accumulation){0}, &err));
    text[0] = 0;
    for (int32_t i = t->forward; i < t->g->node_count; i++) {
        const ft_node *n = &t->g->nodes[i];
        if (!ft__node_runs(n) || n->verb == FT_DO_EMBEDDING) continue;
        if (text[0]) strcat(text, " ");
        strcat(text, n->op.name);
    }
    ft__arena_free(t->arena);
    return text;
}

static void a_product_has_two_gradients_and_its_bias_a_sum(void **state)
{
    ft_error err = {0};
    (void)state;
    bench t = open_bench(&err);
    assert_string_equal("linear linear",
                        undone(&t, ft__linear(&t.b, named_site(t.g, "y"), t.x, 48, FT_NO_BIAS, FT_WHOLE)));
    t = open_bench(&err);
    assert_string_equal("linear linear sum_cols",
                        undone(&t, ft__linear(&t.b, named_site(t.g, "y"), t.x, 48, FT_BIAS, FT_WHOLE)));
}

static void pointwise_operators_follow_the_formulas(void **state)
{
    static const struct {
        const char *op, *back;
    } rules[] = {
        {"addu", ""},
        {"mulu", "mulu"},
        {"gelu", "gelu_backward"},
        {"silu", "silu_backward"},
        {"tanh", "tanh_backward"},
        {"powu", "powu mulu mul"},
        {"clamp", "compare compare compare where"},
        {"clamp_max", "compare where"},
    };
    ft_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        bench t = open_bench(&err);
        assert_string_equal(rules[i].back, undone(&t, ft__pointwise(&t.b, named_site(t.g, "y"), rules[i].op, t.x)));
    }
}

static void a_tensor_with_two_readers_adds_up(void **state)
{
    ft_error err = {0};
    (void)state;
    bench t = open_bench(&err);
    ft_ref a = ft__pointwise(&t.b, named_site(t.g, "a"), "gelu", t.x),
           b = ft__pointwise(&t.b, named_site(t.g, "b"), "silu", t.x);
    assert_string_equal("silu_backward gelu_backward add", undone(&t, ft__add(&t.b, named_site(t.g, "y"), a, b)));
}

static void a_slice_is_put_into_zeros_and_a_split_is_joined(void **state)
{
    ft_error err = {0};
    int64_t half[2] = {COLS / 2, COLS / 2};
    ft_ref part[2];
    (void)state;
    bench t = open_bench(&err);
    assert_string_equal("fill copy", undone(&t, ft__slice(&t.b, t.x, ROWS, COLS / 2)));
    t = open_bench(&err);
    ft__split(&t.b, t.x, 2, half, part);
    assert_string_equal("mul mul cat_halves", undone(&t, ft__mul(&t.b, named_site(t.g, "y"), part[0], part[1])));
}

static void masking_in_place_flows_through(void **state)
{
    ft_error err = {0};
    (void)state;
    bench t = open_bench(&err);
    ft_ref mask = ft__input(&t.b, ROWS, 1, 1), copy = ft__copy(&t.b, named_site(t.g, "y"), t.x, ROWS, COLS);
    assert_string_equal("copy masked_fill",
                        undone(&t, ft__pointwise_in_place(&t.b, named_site(t.g, "y"), "masked_fill", copy, mask)));
}

static void rows_that_were_picked_go_back_by_index(void **state)
{
    ft_error err = {0};
    (void)state;
    bench t = open_bench(&err);
    ft_ref picked = ft__gather(&t.b, named_site(t.g, "y"), t.x, 2 * ROWS);
    assert_string_equal("fill sort index_put", undone(&t, picked));
}

/* The gradient of so many rows that were picked at a site. */
static ft_node put_back(bool moe, int64_t rows)
{
    ft_error err = {0};
    bench t = open_bench(&err);
    ft_node put = {0};
    ft_ref y = ft__gather(&t.b, moe ? FT_AT(MOE_DOWN) : named_site(t.g, "y"), t.x, rows);
    ft__block_close(&t.b, y);
    assert_int_equal(FT_OK, ft__graph_backward(t.g, FT_RECOMPUTE_NONE, true, (ft_accumulation){0}, &err));
    for (int32_t i = 0; i < t.g->node_count; i++)
        if (!strcmp(t.g->nodes[i].op.name, "index_put")) put = t.g->nodes[i];
    ft__arena_free(t.arena);
    return put;
}

/* They wait for each other; the fullest expert has more of them than the mean. */
static void rows_that_share_an_index_are_added_one_by_one(void **state)
{
    (void)state;
    ft_node few = put_back(false, 2 * ROWS), many = put_back(false, 100 * ROWS), experts = put_back(true, 100 * ROWS);
    assert_true(few.walk == FT_WALK_NONE && few.trips == 0);
    assert_true(many.walk == FT_WALK_MEET_NARROW && many.trips == 100 && many.blocks == ROWS);
    assert_true(experts.walk == many.walk && experts.trips > 1.5 * many.trips && experts.trips < 3 * many.trips);
}

static void a_broadcast_operand_gets_a_sum(void **state)
{
    ft_error err = {0};
    (void)state;
    bench t = open_bench(&err);
    ft_ref weight = ft__parameter(&t.b, "w", 1, COLS);
    assert_string_equal("mul mul sum_cols", undone(&t, ft__mul(&t.b, named_site(t.g, "y"), t.x, weight)));
}

static void formats_come_back_as_they_went(void **state)
{
    ft_error err = {0};
    (void)state;
    bench t = open_bench(&err);
    ft_ref wide = ft__cast(&t.b, named_site(t.g, "y"), t.x, FT_FP32);
    assert_string_equal("gelu_backward cast_bf16", undone(&t, ft__pointwise(&t.b, named_site(t.g, "y"), "gelu", wide)));
}

static void every_rule_names_kernels_and_operands_that_exist(void **state)
{
    static const char *const known[] = {"add",  "sub",  "mul",  "div",   "addu",  "mulu",  "divu",    "powu",
                                        "pow",  "neg",  "exp",  "cos",   "sin",   "log",   "copy",    "relu",
                                        "gelu", "silu", "tanh", "where", "clamp", "rsqrt", "sigmoid", "masked_fill"};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const ft_gradient *rule = ft__gradient_find(known[i]);
        assert_string_equal(known[i], rule->op);
        for (const char *p = rule->first; *p; p++) assert_true(strchr("abcdefghijklmnopqrstuvwxyz_:! 0123456789", *p));
    }
    assert_string_equal("", ft__gradient_find("no such operator")->op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_trained_parameter_of_every_model_gets_a_gradient),
        cmocka_unit_test(checkpoints_stop_at_the_last_tensor_that_was_saved),
        cmocka_unit_test(adapters_are_all_that_is_trained_with_them),
        cmocka_unit_test(a_product_has_two_gradients_and_its_bias_a_sum),
        cmocka_unit_test(pointwise_operators_follow_the_formulas),
        cmocka_unit_test(a_tensor_with_two_readers_adds_up),
        cmocka_unit_test(a_slice_is_put_into_zeros_and_a_split_is_joined),
        cmocka_unit_test(masking_in_place_flows_through),
        cmocka_unit_test(rows_that_were_picked_go_back_by_index),
        cmocka_unit_test(rows_that_share_an_index_are_added_one_by_one),
        cmocka_unit_test(a_broadcast_operand_gets_a_sum),
        cmocka_unit_test(formats_come_back_as_they_went),
        cmocka_unit_test(every_rule_names_kernels_and_operands_that_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
