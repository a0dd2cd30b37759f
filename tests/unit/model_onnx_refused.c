/* ONNX files that are refused: what the program cannot model, and damaged ones. */
#include "onnx_graphs.h"

/* -- what is refused ------------------------------------------------------------------------------- */

#define X "opset 17\nin x float 4 64\n"
#define Y "out y float 4 64\n"

static void test_refusals(void **state)
{
    (void)state;
    refused("opset 12\nin x float 4\nnode Relu x -> y\nout y float 4\n", FT_E_UNSUPPORTED, "opset 12: 13 and later");
    refused("in x float 4\nnode Relu x -> y\nout y float 4\n", FT_E_MISSING, "which opset");
    refused(X "node If x -> y name=choice then_branch={}\n" Y, FT_E_UNSUPPORTED, "\"choice\" (If): control flow");
    refused(X "node Loop x -> y\n" Y, FT_E_UNSUPPORTED, "(Loop): control flow");
    refused(X "node Scan x -> y body={}\n" Y, FT_E_UNSUPPORTED, "(Scan): control flow");
    refused(X "node Odd x -> y body={} domain=acme\n" Y, FT_E_UNSUPPORTED, "holds a subgraph, \"body\"");
    refused("opset 17\nin x sequence\nnode Relu x -> y\nout y float 4\n", FT_E_UNSUPPORTED, "\"x\" is a sequence");
    refused(X "node SequenceConstruct x -> y\n" Y, FT_E_UNSUPPORTED, "sequences are not tensors");
    refused("opset 17\nin x text 4\nnode Relu x -> y\nout y float 4\n", FT_E_UNSUPPORTED, "is text");
    refused(X "node Add b x -> a name=first\nnode Relu a -> b\nnode Relu b -> y\n" Y, FT_E_FORMAT, "a cycle: node \"");
    refused(X "node Add x hidden -> y name=sum\n" Y, FT_E_NAME, "\"sum\" (Add) reads \"hidden\"");
    refused(X "init hidden.w float 64\nnode Add x hidden.v -> y\n" Y, FT_E_NAME, "did you mean \"hidden.w\"?");
    refused(X "node Relu x -> y\nnode Tanh x -> y\n" Y, FT_E_NAME,
            "\"y\", a result of node \"y\" (Tanh), is made twice");
    refused(X "in x float 4\nnode Relu x -> y\n" Y, FT_E_NAME, "two inputs are called \"x\"");
    refused(X "init w float 4\ninit w float 4\nnode Relu x -> y\n" Y, FT_E_NAME, "two initializers");
    refused(X "node Relu x -> z\n" Y, FT_E_MISSING, "output \"y\" is made by no node");
    refused(X "node Relu x -> y\n", FT_E_MISSING, "no outputs");
    refused("opset 17\ninit y float 4\nout y float 4\n", FT_E_MISSING, "no nodes");
    refused(X "node Relu -> y\n" Y, FT_E_MISSING, "at least 1 operands, got 0");
    refused(X "init w float 32 8\nnode MatMul x w -> y name=mm\n" Y, FT_E_RANGE,
            "node \"mm\" (MatMul): the operands' inner sizes differ: 64 and 32");
    refused(X "init w float 3 64\nnode Add x w -> y\n" Y, FT_E_RANGE, "sizes are 4 and 3 along one axis");
    refused(X "ints s 7 -1\nnode Reshape x s -> y\n" Y, FT_E_RANGE, "256 elements cannot be seen as 252");
    refused(X "node Transpose x -> y perm=0,1,2\n" Y, FT_E_RANGE, "\"perm\" has 3 axes, the tensor 2");
    refused(X "node Transpose x -> y perm=1,1\n" Y, FT_E_RANGE, "names axis 1 twice");
    refused(X "node Softmax x -> y axis=2\n" Y, FT_E_RANGE, "axis 2 of a tensor of 2 axes");
    refused(X "init w float 8 3 3 3\nnode Conv x w -> y\n" Y, FT_E_RANGE, "filters of 4 axes for images of 2");
    refused("opset 17\nin x float 1 4 8 8\ninit w float 8 3 3 3\nnode Conv x w -> y\nout y float 1\n", FT_E_RANGE,
            "4 channels in 1 groups");
    refused("opset 17\nin x float 1 3 2 2\ninit w float 8 3 3 3\nnode Conv x w -> y\nout y float 1\n", FT_E_RANGE,
            "a window of 3 does not fit 2 pixels");
    refused("opset 17\nin s int64 2\nin x float 4\nnode Reshape x s -> y\nnode Relu y -> z\nout z float ?\n",
            FT_E_UNSUPPORTED, "the shape depends on what is computed");
    refused("opset 17\nin x float 1 1 1 1 1 1 1 1 1\nnode Relu x -> y\nout y float 1\n", FT_E_UNSUPPORTED, "9 axes");
    refused("opset 17\nin x float 1099511627776 1099511627776\nnode Relu x -> y\nout y float 1\n", FT_E_UNSUPPORTED,
            "too large for any machine");
    refused("opset 17\nin x float 4\ninit w float -3\nnode Add x w -> y\nout y float 4\n", FT_E_RANGE, "size of -3");
}

static void test_tasks(void **state)
{
    (void)state;
    ft_error err;
    ft_workload work = workload(FT_DECODE, FT_FLASH);
    assert_null(graph_of(MLP, &work, &err));
    assert_int_equal(err.code, FT_E_UNSUPPORTED);
    work = workload(FT_TRAIN, FT_FLASH);
    work.lora_rank = 8;
    assert_null(graph_of(MLP, &work, &err));
    assert_non_null(strstr(err.message, "lora_rank"));
}

/* -- damaged files --------------------------------------------------------------------------------- */

static void test_truncated_anywhere(void **state)
{
    (void)state;
    size_t length;
    uint8_t *bytes = onnx_bytes(attention, &length);
    ft_workload work = workload(FT_FORWARD_PASS, FT_FLASH);
    int fine = 0;
    for (size_t cut = 0; cut < length; cut++) {
        ft_error err;
        uint8_t *part = malloc(cut + 1); /* of its own, so that a sanitiser sees who reads on */
        assert_non_null(part);
        memcpy(part, bytes, cut);
        if (graph_from(part, cut, &work, &err))
            fine++;
        else
            assert_true(err.message[0] && err.where[0]);
        free(part);
    }
    assert_int_equal(fine, 0); /* the graph is the last field: no part of it is whole */
    free(bytes);
}

static void test_every_byte_wrong(void **state)
{
    (void)state;
    size_t length;
    uint8_t *bytes = onnx_bytes(MLP, &length);
    ft_workload work = workload(FT_TRAIN, FT_EAGER);
    static const uint8_t masks[] = {0x01, 0x80, 0xFF};
    for (size_t at = 0; at < length; at++)
        for (size_t m = 0; m < sizeof masks; m++) {
            ft_error err;
            bytes[at] ^= masks[m];
            if (!graph_from(bytes, length, &work, &err)) assert_true(err.message[0]);
            bytes[at] ^= masks[m];
        }
    free(bytes);
}

static void refused_bytes(const void *bytes, size_t length, const char *says)
{
    ft_error err;
    ft_workload work = workload(FT_FORWARD_PASS, FT_EAGER);
    assert_null(graph_from(bytes, length, &work, &err));
    if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    assert_int_equal(err.code, FT_E_FORMAT);
}

static void test_hostile_bytes(void **state)
{
    (void)state;
    static const uint8_t endless[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01};
    static const uint8_t long_graph[] = {0x3A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x00};
    static const uint8_t group[] = {0x3B, 0x3C}, zero[] = {0x00, 0x00}, number[] = {0x38, 0x05};
    refused_bytes("", 0, "it has no graph");
    refused_bytes(endless, sizeof endless, "a field without a number at byte 0");
    refused_bytes(long_graph, sizeof long_graph, "runs past the end");
    refused_bytes(group, sizeof group, "runs past the end");
    refused_bytes(zero, sizeof zero, "no possible number");
    refused_bytes(number, sizeof number, "a number where a message must be");
    refused_bytes("{\"model_type\": \"bert\"}", 22, "at byte");
    /* Subgraphs in subgraphs without end: nobody looks inside. */
    wire *inner = new_wire();
    for (int depth = 0; depth < 3000; depth++) {
        wire *outer = new_wire();
        put_bytes(outer, depth % 3 == 0 ? 6 : depth % 3 == 1 ? 5 : 1, inner->at, inner->length);
        free(inner);
        inner = outer;
    }
    wire *model = new_wire();
    put_bytes(model, 7, inner->at, inner->length);
    ft_error err;
    ft_workload work = workload(FT_FORWARD_PASS, FT_EAGER);
    assert_null(graph_from(model->at, model->length, &work, &err));
    free(inner);
    free(model);
}

/* By this process so far, as Linux counts; 0 elsewhere. */
static double bytes_read(void)
{
    double bytes = 0;
    FILE *io = fopen("/proc/self/io", "r");
    if (!io) return 0;
    assert_int_equal(fscanf(io, "rchar: %lf", &bytes), 1);
    fclose(io);
    return bytes;
}

/* A weight of three GiB inside the file, not on the disk: stepped over, not read. */
static void test_weights_are_stepped_over(void **state)
{
    (void)state;
    uint64_t inside = (uint64_t)3 << 30;
    wire *tensor = new_wire(), *head = new_wire(), *tail = new_wire();
    put_whole(tensor, 1, 1 << 15);
    put_whole(tensor, 1, 3 << 13);
    put_whole(tensor, 2, 1);
    put_text(tensor, 8, "layer.weight");
    put_varint(tensor, 9 << 3 | 2);
    put_varint(tensor, inside);
    size_t graph_length;
    uint8_t *small = onnx_bytes("in x float batch 32768\nnode MatMul x layer.weight -> y\nout y float batch 24576\n",
                                &graph_length);
    /* ir_version, then the graph with one initialiser in front of the rest. */
    uint8_t *rest = small + 2;
    while (*rest++ & 0x80) {}
    while (*rest++ & 0x80) {}
    size_t rest_length = graph_length - (size_t)(rest - small);
    wire *set = new_wire();
    put_text(set, 1, "");
    put_whole(set, 2, 17);
    put_inside(head, 8, set);
    wire *count = new_wire();
    put_varint(count, tensor->length + inside);
    put_varint(head, 7 << 3 | 2);
    put_varint(head, 1 + count->length + tensor->length + inside + rest_length);
    put_varint(head, 5 << 3 | 2);
    memcpy(head->at + head->length, count->at, count->length);
    head->length += count->length;
    memcpy(head->at + head->length, tensor->at, tensor->length);
    head->length += tensor->length;
    memcpy(tail->at, rest, rest_length);
    const char *path = scratch_path("large.onnx");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(head->at, 1, head->length, file), head->length);
    assert_int_equal(fseeko(file, (off_t)inside, SEEK_CUR), 0);
    assert_int_equal(fwrite(tail->at, 1, rest_length, file), rest_length);
    assert_int_equal(fclose(file), 0);
    ft_arch arch = {0};
    ft_error err = {0};
    double before = bytes_read();
    if (ft__onnx_open(path, &arch, &err) != FT_OK) fail_msg("%s", err.message);
    double read = bytes_read() - before;
    if (read > 1e6) fail_msg("%g bytes of it were read", read);
    ft_workload work = workload(FT_FORWARD_PASS, FT_EAGER);
    ft_graph *g = NULL;
    ft__arena_reset(arena);
    assert_int_equal(ft__model_graph(&arch, &work, arena, &g, &err), FT_OK);
    assert_float_equal(g->parameters, 32768.0 * 24576, 0);
    ft__arch_release(&arch);
    free(small);
    free(tensor);
    free(head);
    free(tail);
    free(count);
}

static void test_missing_file(void **state)
{
    (void)state;
    ft_arch arch = {0};
    ft_error err = {0};
    assert_int_equal(ft__onnx_open(scratch_path("nowhere.onnx"), &arch, &err), FT_E_FILE);
}

static ft_status attempt(void *context)
{
    ft_arch arch = {0};
    ft_graph *g = NULL;
    ft_workload work = workload(FT_TRAIN, FT_FLASH);
    ft_arena *own = ft__arena_new(0);
    ft_status status = own ? FT_OK : FT_E_MEMORY;
    const wire *w = context;
    if (status == FT_OK) status = ft__onnx_read(w->at, w->length, "test.onnx", &arch, NULL);
    if (status == FT_OK) status = ft__model_graph(&arch, &work, own, &g, NULL);
    ft__arch_release(&arch);
    ft__arena_free(own);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    wire *w = new_wire();
    uint8_t *bytes = onnx_bytes(attention, &w->length);
    memcpy(w->at, bytes, w->length);
    free(bytes);
    assert_true(failing_alloc_sweep(attempt, w) > 3);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),           cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_truncated_anywhere), cmocka_unit_test(test_every_byte_wrong),
        cmocka_unit_test(test_hostile_bytes),      cmocka_unit_test(test_weights_are_stepped_over),
        cmocka_unit_test(test_missing_file),       cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
