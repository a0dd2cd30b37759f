// The form of a step: what is done with the model, and how it is laid out over GPUs.
import type { JSX } from 'preact';
import type { Catalogue } from '../catalogue';
import { read } from '../request';
import { Check, Choice, Group, Slider, Text, doubling, powers, type Words } from './fields';
import { GpuField, ModelField } from './subject';

const tasks = [
    ['train', 'training step'],
    ['prefill', 'prefill'],
    ['decode', 'decoding step'],
    ['forward', 'forward pass'],
] as const;
export const dtypes = [['', 'bf16'], 'fp16', 'fp32', 'tf32', 'fp8', 'int8', 'fp4', 'amp_bf16', 'amp_fp16'] as const;
/** Where nothing trains, a quantised checkpoint computes in what it is stored in unless another is said. */
export const served = [['', 'as stored'], 'bf16', 'fp16', 'fp32', 'tf32', 'fp8', 'int8', 'fp4'] as const;
const stacks = [
    ['', 'automatic'],
    'pytorch',
    'ddp',
    'fsdp',
    'fsdp2',
    'torchtitan',
    'megatron',
    'megatron_recipe',
    'nemo',
    'deepspeed',
    'hf_trainer',
    'litgpt',
    'llm_foundry',
    'peft',
    'torchtune',
    'trl',
    'unsloth',
] as const;

export const stepKeys = [
    'batch',
    'global_batch',
    'seq',
    'dtype',
    'weights_dtype',
    'kv_dtype',
    'stack',
    'execution',
    'pytorch',
    'attention',
    'recompute',
    'recompute_layers',
    'optimizer',
    'master_weights',
    'lora_rank',
    'loss',
    'clip_grad',
    'ema',
    'moments_dtype',
    'optimizer_in_backward',
    'power_cap_w',
    'images',
    'compile_scope',
    'fusions',
    'cache',
    'layout',
    'loader',
];

export function StepForm(p: { is: Words; of: Catalogue; layout?: boolean }): JSX.Element {
    const { is } = p;
    const task = read(is, 'task'),
        trains = task === 'train';
    const model = p.of.models.find((m) => m.name === read(is, 'model'));
    const experts = Number(model?.['experts'] ?? 0) > 0 || read(is, 'model').startsWith('{');
    return (
        <>
            <Group name="What runs where">
                <ModelField is={is} of={p.of} />
                <GpuField is={is} of={p.of} />
                {!p.layout && <Choice name="Task" of="task" is={is} words={tasks} />}
            </Group>
            <Group name="Work">
                <Slider
                    name="Batch"
                    of="batch"
                    is={is}
                    by={1}
                    stops={doubling(1, 1024)}
                    hint="sequences or images per micro-batch"
                />
                <Slider
                    name={task === 'decode' ? 'Cached tokens' : 'Sequence'}
                    of="seq"
                    is={is}
                    by={Math.min(model?.max_position ?? 4096, 4096)}
                    stops={doubling(64, 131072)}
                    unit="tokens"
                    hint="tokens per sequence"
                />
                {(trains || p.layout) && (
                    <Slider
                        name="Global batch"
                        of="global_batch"
                        is={is}
                        stops={powers(1, 8192)}
                        hint="sequences per step over all GPUs"
                    />
                )}
                <Choice name="Precision" of="dtype" is={is} words={trains || p.layout ? dtypes : served} />
                {!trains && !p.layout && (
                    <Choice
                        name="Weights"
                        of="weights_dtype"
                        is={is}
                        words={[['', 'as stored'], 'fp8', 'int8', 'int4', 'nf4', 'mxfp4', 'fp4']}
                    />
                )}
                {task === 'decode' && !p.layout && (
                    <Choice
                        name="Cache in"
                        of="kv_dtype"
                        is={is}
                        words={[['', 'as computed'], 'bf16', 'fp8', 'int8']}
                    />
                )}
            </Group>
            <Group name="Software">
                {(trains || p.layout) && (
                    <Choice name="Stack" of="stack" is={is} words={stacks} hint="the software that trains it" />
                )}
                <Choice
                    name="Execution"
                    of="execution"
                    is={is}
                    words={[['', 'automatic'], 'eager', 'fused', 'compile', 'cuda_graph', 'ideal', 'torchscript']}
                />
                <Choice
                    name="PyTorch"
                    of="pytorch"
                    is={is}
                    words={[['', 'today\u2019s'], '2.10', '2.8', '2.4', '2.2', '2.1', '2.0', '1.13', '1.11']}
                    hint="the version that runs it"
                />
                <Choice
                    name="Attention"
                    of="attention"
                    is={is}
                    words={[['', 'automatic'], 'flash', 'flash2', 'flash3', 'cudnn', 'sdpa', 'eager']}
                />
                {(trains || p.layout) && (
                    <Choice name="Recompute" of="recompute" is={is} words={[['', 'none'], 'selective', 'full']} />
                )}
                {(trains || p.layout) && (
                    <Choice
                        name="Optimizer"
                        of="optimizer"
                        is={is}
                        words={[
                            ['', 'adamw'],
                            'adamw_foreach',
                            'adamw_8bit',
                            'adafactor',
                            'sgd',
                            'sgd_momentum',
                            'muon',
                            'lamb',
                            'none',
                        ]}
                    />
                )}
                {(trains || p.layout) && (
                    <Check
                        name="fp32 copies"
                        of="master_weights"
                        is={is}
                        hint="master weights: fp32 copies of low-precision weights"
                    />
                )}
                {trains && (
                    <Choice
                        name="LoRA rank"
                        of="lora_rank"
                        is={is}
                        words={[['', 'all weights train'], '4', '8', '16', '32', '64', '128', '256']}
                        hint="only adapters of this rank are trained"
                    />
                )}
                {trains && Number(is['lora_rank'] ?? 0) > 0 && (
                    <Choice
                        name="Weights"
                        of="weights_dtype"
                        is={is}
                        words={[['', 'as computed'], 'nf4', 'int8', 'fp8']}
                        hint="how the frozen weights are stored"
                    />
                )}
            </Group>
            <Group name="Many GPUs">
                <Slider name="Tensor" of="tp" is={is} by={1} stops={powers(1, 16)} hint="tensor parallel ranks" />
                {(trains || p.layout) && (
                    <Slider name="Pipeline" of="pp" is={is} by={1} stops={powers(1, 32)} hint="pipeline stages" />
                )}
                {(trains || p.layout) && Number(is['pp'] ?? 1) > 1 && (
                    <Slider
                        name="Virtual"
                        of="vpp"
                        is={is}
                        by={1}
                        stops={[1, 2, 3, 4, 5, 6, 8, 10]}
                        hint="virtual stages per GPU: an interleaved pipeline"
                    />
                )}
                {(trains || p.layout) && (
                    <Slider
                        name="Context"
                        of="cp"
                        is={is}
                        by={1}
                        stops={powers(1, 16)}
                        hint="ranks that share a sequence"
                    />
                )}
                <Slider name="Data" of="dp" is={is} by={1} stops={powers(1, 2048)} hint="copies of the model" />
                {experts && (
                    <Slider
                        name="Experts"
                        of="ep"
                        is={is}
                        by={1}
                        stops={powers(1, 64)}
                        hint="ranks that experts are spread over"
                    />
                )}
                {(trains || p.layout) && (
                    <Choice
                        name="Sharding"
                        of="zero"
                        is={is}
                        words={[
                            ['', 'automatic'],
                            ['1', '1: states'],
                            ['2', '2: gradients'],
                            ['3', '3: FSDP'],
                        ]}
                    />
                )}
                {(trains || p.layout) && Number(is['tp'] ?? 1) > 1 && (
                    <Check
                        name="Sequence par."
                        of="sp"
                        is={is}
                        hint="norms and residuals split over the tensor ranks"
                    />
                )}
                {(trains || p.layout) && Number(is['pp'] ?? 1) > 1 && (
                    <Choice
                        name="Schedule"
                        of="schedule"
                        is={is}
                        words={[['', 'automatic'], 'gpipe', 'zero_bubble', 'dualpipe']}
                    />
                )}
                <Text
                    name="Network"
                    of="interconnect"
                    is={is}
                    placeholder="usual for the GPU"
                    hint="ib_ndr400, dgx_h100, or in words: 8x200 Gbps HDR InfiniBand/node"
                />
            </Group>
        </>
    );
}
