// For a first visit: questions of the field, each a link.
export interface Example {
    name: string;
    hash: string;
    task?: string;
}

export const examples: readonly Example[] = [
    { name: 'Train Llama 3 8B on one H200', hash: '#step?model=llama-3-8b&gpu=h200_sxm&seq=4096&recompute=full' },
    { name: 'GPT-2, where the host holds it back', hash: '#step?model=gpt2&gpu=h100_sxm&batch=4&seq=1024' },
    {
        name: 'QLoRA of a 70B on one GPU',
        hash: '#step?model=llama-3-70b&gpu=h100_sxm&stack=peft&weights_dtype=nf4&lora_rank=16&seq=2048&recompute=full',
    },
    {
        name: 'Decode 64 sequences',
        hash: '#step?task=decode&model=llama-3-8b&gpu=h100_sxm&batch=64&seq=4096&execution=cuda_graph',
    },
    {
        name: 'Lay 70B out over 64 GPUs',
        hash: '#layout?model=llama-3-70b&gpu=h100_sxm&tp=8&pp=4&dp=2&zero=1&sp=true&global_batch=256&seq=8192&execution=fused&gpus=64',
        task: 'plan',
    },
    {
        name: 'Serve to 64 clients',
        hash: '#serve?model=llama-3-8b&gpu=h100_sxm&engine=vllm&isl=1024&osl=256&concurrency=64',
        task: 'serve',
    },
    { name: 'Tiles and waves', hash: '#kernel?gpu=h100_sxm&xm=4096&xn=4096&xk=4096' },
    {
        name: 'Days and dollars of 1 T tokens',
        hash: '#choose?model=llama-3-8b&tokens=1e12&range=8:256',
        task: 'choose',
    },
    {
        name: 'GPUs for 16 requests a second',
        hash: '#choose?use=serve&model=llama-3-8b&rate=16&isl=1024&osl=256&slo_ttft=500&slo_tpot=30',
        task: 'choose_serve',
    },
];
