// The same answers elsewhere: the link, the command line, the Python call, the request and the answer itself.
import type { JSX } from 'preact';
import { askText } from './ask';
import type { Request } from './answers';
import { Copy } from './parts';
import { commandLine, pythonCall } from './request';
import { saveText } from './save';
import { address, state } from './state';

/** One answer. `name`: what it is, where a view has several; `shown`: the request as others would ask it. */
function Ways(p: { name: string; request: Request; shown: Request }): JSX.Element {
    const rows: [string, string, string][] = [
        ['Command line', commandLine(p.shown), 'command'],
        ['Python', pythonCall(p.shown), 'python'],
        ['JSON request', JSON.stringify(p.shown), 'request'],
    ];
    const of = p.name ? `, ${p.name}` : '';
    const save = (): Promise<void> =>
        askText(p.request).then((text) => saveText('foretell-answer.json', `${text}\n`, 'application/json'));
    return (
        <dl data-answer={p.name}>
            {rows.map(([name, text, id]) => [
                <dt key={`t${id}`}>{name}</dt>,
                <dd key={`d${id}`}>
                    <pre data-same={id} tabIndex={0} aria-label={`${name}${of}`} role="group">
                        {text}
                    </pre>
                </dd>,
                <dd key={`c${id}`}>
                    <Copy text={() => text} label={`Copy: ${name}${of}`}>
                        Copy
                    </Copy>
                </dd>,
            ])}
            <dt>Answer</dt>
            <dd>
                <button onClick={() => void save()} aria-label={`Save as JSON${of}`}>
                    Save as JSON
                </button>
            </dd>
            <dd />
        </dl>
    );
}

/** `shown`: where its files have other names elsewhere; `more`: what else the view shows, by name. */
export function Same(p: {
    request: Request | null;
    shown?: Request;
    more?: readonly (readonly [string, Request | null])[];
}): JSX.Element | null {
    if (!p.request) return null;
    return (
        <details class="same">
            <summary>The same from a shell, from Python, as JSON</summary>
            <Ways name="" request={p.request} shown={p.shown ?? p.request} />
            {p.more?.map(
                ([name, request]) =>
                    request && (
                        <div key={name}>
                            <h3>{name}</h3>
                            <Ways name={name} request={request} shown={request} />
                        </div>
                    ),
            )}
            <p class="link">
                <span class="quiet">The address of this page holds every setting.</span>
                <Copy text={() => new URL(address(state()), location.href).href} label="Copy: link">
                    Copy the link
                </Copy>
            </p>
        </details>
    );
}
