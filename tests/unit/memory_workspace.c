/* What kernels hold while they run, against what an allocator was seen to hand out inside of operators. */
#include "small_graph.h"

#include "memory/workspace.h"

/* Bytes that PyTorch's allocator handed out inside of operators on an H200. */
static void kernels_hold_what_they_were_seen_to_hold(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    static const struct {
        int64_t rows, cols;
        double bytes;
    } sums[] = {{4096, 3072, 100663808},
                {4096, 7168, 139461120},
                {4096, 51200, 157288448},
                {12608, 768, 77464064},
                {64, 1000, 0}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        ft_node n = {.verb = FT_DO_ROW, .op = {.kind = FT_OP_ROW, .name = "sum_cols", .dtype = FT_BF16}};
        n.op.u.row.rows = sums[i].rows;
        n.op.u.row.cols = sums[i].cols;
        assert_true(fabs(ft__node_workspace(g, &n, &h200) - sums[i].bytes) <= 4096);
    }
    /* The stem of a ResNet, channels first: 64 x 3 x 224 x 224 to 64 x 64 x 112 x 112, 155189248 bytes. */
    ft_tensor image = {.rows = 64 * 3, .cols = 224 * 224, .element_bytes = 2, .storage = FT_NONE},
              result = {.rows = 64 * 64, .cols = 112 * 112, .element_bytes = 2, .storage = FT_NONE};
    ft_node stem = {.verb = FT_DO_CONV,
                    .op = {.kind = FT_OP_CONV2D, .name = "conv2d", .dtype = FT_BF16},
                    .in_count = 1,
                    .out_count = 1};
    stem.in[0] = ft__graph_tensor(g, &image);
    stem.out[0] = ft__graph_tensor(g, &result);
    stem.op.u.conv.n = 64;
    stem.op.u.conv.c = 3;
    stem.op.u.conv.k = 64;
    stem.op.u.conv.r = stem.op.u.conv.s = 7;
    stem.op.u.conv.stride = 2;
    stem.op.u.conv.groups = 1;
    assert_true(fabs(ft__node_workspace(g, &stem, &h200) / 155189248 - 1) < 0.01);
    stem.op.u.conv.nhwc = true; /* three channels padded to eight: 50 MiB */
    assert_true(fabs(ft__node_workspace(g, &stem, &h200) / (50 << 20) - 1) < 0.03);
    stem.op.u.conv.c = 64; /* channels by the eight are read as they lie */
    assert_true(ft__node_workspace(g, &stem, &h200) == 0);
    stem.op.u.conv.c = 3; /* a small filter over an image that lies channels first is read as it lies too */
    stem.op.u.conv.nhwc = false;
    stem.op.u.conv.r = stem.op.u.conv.s = 3;
    assert_true(ft__node_workspace(g, &stem, &h200) == 0);
    stem.op.u.conv.nhwc = true; /* and one that lies channels last where there is a stride */
    assert_true(ft__node_workspace(g, &stem, &h200) == 0);
    stem.op.u.conv.stride = 1;
    assert_true(ft__node_workspace(g, &stem, &h200) > 48 << 20);
    /* Groups of 112 channels, last, are padded to 128: 64 x 224 x 56 x 56 in and out, 196.6 MiB; of 32 they are not. */
    ft_tensor wide = {.rows = 64 * 56 * 56, .cols = 224, .element_bytes = 2, .storage = FT_NONE};
    stem.in[0] = stem.out[0] = ft__graph_tensor(g, &wide);
    stem.op.u.conv.c = stem.op.u.conv.k = 224;
    stem.op.u.conv.nhwc = true;
    stem.op.u.conv.groups = 2;
    assert_true(fabs(ft__node_workspace(g, &stem, &h200) / (196.6 * 1048576) - 1) < 0.01);
    stem.op.u.conv.groups = 7;
    assert_true(ft__node_workspace(g, &stem, &h200) == 0);
    ft__arena_free(arena);
}

/* A transposed convolution of 256 channels to one, 16 x 4000 samples to 32008: what it reads is copied into another
 * order as it is, what it gives is padded to eight channels; not the other way round. */
static void a_transposed_convolution_pads_its_own_result(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    ft_tensor basis = {.rows = 16 * 256, .cols = 4000, .element_bytes = 2, .storage = FT_NONE},
              filters = {.rows = 256, .cols = 16, .element_bytes = 2, .storage = FT_NONE},
              sound = {.rows = 16, .cols = 32008, .element_bytes = 2, .storage = FT_NONE};
    ft_node n = {.verb = FT_DO_CONV,
                 .op = {.kind = FT_OP_CONV2D, .name = "conv2d", .dtype = FT_BF16},
                 .in_count = 2,
                 .out_count = 1};
    n.in[0] = ft__graph_tensor(g, &basis);
    n.in[1] = ft__graph_tensor(g, &filters);
    n.out[0] = ft__graph_tensor(g, &sound);
    n.op.u.conv.n = 16;
    n.op.u.conv.c = 1;
    n.op.u.conv.k = 256;
    n.op.u.conv.r = 1;
    n.op.u.conv.s = 16;
    n.op.u.conv.stride = 8;
    n.op.u.conv.groups = 1;
    n.op.u.conv.parts = FT_CONV_INPUT;
    const double read = ft__tensor_bytes(&basis), given = ft__tensor_bytes(&sound), held = ft__tensor_bytes(&filters);
    assert_true(ft__node_workspace(g, &n, &h200) == read + 8 * given + held);
    ft__arena_free(arena);
}

/* Gradients of rows of a table are summed piece by piece: as many as indices occur, or one for ten rows of an index. */
static void pieces_of_an_embeddings_gradient_are_as_many_as_its_indices(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    ft_node n = {.verb = FT_DO_EMBEDDING, .op = {.kind = FT_OP_ROW, .name = "embedding", .pass = FT_PASS_BWD}};
    n.op.dtype = FT_BF16;
    n.op.u.row.rows = 262144;
    n.op.u.row.cols = 128;
    double before = INFINITY;
    for (int64_t vocab = (int64_t)1 << 40; vocab >= 16; vocab /= 16) { /* never more where fewer can occur */
        n.op.u.row.vocab = vocab;
        double now = ft__node_workspace(g, &n, &h200);
        assert_true(now <= before * 1.0001);
        before = now;
    }
    const double indices = 48.0 * 262144, piece = 2 * 4 * 128;
    assert_true(fabs(before - indices - 26214.4 * piece) < 1e-6 * before);
    n.op.u.row.vocab = 200000; /* 262144 drawn of 200000: 146068 occur */
    assert_true(fabs((ft__node_workspace(g, &n, &h200) - indices) / piece / 146068 - 1) < 0.001);
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_hold_what_they_were_seen_to_hold),
        cmocka_unit_test(a_transposed_convolution_pads_its_own_result),
        cmocka_unit_test(pieces_of_an_embeddings_gradient_are_as_many_as_its_indices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
