/**
 * Names that the words of a command say it writes: what it prints about a refusal is not seen at a terminal, so its words are all there is. Only
 * what is certain: redirections, and programs that do nothing but write. Pure.
 */
import { posix } from 'node:path'
import type { Plan } from '../plan/plan.ts'
import { around } from '../plan/well-known-paths.ts'
import { writeDenial } from './stderr-denials.ts'

/** The state of a name on the host in which only writing it can have failed. */
export type Needs = 'anything' | 'something' | 'nothing'

export interface WrittenName {
  /** As it is written. */
  readonly name: string
  readonly needs: Needs
}

type Operands = readonly string[]
type Row = readonly [programs: string, names: (operands: Operands, words: Operands) => Operands, needs?: Needs]

const all = (operands: Operands): Operands => operands
const last = (operands: Operands): Operands => (operands.length > 1 ? operands.slice(-1) : [])
/** The value of an option: `-o FILE`, `-oFILE`, `--output=FILE`. */
const optionValue =
  (short: string, long: string) =>
  (_: Operands, words: Operands): Operands => {
    const at = words.findIndex((word) => word === short || word === long)
    const [attached] = words.flatMap((word) =>
      word.startsWith(`${long}=`)
        ? [word.slice(long.length + 1)]
        : /^-\w$/.test(short) && word.startsWith(short) && word.length > 2
          ? [word.slice(2)]
          : [],
    )
    const name = at === -1 ? attached : words[at + 1]
    return name === undefined ? [] : [name]
  }
const when =
  (verbs: RegExp, name: string) =>
  ([verb = '']: Operands): Operands =>
    verbs.test(verb) ? [name] : []

const ROWS: readonly Row[] = [
  ['touch tee truncate', all],
  ['mkdir', all, 'nothing'],
  ['rm rmdir chmod', all, 'something'],
  ['cp mv ln install', last],
  ['sed', (operands, words) => (words.some((word) => /^-\w*i/.test(word)) ? operands.slice(1) : []), 'something'],
  ['dd', (operands) => operands.flatMap((word) => (word.startsWith('of=') ? [word.slice(3)] : []))],
  ['cc gcc g++ c++ clang clang++ ld rustc go sort curl', optionValue('-o', '--output')],
  ['wget', optionValue('-O', '--output-document')],
  ['git', when(/^(?:add|commit|merge|rebase|pull|reset|checkout|switch|stash|mv|rm|init|clone)$/, '.')],
  ['npm pnpm yarn bun', when(/^(?:i|ci|install|add|remove|update|init|create)$/, '.')],
  ['cargo', when(/^(?:add|build|check|init|new|run|test|update)$/, '.')],
]

const BY_PROGRAM = new Map(ROWS.flatMap((row) => row[0].split(' ').map((program) => [program, row] as const)))

/** Words that a shell would make others of. */
const IS_PLAIN = /^[^$`*?{}~\\]+$/

const unquoted = (word: string): string => word.replace(/^(['"])(.*)\1$/s, '$2')

/** No more than a guess at the grammar: what it takes wrongly, the caller holds against the plan and the host. */
const WORD = /"[^"]*"|'[^']*'|[^\s"';&|<>()]+/g
const REDIRECTED = /(?<![<>\-=])&?>>?\|?\s*("[^"]*"|'[^']*'|[^\s"';&|<>()]+)/g

function writtenBy(words: Operands): readonly WrittenName[] {
  const [program = '', ...rest] = words
  const row = BY_PROGRAM.get(posix.basename(program))
  if (row === undefined) return []
  const [, names, needs = 'anything'] = row
  const operands = rest.filter((word) => !word.startsWith('-'))
  return names(operands, rest).map((name) => ({ name, needs }))
}

function writtenByScript(script: string): readonly WrittenName[] {
  const redirected = [...script.matchAll(REDIRECTED)].map(([, word = '']) => word)
  const commands = script.replace(REDIRECTED, ' ').split(/[;&|()\n]+/)
  return [
    ...redirected.map((name): WrittenName => ({ name: unquoted(name), needs: 'anything' })),
    ...commands.flatMap((one) => writtenBy([...one.matchAll(WORD)].map(([word]) => unquoted(word)))),
  ]
}

const SHELLS = /^(?:ba|da|z)?sh$/

function scriptOf([program = '', ...words]: Operands): string | undefined {
  const at = SHELLS.test(posix.basename(program)) ? words.findIndex((word) => /^-\w*c$/.test(word)) : -1
  return at === -1 ? undefined : words[at + 1]
}

/** A `cd` in a script makes relative names mean something else. */
export function writtenNames(command: Operands): readonly WrittenName[] {
  const script = scriptOf(command)
  const found = script === undefined ? writtenBy(command) : writtenByScript(script)
  const moves = script !== undefined && /\b(?:cd|pushd)\s/.test(script)
  return found.filter(
    ({ name }) => IS_PLAIN.test(name) && !name.startsWith('/dev/') && (!moves || posix.isAbsolute(name)),
  )
}

/** Names that the command writes and that stand nowhere else in its words: nothing of it reads them. */
export function writtenOnce(command: Operands): readonly string[] {
  const text = command.join(' ')
  return writtenNames(command)
    .map(({ name }) => name)
    .filter((name) => text.indexOf(name) === text.lastIndexOf(name))
}

const matches: Readonly<Record<Needs, (isThere: boolean) => boolean>> = {
  anything: () => true,
  something: (isThere) => isThere,
  nothing: (isThere) => !isThere,
}

/** @param isThere whether the host has this path of a zone */
export function writtenHints(command: Operands, plan: Plan, isThere: (path: string) => boolean): readonly string[] {
  const found = writtenNames(command).flatMap(({ name, needs }) => {
    const path = posix.resolve(plan.workdir, name)
    const zone = around(path, plan.zones)
    const fix = zone === undefined ? '' : (writeDenial(path, plan)?.fix ?? '')
    if (zone === undefined || fix === '') return []
    const onHost = posix.join(zone.source, posix.relative(zone.target, path))
    return matches[needs](isThere(onHost)) ? [[fix, path] as const] : []
  })
  const first = new Map(found.toReversed())
  return [...first].map(([fix, path]) => `${path} is read-only in the sandbox; to write it: ${fix}`)
}
