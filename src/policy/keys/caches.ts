/** The key `caches`: directories that outlive a run, so that the next one need not fetch again. plan/caches.ts says where they appear. */
import { misunderstood, type Reader, understood } from '../../text/units.ts'
import { type Key, list } from './key.ts'
import { opened } from './narrowing.ts'

/** `npm`, or `npm:shared`. */
export interface CacheChoice {
  readonly name: string
  readonly isShared: boolean
}

const SHARED = ':shared'
/** Tools whose variables src/plan/caches.ts knows. */
const TOOLS = 'npm, pnpm, yarn, bun, deno, pip, uv, cargo, go, maven, gradle, ccache'
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

export const parseCache = (text: string): CacheChoice =>
  text.endsWith(SHARED) ? { name: text.slice(0, -SHARED.length), isShared: true } : { name: text, isShared: false }

const readCache: Reader<string> = (value) =>
  typeof value === 'string' && NAME.test(parseCache(value).name)
    ? understood(value)
    : misunderstood(`${TOOLS} or a name of your own, with :shared at its end for all projects`, value)

/** One cache a name: what a layer says of it counts in the place of what those below said. */
function addCaches(below: readonly string[] | undefined, above: readonly string[]): readonly string[] {
  const names = above.map((text) => parseCache(text).name)
  return [...new Set([...(below ?? []).filter((text) => !names.includes(parseCache(text).name)), ...above])]
}

const { adds: _, ...narrowing } = { ...opened('--cache'), takes: (wanted: readonly string[]) => wanted }

const declared = list<string>(readCache, {
  description: `Directories that outlive the run, one set a project: ${TOOLS}, or NAME at /cache/NAME; with :shared one for all projects of the user.`,
  unit: 'list of names',
  examples: [['npm', 'pip']],
  flag: {
    name: 'cache',
    argument: 'NAME[:shared]',
    group: 'Files',
    repeats: true,
    isRare: true,
    help: `Keep what a tool fetches for the next run of this project (with :shared: of all): ${TOOLS}, or what is in /cache/NAME.`,
  },
  narrowing,
})

export const caches: Key<readonly string[], readonly string[], readonly string[]> & {
  readonly default: readonly string[]
} = { ...declared, merging: { ...declared.merging, add: addCaches } }
