// What starts a plan: flags, files and command lines as the library writes them, to be copied or saved.
import type { JSX } from 'preact';
import type { Words } from '../form/fields';
import { Card, Copy } from '../parts';
import { saveText } from '../save';
import { change } from '../state';

export type Launches = { [name: string]: string };

/** What each is, in words; those that are not here go by their name. */
const titles: { [name: string]: string } = {
    megatron: 'Megatron-LM, flags',
    bridge: 'Megatron-Bridge, overrides',
    nemo: 'NeMo, a program',
    torchtitan: 'torchtitan, TOML',
    deepspeed: 'DeepSpeed, JSON',
    accelerate: 'Accelerate (FSDP), YAML',
    srun: 'Slurm, a script',
    mpirun: 'Open MPI',
    vllm: 'vLLM',
    sglang: 'SGLang',
    trtllm: 'TensorRT-LLM',
};
const endings: { [name: string]: string } = {
    nemo: 'py',
    torchtitan: 'toml',
    deepspeed: 'json',
    accelerate: 'yaml',
};

/** The one that the page is set to, where it is among them; else the first, which is the best. */
export const laidOut = <T,>(plans: readonly T[], words: (plan: T) => Words, is: Words): T | undefined =>
    plans.find((plan) => Object.entries(words(plan)).every(([key, text]) => (is[key] ?? '') === text)) ?? plans[0];

/** `of`: which plan, in words; `wide`: as of a card. */
export function Launch(p: { is: Words; of: string; files: Launches; wide: 'whole' | 'ample' }): JSX.Element | null {
    const names = Object.keys(p.files);
    if (!names.length) return null;
    const name = names.includes(p.is['start'] ?? '') ? p.is['start']! : names[0]!;
    const text = p.files[name]!,
        title = titles[name] ?? name;
    return (
        <Card name="launch" title="What starts it" wide={p.wide} picture={false} note={p.of}>
            <div class="bar">
                {names.length > 1 ? (
                    <select
                        aria-label="How it is started"
                        value={name}
                        onChange={(e) => change({ start: e.currentTarget.value === names[0] ? '' : e.currentTarget.value })}
                    >
                        {names.map((n) => (
                            <option key={n} value={n}>
                                {titles[n] ?? n}
                            </option>
                        ))}
                    </select>
                ) : (
                    <span>{title}</span>
                )}
                <Copy text={() => text} label={`Copy: ${title}`} plain={false}>
                    Copy
                </Copy>
                <button
                    onClick={() => saveText(`foretell-${name}.${endings[name] ?? 'sh'}`, text)}
                    aria-label={`Save: ${title}`}
                >
                    Save
                </button>
            </div>
            <pre data-launch={name} tabIndex={0} role="group" aria-label={title}>
                {text.trimEnd()}
            </pre>
        </Card>
    );
}
