/** How many changes of each kind, as numbers and as words. Pure. */
import { CHANGE_KINDS, type Change } from './change.ts'

const WORD: Readonly<Record<Change['kind'], string>> = {
  added: 'added',
  modified: 'changed',
  deleted: 'deleted',
  renamed: 'renamed',
  mode: 'with other modes',
  symlink: 'links changed',
  type: 'replaced',
}

export interface Summary {
  readonly counts: Readonly<Record<string, number>>
  /** `12 changed, 3 added, 1 deleted` */
  readonly text: string
}

const ORDER = ['modified', ...CHANGE_KINDS.filter((kind) => kind !== 'modified')] as const

export function summary(changes: readonly Change[]): Summary {
  const counted = ORDER.map((kind) => [kind, changes.filter((change) => change.kind === kind).length] as const)
  const present = counted.filter(([, count]) => count > 0)
  const protectedOnes = changes.filter((change) => change.protected).length
  const words = present.map(([kind, count]) => `${count} ${WORD[kind]}`)
  return {
    counts: Object.fromEntries(present),
    text: [...words, ...(protectedOnes > 0 ? [`${protectedOnes} protected`] : [])].join(', ') || 'nothing changed',
  }
}
