// What choices for training and for serving have in common: what may be rented at which price, what counts, why not.
import type { ComponentChildren, JSX } from 'preact';
import type { Request } from '../answers';
import { Choice, Group, Text, type Words } from '../form/fields';
import { figure } from '../format';

export interface Offer {
    provider: string;
    instance: string;
    region?: string;
    date?: string;
    usd_per_gpu_hour: number;
    usd_per_hour: number;
}
export interface Price {
    usd_per_hour: number;
    own_usd_per_gpu_hour?: number;
    cheapest?: Offer;
    median?: Offer;
    hyperscaler?: Offer;
}
/** What every choice has, whatever it is for. */
export interface Rented {
    gpu: string;
    gpus?: number;
    verdict: string;
    why?: string;
    price?: Price;
    front?: boolean;
    knee?: boolean;
}

/** `several`: how many of them is asked, too. */
export function RentGroup(p: { is: Words; kinds: string; several?: boolean }): JSX.Element {
    return (
        <Group name="What may be rented">
            <Text
                name="GPUs"
                of="kinds"
                is={p.is}
                placeholder={p.kinds}
                hint="names of the catalogue, with commas"
            />
            {p.several && <Text name="How many" of="range" is={p.is} placeholder="8:512" hint="8:512 is 8, 16, 32, …" />}
            <Choice name="Pricing" of="pricing" is={p.is} words={[['', 'on demand'], 'spot']} />
            <Text
                name="Your prices"
                of="price"
                is={p.is}
                placeholder="as published"
                hint="dollars per GPU-hour: h100_sxm=2.1, l40s=0.8"
            />
            <Text name="Providers" of="provider" is={p.is} placeholder="any" hint="aws, gcp, lambda, …, with commas" />
        </Group>
    );
}

export function CountsGroup(p: { is: Words; bounded: boolean; children?: ComponentChildren }): JSX.Element {
    return (
        <Group name="What counts">
            <Choice
                name="Least of"
                of="objective"
                is={p.is}
                words={[['', 'cost'], 'time', 'energy', 'carbon', ['knee', 'both: the knee']]}
            />
            {p.bounded && <Text name="Deadline" of="deadline" is={p.is} placeholder="none" hint="30d, 12h" />}
            {p.bounded && <Text name="Budget, $" of="budget" is={p.is} placeholder="none" />}
            {p.children}
            <Text name="$ per kWh" of="kwh_price" is={p.is} placeholder="in the rent" hint="if power is paid separately" />
        </Group>
    );
}

const list = (text: string): string[] => text.split(/\s*,\s*/).filter(Boolean);
const number = (text: string): number | string => (Number.isFinite(Number(text)) ? Number(text) : text);

/** `h100_sxm=2.1, l40s=0.8`; what is not so goes to the library as it is, which says what is wrong with it. */
function prices(text: string): unknown {
    const pairs = list(text).map((pair) => pair.split('='));
    return pairs.every((pair) => pair.length === 2)
        ? Object.fromEntries(pairs.map(([gpu, usd]) => [gpu!.trim(), number(usd!.trim())]))
        : text;
}

/** Keys of a request that these groups set. */
export function rentKeys(is: Words, bounded: boolean): Request {
    const out: Request = {};
    for (const key of ['pricing', 'objective', ...(bounded ? ['deadline'] : [])]) if (is[key]) out[key] = is[key];
    if (is['provider']) out['provider'] = list(is['provider']);
    if (list(is['kinds'] ?? '').length) out['gpu'] = list(is['kinds']!);
    if (is['price']) out['price'] = prices(is['price']);
    if (is['kwh_price']) out['kwh_price'] = number(is['kwh_price']);
    if (bounded && is['budget']) out['budget'] = number(is['budget']);
    return out;
}

const verdicts: { [verdict: string]: string } = {
    chosen: 'chosen',
    memory: 'does not fit',
    refused: 'cannot be',
    failures: 'failures leave no time',
    network: 'nobody rents so many, joined well enough',
    price_unknown: 'no price is known',
    deadline: 'too late',
    budget: 'too dear',
    objectives: 'misses the objectives',
    speed: 'slower',
    price: 'dearer',
    energy: 'more energy',
    ttft: 'first tokens come too late',
    tpot: 'tokens come too slowly',
    gpus: 'more GPUs than there may be',
};
export const verdictWords = (c: Rented): string =>
    `${verdicts[c.verdict] ?? c.verdict}${c.why ? `: ${c.why}` : ''}${c.knee ? ', the knee' : c.front ? ', on the front' : ''}`;

/** Of a GPU and hour: the user's, or the cheapest that the job can use. */
export const hourly = (price: Price | undefined): number | undefined =>
    price?.own_usd_per_gpu_hour ?? price?.cheapest?.usd_per_gpu_hour;

/** Who asks that, and since when. */
export const offerWords = (price: Price | undefined): string =>
    price?.own_usd_per_gpu_hour !== undefined
        ? 'your price'
        : price?.cheapest
          ? `${price.cheapest.provider}, ${price.cheapest.date ?? ''}`
          : '';

/** What others ask for the same: the cheapest offer may be one of a kind. */
export function Others(p: { price: Price | undefined }): JSX.Element | null {
    const said = ([['the median of clouds', p.price?.median], ['the cheapest hyperscaler', p.price?.hyperscaler]] as const)
        .flatMap(([who, o]) => (o ? [`${who} $${figure(o.usd_per_gpu_hour)} (${o.provider} ${o.instance}, ${o.date ?? ''})`] : []))
        .join(', ');
    return said ? <p class="quiet">For a GPU and hour of the chosen kind, {said} is asked.</p> : null;
}
