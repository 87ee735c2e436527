/** The list of docs/reference/backends.md that is made from the table of keys. */
import { KEY_SUPPORT, type Support } from '../../src/backends/key-support.ts'
import { BACKEND_NAMES, type BackendName } from '../../src/policy/values.ts'
import { listItem } from '../support/generated.ts'

/** Keys that the backends treat alike are one item. */
export function keySupportList(): string {
  const keysOf = new Map<string, string[]>()
  for (const [key, row] of Object.entries(KEY_SUPPORT)) {
    const treatment = treatmentOf(row)
    keysOf.set(treatment, [...(keysOf.get(treatment) ?? []), `\`${key}\``])
  }
  return [...keysOf].map(([treatment, keys]) => listItem(`${keys.join(', ')}: ${treatment}`)).join('\n')
}

/** A need that is never met and a value that is refused are the same to people. */
const TREATMENTS: Readonly<Record<Support, string>> = {
  kept: 'kept by',
  needed: 'refused by',
  refused: 'refused by',
  reported: 'no effect, with a warning, on',
  void: 'nothing to do for',
}

/** `kept by namespace, docker; refused by wasm`. */
function treatmentOf(row: Readonly<Record<BackendName, Support>>): string {
  const wordsOf = (name: BackendName) => TREATMENTS[row[name]]
  return [...new Set(BACKEND_NAMES.map(wordsOf))]
    .map((words) => `${words} ${BACKEND_NAMES.filter((name) => wordsOf(name) === words).join(', ')}`)
    .join('; ')
}
