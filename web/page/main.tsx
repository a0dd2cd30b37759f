// The page: which view is shown, what is asked of the library, examples for who comes for the first time.
import { Component, render, type ComponentChildren, type JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Progress } from '../core/engine';
import { open } from '../core/source';
import { answerer, ready } from './ask';
import { catalogue, namedGpu, type Catalogue } from './catalogue';
import { examples } from './examples';
import { StepForm } from './form/step_form';
import {
    address,
    change,
    follow,
    redo,
    redoable,
    reword,
    state,
    undo,
    undoable,
    useAnswered,
    useChanges,
    visit,
} from './state';
import { Spoken } from './spoken';
import { views, type View } from './views';
import { StepView } from './view/step';

// A browser that keeps nothing for this page throws at the word.
function keptTheme(): string | null {
    try {
        return localStorage.getItem('theme');
    } catch {
        return null;
    }
}
function keepTheme(theme: string): void {
    try {
        localStorage.setItem('theme', theme);
    } catch {
        // for this visit alone, then
    }
}

function Top(p: { of: Catalogue | null }): JSX.Element {
    const now = state();
    const shown = p.of ? views.filter((v) => !v.task || p.of!.tasks.has(v.task)) : [];
    const theme = (): void => {
        const root = document.documentElement;
        const dark = root.dataset['theme']
            ? root.dataset['theme'] === 'dark'
            : matchMedia('(prefers-color-scheme: dark)').matches;
        root.dataset['theme'] = dark ? 'light' : 'dark';
        keepTheme(root.dataset['theme']);
    };
    return (
        <header class="top">
            {p.of && (
                <button class="skip" onClick={() => document.getElementById('answers')?.focus()}>
                    To the answers
                </button>
            )}
            <span class="brand">Foretell</span>
            <nav class="views" aria-label="Views">
                {shown.map((v) => (
                    <a
                        key={v.id}
                        href={address({ view: v.id, is: now.is })}
                        title={v.about}
                        {...(v.id === now.view ? { 'aria-current': 'page' as const } : {})}
                        onClick={(e) => {
                            if (e.ctrlKey || e.metaKey) return;
                            e.preventDefault();
                            change({}, v.id);
                        }}
                    >
                        {v.name}
                    </a>
                ))}
            </nav>
            <div class="tools">
                <button class="plain" onClick={undo} disabled={!undoable()} title="Undo (Ctrl+Z)">
                    Undo
                </button>
                <button class="plain" onClick={redo} disabled={!redoable()} title="Redo (Ctrl+Shift+Z)">
                    Redo
                </button>
                <button class="plain" onClick={theme} title="Light or dark">
                    Theme
                </button>
            </div>
        </header>
    );
}

function Examples(p: { of: Catalogue; first: boolean }): JSX.Element {
    return (
        <details class="examples" open={p.first}>
            <summary>Examples</summary>
            <nav aria-label="Examples">
                {examples
                    .filter((e) => !e.task || p.of.tasks.has(e.task))
                    .map((e) => (
                        <a
                            key={e.name}
                            href={e.hash}
                            onClick={(event) => {
                                event.preventDefault();
                                visit(e.hash);
                            }}
                        >
                            {e.name}
                        </a>
                    ))}
            </nav>
        </details>
    );
}

/** It follows settings at once; what is asked of them comes with its answers. */
function Side(p: { of: Catalogue; form: View['form'] }): JSX.Element {
    const now = useChanges();
    const wide = matchMedia('(min-width: 821px)').matches;
    const Form = p.form;
    return (
        <aside class="side" aria-label="Settings">
            <details open={wide}>
                <summary>Settings</summary>
                <Form is={now.is} of={p.of} />
            </details>
        </aside>
    );
}

/** What a view cannot bear (an address that somebody wrote by hand) ends that view, not the page: other settings try again. */
class Guard extends Component<{ of: string; children: ComponentChildren }, { of: string; fault: string }> {
    override state = { of: '', fault: '' };
    override componentDidCatch(fault: unknown): void {
        this.setState({ of: this.props.of, fault: fault instanceof Error ? fault.message : String(fault) });
    }
    override render(): ComponentChildren {
        if (!this.state.fault || this.state.of !== this.props.of) return this.props.children;
        return (
            <>
                <h1>Foretell</h1>
                <p class="note wrong" role="alert">
                    These settings cannot be shown: {this.state.fault}
                </p>
            </>
        );
    }
}

function Page(p: { of: Catalogue; first: boolean }): JSX.Element {
    const now = useAnswered();
    const view = views.find((v) => v.id === now.view && (!v.task || p.of.tasks.has(v.task)));
    useEffect(() => {
        const keys = (e: KeyboardEvent): void => {
            const typing =
                e.target instanceof HTMLElement &&
                /^(INPUT|TEXTAREA)$/.test(e.target.tagName) &&
                (e.target as HTMLInputElement).type !== 'range';
            if (typing || !(e.ctrlKey || e.metaKey) || e.key.toLowerCase() !== 'z') return;
            e.preventDefault();
            (e.shiftKey ? redo : undo)();
        };
        // A file that misses its place is not opened in place of the page.
        const stay = (e: DragEvent): void => e.preventDefault();
        addEventListener('keydown', keys);
        addEventListener('dragover', stay);
        addEventListener('drop', stay);
        return () => {
            removeEventListener('keydown', keys);
            removeEventListener('dragover', stay);
            removeEventListener('drop', stay);
        };
    }, []);
    const gpu = now.is['gpu'] ?? '';
    useEffect(() => {
        void namedGpu(p.of.gpus, gpu).then((name) => {
            if (name && state().is['gpu'] === gpu) reword({ gpu: name });
        });
    }, [gpu]);
    const form = view?.form ?? StepForm,
        Body = view?.body ?? StepView;
    return (
        <>
            <Top of={p.of} />
            <div class="frame">
                {useMemo(
                    () => (
                        <Side of={p.of} form={form} />
                    ),
                    [p.of, form],
                )}
                <main class="body" id="answers" tabIndex={-1}>
                    <Spoken />
                    <Examples of={p.of} first={p.first} />
                    <Guard of={address(now)}>
                        <Body is={now.is} of={p.of} />
                    </Guard>
                    <p class="quiet where">Answered {answerer().where}.</p>
                </main>
            </div>
        </>
    );
}

function Opening(p: { progress: Progress | null; fault: string }): JSX.Element {
    const { progress } = p;
    return (
        <>
            <Top of={null} />
            <main class="opening">
                <p>How fast a model trains or serves on GPUs, how much memory it takes and what holds it back.</p>
                {p.fault ? (
                    <p class="bad" role="alert">
                        The forecaster cannot be loaded: {p.fault}
                    </p>
                ) : (
                    <p class="quiet" role="status">
                        The forecaster is being loaded
                        {progress && progress.loaded > 0
                            ? `, ${(progress.loaded / 1e6).toFixed(1)}${progress.total ? ` of ${(progress.total / 1e6).toFixed(1)}` : ''} MB`
                            : ''}
                        .
                    </p>
                )}
                {!p.fault && (
                    <progress
                        aria-label="Loading"
                        {...(progress?.total ? { value: progress.loaded, max: progress.total } : {})}
                    />
                )}
            </main>
        </>
    );
}

function App(p: { first: boolean }): JSX.Element {
    const [progress, setProgress] = useState<Progress | null>(null);
    const [fault, setFault] = useState('');
    const [of, setOf] = useState<Catalogue | null>(null);
    useEffect(() => {
        open(new URL('.', location.href), setProgress)
            .then((source) => {
                ready(source);
                return catalogue();
            })
            .then(setOf, (wrong: unknown) => setFault(wrong instanceof Error ? wrong.message : String(wrong)));
    }, []);
    return of ? <Page of={of} first={p.first} /> : <Opening progress={progress} fault={fault} />;
}

const theme = keptTheme();
if (theme) document.documentElement.dataset['theme'] = theme;
const given = follow('#step');
const place = document.getElementById('page')!;
place.textContent = '';
render(<App first={!given} />, place);
