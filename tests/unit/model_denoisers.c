/* What diffusers' denoisers and encoders of images, words and sound are: parameters and arithmetic as their libraries
 * count them on the meta device (diffusers 0.42.1 and transformers 5.22.2 under PyTorch's FlopCounterMode), gradients
 * for every parameter that training reaches, and messages for configs that cannot be. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model_graphs.h"

#include "base/json.h"

#define SDXL                                                                                                   \
    "{\"_class_name\":\"UNet2DConditionModel\",\"sample_size\":128,\"cross_attention_dim\":2048,"              \
    "\"block_out_channels\":[320,640,1280],\"attention_head_dim\":[5,10,20],\"transformer_layers_per_block\":" \
    "[1,2,10],\"use_linear_projection\":true,\"down_block_types\":[\"DownBlock2D\",\"CrossAttnDownBlock2D\","  \
    "\"CrossAttnDownBlock2D\"],\"addition_embed_type\":\"text_time\",\"projection_class_embeddings_input_dim\":2816}"
#define SD3(more) "{\"_class_name\":\"SD3Transformer2DModel\"," more "}"
#define WAN(more) "{\"_class_name\":\"WanTransformer3DModel\"" more "}"

static const struct {
    const char *config;
    double parameters, flops;
} known[] = {
    {"{\"_class_name\":\"FluxTransformer2DModel\",\"guidance_embeds\":true}", 11901408320, 74384653418496},
    {"{\"_class_name\":\"FluxTransformer2DModel\"}", 11891178560, 0},
    {"{\"_class_name\":\"Flux2Transformer2DModel\"}", 32223281152, 282599551401984},
    {"{\"_class_name\":\"Flux2Transformer2DModel\",\"num_attention_heads\":24,\"num_layers\":5,\"num_single_layers\":"
     "20,"
     "\"joint_attention_dim\":7680,\"guidance_embeds\":false}",
     3875544576, 34820178051072},
    {SD3("\"num_layers\":24,\"num_attention_heads\":24"), 2028328000, 8904337539072},
    {SD3("\"num_layers\":24,\"num_attention_heads\":24,\"qk_norm\":\"rms_norm\",\"dual_attention_layers\":"
         "[0,1,2,3,4,5,6,7,8,9,10,11,12]"),
     2243171520, 11249573707776},
    {SD3("\"num_layers\":38,\"num_attention_heads\":38,\"qk_norm\":\"rms_norm\""), 8056627520, 31121114907648},
    {WAN(",\"num_attention_heads\":12,\"ffn_dim\":8960,\"num_layers\":30"), 1418996800, 283001787777024},
    {WAN(""), 14288491584, 1678370283192320},
    {"{\"_class_name\":\"UNet2DConditionModel\",\"sample_size\":64,\"cross_attention_dim\":768}", 859520964,
     803273441280},
    {"{\"_class_name\":\"UNet2DConditionModel\",\"sample_size\":64}", 872300484, 805241487360},
    {SDXL, 2567463684, 6761236398080},
    /* decode() of autoencoders: parameters of the decoder and of what stands before it */
    {"{\"_class_name\":\"AutoencoderKL\",\"latent_height\":64,\"latent_width\":64}", 49490199, 2514518933504},
    {"{\"_class_name\":\"AutoencoderKL\",\"latent_channels\":16,\"use_post_quant_conv\":false}", 49545475, 0},
    {"{\"_class_name\":\"AutoencoderKLWan\",\"latent_frames\":5}", 73295603, 58552198348800},
    {"{\"_class_name\":\"AutoencoderKLQwenImage\",\"latent_frames\":1,\"latent_height\":64,\"latent_width\":64}",
     73295603, 2843337555968},
};
enum { KNOWN = sizeof known / sizeof *known };

static ft_status read_text(const char *text, ft_arch *arch, ft_error *err)
{
    json_t *config = NULL;
    if (ft__json_parse(text, strlen(text), "test", &config, err) != FT_OK) fail_msg("%s", err->message);
    ft_status status = ft__config_read(config, NULL, "config.json", arch, err);
    json_decref(config);
    return status;
}

static const ft_graph *built(const char *text, const ft_workload *work, ft_arena *arena)
{
    ft_arch arch;
    ft_error err = {0};
    ft_graph *g = NULL;
    ft__arena_reset(arena);
    if (read_text(text, &arch, &err) != FT_OK || ft__model_graph(&arch, work, arena, &g, &err) != FT_OK)
        fail_msg("%s: %s", text, err.message);
    return g;
}

static void parameters_and_arithmetic_are_the_librarys(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_FORWARD_PASS, FT_SDPA);
    work.batch = 1;
    (void)state;
    for (size_t i = 0; i < KNOWN; i++) {
        const ft_graph *g = built(known[i].config, &work, arena);
        double flops = ft__graph_flops(g, FT_FORWARD);
        if (g->parameters != known[i].parameters)
            fail_msg("%s: %.0f parameters, the library has %.0f", known[i].config, g->parameters, known[i].parameters);
        if (known[i].flops > 0 && fabs(flops / known[i].flops - 1) > 0.01)
            fail_msg("%s: %.4g operations, the library counts %.4g", known[i].config, flops, known[i].flops);
    }
    ft__arena_free(arena);
}

/* Sizes that keep it quick. wav2vec2's embedding of masked spans is what no gradient of ours reaches. */
static void every_parameter_gets_a_gradient(void **state)
{
    static const struct {
        const char *config;
        double without;
    } small[] = {
        {"{\"model_type\":\"flux\",\"num_layers\":2,\"num_single_layers\":2,\"guidance_embeds\":true}", 0},
        {"{\"model_type\":\"flux2\",\"num_layers\":2,\"num_single_layers\":2}", 0},
        {"{\"model_type\":\"sd3\",\"num_layers\":3,\"dual_attention_layers\":[0]}", 0},
        {"{\"model_type\":\"wan\",\"num_layers\":2,\"num_attention_heads\":4}", 0},
        {"{\"model_type\":\"unet\",\"cross_attention_dim\":768}", 0},
        {"{\"model_type\":\"autoencoder_kl\",\"latent_height\":16,\"latent_width\":16}", 0},
        {"{\"model_type\":\"autoencoder_kl_wan\",\"latent_frames\":3,\"latent_height\":16}", 0},
        {"{\"model_type\":\"dinov2\",\"architectures\":[\"Dinov2ForImageClassification\"]}", 768},
        {"{\"model_type\":\"dinov3_vit\",\"architectures\":[\"DINOv3ViTForImageClassification\"]}", 384},
        {"{\"model_type\":\"albert\",\"hidden_size\":768,\"num_attention_heads\":12,\"intermediate_size\":3072}", 0},
        {"{\"model_type\":\"modernbert\",\"num_hidden_layers\":6}", 0},
        {"{\"model_type\":\"deberta-v2\",\"num_hidden_layers\":2,\"relative_attention\":true,\"pos_att_type\":"
         "[\"c2p\",\"p2c\"],\"position_buckets\":256,\"norm_rel_ebd\":\"layer_norm\"}",
         0},
        {"{\"model_type\":\"wav2vec2\",\"num_hidden_layers\":2}", 768 + 128},
        {"{\"model_type\":\"gemma3n_text\",\"num_hidden_layers\":15,\"num_kv_shared_layers\":5}", 0},
        {"{\"model_type\":\"bitnet\",\"num_hidden_layers\":2}", 0},
        {"{\"model_type\":\"recurrent_gemma\",\"num_hidden_layers\":6}", 0},
        {"{\"model_type\":\"zamba2\",\"num_hidden_layers\":18}", 0},
        {"{\"model_type\":\"mllama\"}", 0},
        {"{\"model_type\":\"longcat_flash\",\"num_layers\":1,\"n_routed_experts\":8,\"zero_expert_num\":4,\"moe_topk\":"
         "4}",
         0},
    };
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_TRAIN, FT_SDPA);
    work.batch = 2;
    work.seq = 128;
    (void)state;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        const ft_graph *g = built(small[i].config, &work, arena);
        double gradients = 0;
        for (int32_t t = 0; t < g->tensor_count; t++)
            if (g->tensors[t].role == FT_GRADIENT && g->tensors[t].storage == t)
                gradients += ft__tensor_numel(&g->tensors[t]) * (double)g->tensors[t].copies;
        if (gradients != g->trained_parameters - small[i].without)
            fail_msg("%s: gradients of %.0f of %.0f parameters", small[i].config, gradients, g->trained_parameters);
    }
    ft__arena_free(arena);
}

/* One set of weights for twelve layers: a twelfth of the parameters, all of the arithmetic. */
static void shared_layers_are_counted_once(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_FORWARD_PASS, FT_SDPA);
    work.batch = 1;
    work.seq = 256;
    (void)state;
    const char one[] = "{\"model_type\":\"albert\",\"num_hidden_layers\":1}";
    const char six[] = "{\"model_type\":\"albert\",\"num_hidden_layers\":6}";
    const ft_graph *g = built(one, &work, arena);
    double parameters = g->parameters, flops = ft__graph_flops(g, FT_FORWARD);
    g = built(six, &work, arena);
    assert_true(g->parameters == parameters);
    assert_true(ft__graph_flops(g, FT_FORWARD) > 5 * flops);
    ft__arena_free(arena);
}

static void what_cannot_be_is_refused_where_it_stands(void **state)
{
    static const struct {
        const char *config, *message;
    } bad[] = {
        {"{\"model_type\":\"unet\",\"sample_size\":60}", "sample_size: 60 latents a side cannot be halved 3 times"},
        {"{\"model_type\":\"unet\",\"block_out_channels\":[320,640],\"down_block_types\":[\"DownBlock2D\"]}",
         "down_block_types: one class for each of 2 stages is expected"},
        {"{\"model_type\":\"unet\",\"down_block_types\":[\"a\",\"b\",\"c\",\"d\"]}",
         "stage 1 is \"a\"; DownBlock2D and CrossAttnDownBlock2D are known"},
        {"{\"model_type\":\"unet\",\"attention_head_dim\":[7,8,8,8]}",
         "7 heads must divide the 320 channels of stage 1"},
        {"{\"model_type\":\"wan\",\"patch_size\":[2,2,2]}", "patches are one frame of a square"},
        {"{\"model_type\":\"wan\",\"added_kv_proj_dim\":5120}", "added_kv_proj_dim: the model for images in motion"},
        {"{\"model_type\":\"sd3\",\"num_layers\":2,\"dual_attention_layers\":[0,1]}", "2 of 2 layers attend twice"},
        {"{\"model_type\":\"flux\",\"sample_size\":100000}", "\"sample_size\" must be latents a side"},
        {"{\"model_type\":\"autoencoder_kl\",\"block_out_channels\":[100]}", "100 channels are not a multiple of 32"},
        {"{\"model_type\":\"autoencoder_kl\",\"latent_height\":100000}", "latents must be up to 65536 a side"},
        {"{\"model_type\":\"autoencoder_kl_wan\",\"is_residual\":true}", "is_residual: decoders with averaged"},
        {"{\"model_type\":\"wav2vec2\",\"conv_stride\":[5,2]}", "7 filters in conv_dim, 7 in conv_kernel, 2 in"},
        {"{\"model_type\":\"albert\",\"num_hidden_groups\":2}", "num_hidden_groups must be 1"},
        {"{\"model_type\":\"deberta-v2\",\"conv_kernel_size\":3}", "conv_kernel_size: the convolution"},
        {"{\"model_type\":\"blip-2\",\"text_config\":{\"model_type\":\"t5\"}}", "a decoder is expected"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ft_arch arch;
        ft_error err = {0};
        if (read_text(bad[i].config, &arch, &err) == FT_OK) fail_msg("%s: was read", bad[i].config);
        char whole[1024];
        snprintf(whole, sizeof whole, "%s: %s", err.where, err.message);
        if (!strstr(whole, bad[i].message))
            fail_msg("%s: \"%s\", expected \"%s\"", bad[i].config, whole, bad[i].message);
    }
}

/* diffusers' AttnProcessor: baddbmm scales the scores as it makes them, one pass over them less than transformers'. */
static void a_unet_scales_scores_in_the_product(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_FORWARD_PASS, FT_EAGER);
    work.batch = 2;
    (void)state;
    const ft_graph *g = built("{\"model_type\":\"unet\",\"cross_attention_dim\":768}", &work, arena);
    int softmaxes = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        softmaxes += !strcmp(g->nodes[i].op.name, "softmax");
        assert_string_not_equal(g->nodes[i].name, "attn.scale");
    }
    assert_true(softmaxes > 0);
    ft__arena_free(arena);
}

/* kohya-ss's networks/lora.py puts adapters beside every linear layer of a U-Net's transformers: ten to a block,
 * seventy blocks, and both ends of eleven transformers in Stable Diffusion XL. */
static void adapters_of_a_unet_are_its_transformers(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_TRAIN, FT_SDPA);
    work.lora_rank = 16;
    (void)state;
    const ft_graph *g = built(SDXL, &work, arena);
    assert_int_equal(2 * (70 * 10 + 11 * 2), g->trained_tensors);
    ft__arena_free(arena);
}

static int count_of(const ft_graph *g, ft_phase phase, ft_verb verb)
{
    int count = 0;
    for (int32_t i = 0; i < g->node_count; i++) count += g->nodes[i].phase == phase && g->nodes[i].verb == verb;
    return count;
}

/* Seventeen residual blocks: the first filter of each runs again, its last made nothing that a gradient reads. Of
 * seventy transformer blocks (written eleven times) both attentions do; filters between blocks do not. */
static void blocks_of_a_unet_run_again(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_TRAIN, FT_SDPA);
    (void)state;
    const ft_graph *g = built(SDXL, &work, arena);
    assert_int_equal(0, count_of(g, FT_RECOMPUTE, FT_DO_CONV));
    work.recompute = FT_RECOMPUTE_FULL;
    g = built(SDXL, &work, arena);
    assert_int_equal(17, count_of(g, FT_RECOMPUTE, FT_DO_CONV));
    assert_int_equal(2 * 11, count_of(g, FT_RECOMPUTE, FT_DO_ATTENTION));
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_of_a_unet_are_its_transformers),
        cmocka_unit_test(blocks_of_a_unet_run_again),
        cmocka_unit_test(parameters_and_arithmetic_are_the_librarys),
        cmocka_unit_test(every_parameter_gets_a_gradient),
        cmocka_unit_test(shared_layers_are_counted_once),
        cmocka_unit_test(a_unet_scales_scores_in_the_product),
        cmocka_unit_test(what_cannot_be_is_refused_where_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
