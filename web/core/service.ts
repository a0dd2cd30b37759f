// service.ts: keeps the page's files, so that it opens without a network after its first visit.
//
// One cache per version; build.mjs writes the version and the list of files in, and other bytes are another version. A
// visit is answered from the cache; a new version is fetched whole beside the old one, which pages keep until they are
// closed, and takes over after that: no page ever sees files of two versions. Requests to a server (api/) are not ours.
const VERSION = '%VERSION%';
const FILES = JSON.parse('%FILES%') as string[];
const PREFIX = 'foretell-';

interface WaitEvent extends Event {
    waitUntil(what: Promise<unknown>): void;
}
interface AskEvent extends Event {
    request: Request;
    respondWith(what: Promise<Response>): void;
}
const scope = self as unknown as EventTarget & { registration: { scope: string }; clients: { claim(): Promise<void> } };

scope.addEventListener('install', (event) => {
    const fresh = FILES.map((file) => new Request(new URL(file, scope.registration.scope), { cache: 'no-cache' }));
    (event as WaitEvent).waitUntil(caches.open(PREFIX + VERSION).then((cache) => cache.addAll(fresh)));
});

scope.addEventListener('activate', (event) => {
    const old = caches.keys().then((names) =>
        Promise.all(names.filter((name) => name.startsWith(PREFIX) && name !== PREFIX + VERSION)
            .map((name) => caches.delete(name))));
    (event as WaitEvent).waitUntil(old.then(() => scope.clients.claim()));
});

async function kept(request: Request): Promise<Response> {
    const cache = await caches.open(PREFIX + VERSION);
    const name = request.mode === 'navigate' ? scope.registration.scope : request;
    return (await cache.match(name, { ignoreSearch: request.mode === 'navigate' })) ?? fetch(request);
}

scope.addEventListener('fetch', (event) => {
    const { request } = event as AskEvent;
    const url = new URL(request.url);
    const own = new URL(scope.registration.scope);
    if (url.searchParams.has('token')) return; // a server's, which leaves a cookie
    if (request.method !== 'GET' || url.origin !== own.origin || url.pathname.startsWith(own.pathname + 'api/')) return;
    (event as AskEvent).respondWith(kept(request));
});

export {};
