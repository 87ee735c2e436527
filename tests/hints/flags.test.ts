/** Every flag that a hint or a fix names exists. The strings are found in the sources, so a new hint is held to it without being listed. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SUBCOMMANDS } from '../../src/cli/subcommands.ts'
import { OPTIONS } from '../../src/policy/options.ts'
import { addFlags, leadingFlags } from './follow.ts'

const SRC = join(import.meta.dirname, '../../src')

/** Of the command line itself, and of other programs that a hint tells to run. */
const OTHERS = new Set([
  'help',
  'version',
  'force',
  // unshare, mount
  ...['user', 'map-user', 'map-group', 'mount', 'rbind', 'move'],
  // systemd-run
  ...['scope'],
  // docker run
  ...['security-opt', 'cgroupns'],
  // git config
  ...['file', 'list'],
  // clang, cargo, apt-get
  ...['target', 'reinstall', 'pull'],
])

interface Hint {
  readonly file: string
  readonly text: string
}

/** Properties and constants with instructions for a person, to the line that ends them. */
const HINT = /\b(?:hint|fix|(?:\w+_)?(?:HINT|FIX))\b(?::| =).*(?:\n(?!\s*(?:[}\]]|\w+:|$)).*)*/gm

const hintsIn = (file: string): readonly Hint[] =>
  [...readFileSync(join(SRC, file), 'utf8').matchAll(HINT)].map(([text]) => ({ file, text }))

const HINTS = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .flatMap(hintsIn)

const FLAG = /(?<![\w-])--([a-z][a-z-]*)/g
const subcommandFlags = (declared: readonly object[]): readonly string[] =>
  (declared as readonly { flags?: readonly { name: string }[]; actions?: readonly object[] }[]).flatMap(
    ({ flags = [], actions = [] }) => [...flags.map(({ name }) => name), ...subcommandFlags(actions)],
  )
const KNOWN = new Set([...OPTIONS.map(({ name }) => name), ...subcommandFlags(SUBCOMMANDS), ...OTHERS])

test('hints are found', () => {
  expect(HINTS.length).toBeGreaterThan(150)
})

test('every flag of a hint exists', () => {
  const unknown = HINTS.flatMap(({ file, text }) =>
    [...text.matchAll(FLAG)].flatMap(([, name = '']) => (KNOWN.has(name) ? [] : [`${file}: --${name}: ${text}`])),
  )
  expect(unknown).toEqual([])
})

test.each([
  ['--ro /a/b; or chown it', '--ro /a/b'],
  ["--ro '/it'\\''s here' --same-path", "--ro '/it'\\''s here' --same-path"],
  ['--cpus 1, or --best-effort', '--cpus 1'],
  ['--ro .', '--ro .'],
  ['--same-path, or not', '--same-path'],
])('the flags with which "%s" begins are %s', (text, flags) => {
  expect(leadingFlags(text)).toBe(flags)
})

test('a hint that names no flag, or one that does not exist, cannot be followed', () => {
  expect(() => addFlags('llm-do exec -- true', 'raise it')).toThrow('no flag begins')
  expect(() => addFlags('llm-do exec -- true', '--memry 1g')).toThrow('there is no --memry')
})
