// What each view of the page must show: its address, pictures by their card with what is in them at least, tables.
const pinned = encodeURIComponent(JSON.stringify([{ task: 'train', model: 'gpt2', gpu: 'h100_sxm' }]));
export const views = {
  step: ['#step?model=gpt2&gpu=h200_sxm&batch=8', { timeline: ['rect', 20], where: ['rect', 6], peak: ['rect', 6], roofline: ['circle.dot', 20], memory: ['path.area', 4] }, ['kernels', 'changes']],
  layout: ['#layout?model=llama-3-8b&gpu=h100_sxm&tp=2&pp=4&dp=2&zero=1&global_batch=32&seq=4096&gpus=16',
    { pipeline: ['rect', 40], exchanges: ['rect', 6], ranks: ['rect', 8], efficiency: ['circle', 4], rates: ['circle', 4], pareto: ['circle', 2], numbers: ['circle', 3] }, ['stages', 'plans']],
  serve: ['#serve?model=llama-3-8b&gpu=h100_sxm&isl=512&osl=64&concurrency=8&slo_ttft=500&slo_tpot=20',
    { tpot: ['circle', 6], ttft: ['circle', 6], pareto: ['circle', 6], waits: ['polyline.curve', 2], tokens: ['polyline.curve', 2], queue: ['polyline.curve', 2], cache: ['polyline.curve', 1] }, ['times', 'plans']],
  choose: ['#choose?model=llama-3-8b&tokens=1e10&range=8:16&kinds=h100_sxm,a100_sxm_80gb', { front: ['circle', 3] }, ['choices']],
  served: ['#choose?use=serve&model=llama-3-8b&rate=4&isl=512&osl=64&kinds=h100_sxm,l40s', { prices: ['rect', 3], front: ['circle', 2] }, ['choices']],
  compare: [`#compare?model=gpt2&gpu=h100_sxm&execution=compile&pins=${pinned}`, { times: ['rect', 4], memories: ['rect', 4] }, ['answers', 'causes', 'kernels']],
  kernel: ['#kernel?gpu=h100_sxm&xm=2048&xn=2048&xk=4096', { staircase: ['polyline.curve', 1], rate: ['polyline.curve', 1], waves: ['polyline.curve', 2], roofline: ['circle.dot', 1] }, []],
  gpu: ['#gpu?gpu=h100_sxm&model=gpt2', { field: ['circle', 50] }, ['sheet', 'gpus']],
  trace: ['#trace', {}, []],
};
export const config = { model_type: 'llama', hidden_size: 1024, num_hidden_layers: 4, num_attention_heads: 16, intermediate_size: 2816, vocab_size: 32000 };
