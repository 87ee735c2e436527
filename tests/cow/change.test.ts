/** How the changes of a layer are read and shown. */
import { describe, expect, test } from 'vitest'
import { parseChanges, type RawChange, rawOf, shownChange } from '../../src/cow/change.ts'
import { parseRecord } from '../../src/cow/record.ts'

const raw = (kind: RawChange['kind'], path: string, more: Partial<RawChange> = {}): RawChange => ({
  zone: 0,
  kind,
  type: 'file',
  mode: '644',
  modeBefore: '644',
  modeApplied: '644',
  size: 1,
  conflict: false,
  nested: false,
  isProtected: false,
  path,
  other: '',
  ...more,
})
const ZONES = [{ source: '/host/project', target: '/workspace' }]

describe('an answer of the helper', () => {
  test('is read word by word, whatever is in a name', () => {
    const words = '0|added|file|644||600|3||a\nb||1|deleted|directory|755|755|755|0|cnp|d|'.split('|')
    const changes = parseChanges(Buffer.from(words.map((word) => `${word}\0`).join(''), 'latin1'))
    expect(changes).toMatchObject([
      { zone: 0, kind: 'added', path: 'a\nb', modeApplied: '600', size: 3, conflict: false },
      { zone: 1, kind: 'deleted', conflict: true, nested: true, isProtected: true },
    ])
  })

  const shown = (change: RawChange) => shownChange(change, ZONES)

  test('shows bytes that are no text', () => {
    expect(shown(raw('added', '\xff'))).toMatchObject({ path: '\ufffd', bytes: '/w==' })
    expect(shown(raw('added', rawOf('\u00e4')))).not.toHaveProperty('bytes')
  })

  const LINKS: readonly (readonly [string, string, boolean])[] = [
    ['l', 'file', false],
    ['d/l', '../file', false],
    ['d/l', '../../file', true],
    ['l', '..', true],
    ['l', 'd/../../x', true],
    ['notes', 'up/up/../../etc/passwd', true],
    ['l', '/etc/passwd', true],
    ['l', '/host/project/file', false],
    ['l', '/host/project/../other', true],
    ['l', '/host/projects', true],
  ]
  test.each(LINKS)('says whether %s -> %s leads out', (path, other, leads) => {
    expect(shown(raw('added', path, { type: 'symlink', other })).outside ?? false).toBe(leads)
  })
})

test('a record names zones with what is protected in them', () => {
  const words = `llm-do-launch-2|profile|ci|zone|/a|/w|cow|1|2|closed|protect|/a|/w|.envrc|git|/a|/w|config hooks|
zone|/b|/x|cow|1|3|closed|keep|1000|since|5|250000000|boot|b00t|end|`.split(/\|\n?/)
  expect(parseRecord(Buffer.from(words.join('\0')))).toEqual({
    profile: 'ci',
    sinceMs: 5250,
    keepMs: 1000,
    boot: 'b00t',
    isCopy: false,
    zones: [
      { source: '/a', target: '/w' },
      { source: '/b', target: '/x' },
    ],
  })
  expect(parseRecord(Buffer.from('nonsense\0end\0'))).toBeUndefined()
  expect(parseRecord(Buffer.from('llm-do-launch-2\0zone\0'))).toBeUndefined()
})
