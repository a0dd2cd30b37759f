// Search over a list of some hundred names: type, move with the arrows, Enter takes it.
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

export interface Item {
    name: string;
    remark: string;
    words: string; // also found by these
}

/** All words of what is typed, anywhere; names that begin with it first. */
function find(items: readonly Item[], typed: string): Item[] {
    const parts = typed
        .toLowerCase()
        .split(/[\s_-]+/)
        .filter(Boolean);
    const rank = (i: Item): number => {
        const name = i.name.toLowerCase(),
            all = `${name} ${i.words.toLowerCase()}`;
        if (!parts.every((w) => all.includes(w))) return -1;
        return name === typed.toLowerCase()
            ? 0
            : name.startsWith(parts[0] ?? '')
              ? 1
              : parts.every((w) => name.includes(w))
                ? 2
                : 3;
    };
    return items
        .map((i) => [rank(i), i] as const)
        .filter(([r]) => r >= 0)
        .sort((a, b) => a[0] - b[0])
        .map(([, i]) => i);
}

export function Pick(p: {
    name: string;
    id: string;
    value: string;
    shown: string;
    items: readonly Item[];
    onPick: (name: string) => void;
}): JSX.Element {
    const [typed, setTyped] = useState<string | null>(null);
    const [at, setAt] = useState(0);
    const list = useRef<HTMLUListElement>(null);
    const open = typed !== null;
    const found = useMemo(() => (open ? find(p.items, typed ?? '').slice(0, 80) : []), [p.items, typed, open]);
    useEffect(() => {
        list.current?.children[at]?.scrollIntoView({ block: 'nearest' });
    }, [at, open]);
    const take = (name: string): void => {
        setTyped(null);
        p.onPick(name);
    };
    const key = (e: KeyboardEvent): void => {
        if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
            if (!open) setTyped('');
            else setAt(Math.max(0, Math.min(found.length - 1, at + (e.key === 'ArrowDown' ? 1 : -1))));
        } else if (e.key === 'Enter' && open && found[at]) take(found[at].name);
        else if (e.key === 'Escape' && open) setTyped(null);
        else return;
        e.preventDefault();
    };
    return (
        <div class="field">
            <label for={p.id}>{p.name}</label>
            <div class="pick">
                <input
                    id={p.id}
                    type="search"
                    role="combobox"
                    autocomplete="off"
                    spellcheck={false}
                    aria-expanded={open}
                    aria-controls={`${p.id}-list`}
                    aria-autocomplete="list"
                    {...(open && found[at] ? { 'aria-activedescendant': `${p.id}-${at}` } : {})}
                    value={typed ?? p.shown}
                    placeholder={open ? p.shown : ''}
                    onFocus={(e) => e.currentTarget.select()}
                    onClick={() => {
                        if (!open) {
                            setTyped('');
                            setAt(0);
                        }
                    }}
                    onInput={(e) => {
                        setTyped(e.currentTarget.value);
                        setAt(0);
                    }}
                    onKeyDown={key}
                    onBlur={() => setTyped(null)}
                />
                {open && (
                    <ul id={`${p.id}-list`} role="listbox" aria-label={p.name} ref={list}>
                        {found.map((item, i) => (
                            <li
                                key={item.name}
                                id={`${p.id}-${i}`}
                                role="option"
                                aria-selected={i === at}
                                onPointerDown={(e) => {
                                    e.preventDefault();
                                    take(item.name);
                                }}
                            >
                                {item.name}
                                <span>{item.remark}</span>
                            </li>
                        ))}
                        {!found.length && (
                            <li class="none" role="option" aria-selected="false">
                                Nothing has that name.
                            </li>
                        )}
                    </ul>
                )}
            </div>
        </div>
    );
}
