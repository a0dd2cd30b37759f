// Which model on which GPU: from the catalogue, or a config.json that is pasted or dropped.
import type { JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { answerer } from '../ask';
import type { Catalogue } from '../catalogue';
import { gpuOf, modelName } from '../catalogue';
import { count, figure } from '../format';
import { read } from '../request';
import { change } from '../state';
import type { Words } from './fields';
import { Pick } from './pick';

const notConfig = (fault: unknown): string => `That is no config.json: ${(fault as Error).message}`;

export function ModelField(p: { is: Words; of: Catalogue }): JSX.Element {
    const items = useMemo(
        () =>
            p.of.models.map((m) => ({
                name: m.name,
                remark: count(m.parameters),
                words: `${m.hub ?? ''} ${m.model_type}`,
            })),
        [p.of],
    );
    const value = read(p.is, 'model');
    const own = value.startsWith('{');
    const [open, setOpen] = useState(own);
    const [wrong, setWrong] = useState('');
    const typed = useRef<HTMLTextAreaElement>(null);
    useLayoutEffect(() => {
        // Only when the model changes: what somebody is typing stays, whatever else is drawn anew.
        if (!typed.current) return;
        try {
            typed.current.value = own ? JSON.stringify(JSON.parse(value), null, 1) : '';
            setWrong('');
        } catch (fault) {
            typed.current.value = value; // of an address that was cut
            setWrong(notConfig(fault));
        }
    }, [value]);
    const take = (text: string): void => {
        try {
            const config: unknown = JSON.parse(text);
            if (!config || typeof config !== 'object' || Array.isArray(config))
                throw new Error('a config.json is one object');
            setWrong('');
            change({ model: JSON.stringify(config) });
        } catch (fault) {
            setWrong(notConfig(fault));
        }
    };
    const drop = (e: DragEvent): void => {
        const file = e.dataTransfer?.files[0];
        if (!file) return;
        e.preventDefault();
        setOpen(true);
        void file.text().then(take);
    };
    return (
        <div onDragOver={(e) => e.preventDefault()} onDrop={drop}>
            <Pick
                name="Model"
                id="f-model"
                value={value}
                shown={modelName(value)}
                items={items}
                onPick={(model) => {
                    setOpen(false);
                    change({ model });
                }}
            />
            {answerer().files && <ServerFile of="model" is={p.is} hint="config.json, graph or ONNX file" />}
            <details class="more" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
                <summary>Your own config.json</summary>
                <textarea
                    class="drop"
                    spellcheck={false}
                    aria-label="config.json of your model: paste it, or drop the file"
                    placeholder="Paste a config.json of Hugging Face, or drop the file here."
                    ref={typed}
                    onPaste={(e) => {
                        const area = e.currentTarget; // it has what was pasted once that is done
                        setTimeout(() => take(area.value));
                    }}
                    onChange={(e) => {
                        if (e.currentTarget.value.trim()) take(e.currentTarget.value);
                    }}
                />
                {wrong && (
                    <p class="bad" role="alert">
                        {wrong}
                    </p>
                )}
            </details>
        </div>
    );
}

/** A file of the machine that answers, by its path under the folder that it serves. */
export function ServerFile(p: { of: string; is: Words; hint: string }): JSX.Element {
    const value = p.is[p.of] ?? '';
    return (
        <div class="field">
            <label for={`f-${p.of}-file`}>File there</label>
            <input
                id={`f-${p.of}-file`}
                type="text"
                spellcheck={false}
                placeholder={p.hint}
                title="a path under the folder given to foretell web --files"
                value={/\/|\.(json|onnx|gz)$/.test(value) && !value.startsWith('{') ? value : ''}
                onChange={(e) => {
                    const path = e.currentTarget.value.trim();
                    change({ [p.of]: path });
                }}
            />
        </div>
    );
}

export function GpuField(p: { is: Words; of: Catalogue; name?: string; key_?: string }): JSX.Element {
    const key = p.key_ ?? 'gpu';
    const items = useMemo(
        () =>
            p.of.gpus.map((g) => ({
                name: g.name,
                remark: `${figure(g.memory_gib)} GiB`,
                words: `${g.title} ${g.vendor} ${g.generation}`,
            })),
        [p.of],
    );
    const value = read(p.is, key),
        known = gpuOf(p.of.gpus, value);
    return (
        <Pick
            name={p.name ?? 'GPU'}
            id={`f-${key}`}
            value={value}
            shown={value.startsWith('{') ? (known?.title ?? 'your own') : value}
            items={items}
            onPick={(gpu) => change({ [key]: gpu })}
        />
    );
}
