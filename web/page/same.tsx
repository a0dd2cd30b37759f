// The same answer elsewhere: the link, the command line, the Python call, the request and the answer itself.
import type { JSX } from 'preact';
import { askText } from './ask';
import type { Request } from './answers';
import { Copy } from './parts';
import { commandLine, pythonCall } from './request';
import { saveText } from './save';
import { address, state } from './state';

export function Same(p: { request: Request | null }): JSX.Element | null {
    if (!p.request) return null;
    const of = p.request;
    const rows: [string, string, string][] = [
        ['Command line', commandLine(of), 'command'],
        ['Python', pythonCall(of), 'python'],
        ['JSON request', JSON.stringify(of), 'request'],
    ];
    return (
        <details class="same">
            <summary>The same from a shell, from Python, as JSON</summary>
            <dl>
                {rows.map(([name, text, id]) => [
                    <dt key={`t${id}`}>{name}</dt>,
                    <dd key={`d${id}`}>
                        <pre data-same={id} tabIndex={0}>
                            {text}
                        </pre>
                    </dd>,
                    <dd key={`c${id}`}>
                        <Copy text={() => text} label={`Copy: ${name}`}>
                            Copy
                        </Copy>
                    </dd>,
                ])}
                <dt>Answer</dt>
                <dd>
                    <button
                        onClick={() =>
                            void askText(of).then((text) =>
                                saveText('foretell-answer.json', `${text}\n`, 'application/json'),
                            )
                        }
                    >
                        Save as JSON
                    </button>
                </dd>
                <dd />
                <dt>Link</dt>
                <dd class="quiet">The address of this page holds every setting.</dd>
                <dd>
                    <Copy text={() => new URL(address(state()), location.href).href} label="Copy: link">
                        Copy
                    </Copy>
                </dd>
            </dl>
        </details>
    );
}
