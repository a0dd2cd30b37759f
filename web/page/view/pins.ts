// Steps that are kept to be compared: requests, in the address like everything else.
import type { Request } from '../answers';
import type { Words } from '../form/fields';
import { change } from '../state';

export const most = 6;

export function pins(is: Words): Request[] {
    try {
        const list: unknown = JSON.parse(is['pins'] ?? '[]');
        const asked = Array.isArray(list) ? list.filter((r: unknown) => r && typeof r === 'object' && !Array.isArray(r)) : [];
        return asked.slice(0, most) as Request[];
    } catch {
        return [];
    }
}
export const pin = (is: Words, request: Request): void =>
    change({ pins: JSON.stringify([...pins(is), request].slice(-most)) });
