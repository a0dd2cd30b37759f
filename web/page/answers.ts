// Answers of the library, as far as the page reads them. Names and units are those of docs/interface.md.

export type Request = { [key: string]: unknown };

export interface Failure {
    ok: false;
    error: { code: string; message: string; where?: string };
}

export interface Memory {
    weights_bytes: number;
    gradients_bytes: number;
    optimizer_bytes: number;
    activations_bytes: number;
    temporary_bytes: number;
    kv_cache_bytes: number;
    communication_bytes: number;
    context_bytes: number;
    peak_bytes: number;
    reserved_bytes: number;
    capacity_bytes: number;
    peak_at?: string;
    fits: boolean;
    verdict: 'fits' | 'tight' | 'no';
    chance_fits: number;
    short_bytes?: number;
    remedy?: string;
    stage?: number;
}

export interface Kernel {
    name: string;
    op: string;
    count: number;
    ms: number;
    low_ms: number;
    high_ms: number;
    total_ms: number;
    flops: number;
    bytes: number;
    bound: Bound;
    source: string;
    phase: string;
    block?: string;
    members?: number;
}

export type Bound = 'compute' | 'memory' | 'overhead' | 'communication';
export const bounds: readonly Bound[] = ['compute', 'memory', 'overhead', 'communication'];

export interface Change {
    change: string;
    saves_ms: number;
    low_ms: number;
    high_ms: number;
    step_ms: number;
    memory_bytes: number;
    fits: boolean;
    verdict?: string;
    exact: boolean;
    why: string;
    request: Request;
    on_top?: boolean;
}

/** [lane, block, kernel, start, end, bound, folded] */
export type Event = [string, string, string, number, number, Bound | '', number];
export interface Pass {
    what: string;
    micro?: number;
    count?: number;
    start_ms: number;
    end_ms: number;
    walk?: string;
    from?: number;
    to?: number;
}
export interface Course {
    end_ms: number;
    stage?: number;
    passes: Pass[];
    walks: { [name: string]: { ms: number; events: Event[] } };
    memory?: { end_ms: number; slanted: boolean; kinds: string[]; moments: number[][] };
    pipeline?: {
        ms: number;
        skipped?: number;
        stages: { stage: number; gap?: number; pieces: [string, number, number, number, number][] }[];
    };
}

export interface Stage {
    forward_ms: number;
    backward_ms: number;
    update_ms: number;
    exposed_ms: number;
    in_flight: number;
    saved_bytes: number;
    peak_bytes: number;
    layers: number[];
}

export interface Energy {
    joules_per_step: number;
    low_joules: number;
    high_joules: number;
    watts_per_gpu: number;
    node_watts_per_gpu: number;
    tokens_per_joule?: number;
    samples_per_joule?: number;
}

export interface Step {
    ok: true;
    step_ms: number;
    low_ms: number;
    high_ms: number;
    forward_ms: number;
    backward_ms: number;
    optimizer_ms: number;
    recompute_ms: number;
    host_ms: number;
    comm_ms: number;
    comm_exposed_ms: number;
    bubble_ms: number;
    busy_ms: number;
    idle_ms: number;
    between_ms: number;
    launches: number;
    tokens_per_s_per_gpu: number;
    samples_per_s_per_gpu: number;
    model_tflops_per_gpu: number;
    mfu: number;
    hfu: number;
    parameters: number;
    active_parameters: number;
    stack?: string;
    ranks?: number;
    micro_batches?: number;
    parallel?: { [axis: string]: unknown };
    dealt?: string;
    cluster?: { understood: string };
    comm?: { [axis: string]: number };
    stages?: Stage[];
    memory: Memory;
    regime: { [bound in Bound]: number } & { bound: Bound };
    source: { [kind: string]: number };
    energy?: Energy;
    classes: { [name: string]: { ms: number; flops: number } };
    kernels?: Kernel[];
    course?: Course;
    advice?: Change[];
    advice_together?: Change;
    other_gpus?: Change[];
    warnings?: string[];
}

export interface Model {
    name: string;
    hub?: string;
    model_type: string;
    parameters: number;
    active_parameters: number;
    layers?: number;
    max_position?: number;
    [size: string]: unknown;
}

export interface Gpu {
    name: string;
    title: string;
    vendor: string;
    generation: string;
    year: number;
    sms: number;
    memory_gib: number;
    memory_gbps: number;
    tdp_w: number;
    peak_tflops: { [dtype: string]: number };
    vector_tflops?: { [dtype: string]: number };
    balance_flop_per_byte: { [dtype: string]: number };
    link: { kind: string; gbps_per_direction: number; gpus: number };
    price_usd_per_hour?: number;
    [figure: string]: unknown;
}
