/** A project and a home for tests of copy-on-write zones: run, look, decide, and compare what the host has. */
import { createHash } from 'node:crypto'
import {
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { chown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished } from 'vitest'
import type { Change } from '../../src/cow/change.ts'
import { parseRecord } from '../../src/cow/record.ts'
import { layerDirectories } from '../../src/cow/state-directory.ts'
import type { Result } from '../../src/report/result.ts'
import { until } from '../pool/pool.ts'
import { type CliResult, cliWords, programFor, runCli } from '../support/cli.ts'
import { canBeHere, cliHere } from '../support/cli-here.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { partWords } from '../support/host-part.ts'
import { becoming, currentUser, type User, uidOf } from '../support/users.ts'

const TERMINAL = join(import.meta.dirname, '../programs/terminal.py')

interface AtTerminal {
  /** The typed text, and the screen that it follows (tests/programs/terminal.py). */
  readonly steps?: readonly { readonly until: string; readonly type: string }[]
  readonly variables?: Readonly<Record<string, string>>
}

export interface Place {
  readonly user: User
  /** Beside PATH. */
  readonly env: Readonly<Record<string, string>>
  /** The directory that is shown copy-on-write. */
  readonly project: string
  /** Outside of it. */
  readonly outside: string
  /** Where the layers of this user are. */
  readonly layers: string
  /** Including layers in memory. */
  readonly holders: readonly string[]
  /** `llm-do WORDS` as the user, in the project; in this process where that is the same. */
  readonly cli: (...words: readonly string[]) => Promise<CliResult>
  /** The same, started by another program. */
  readonly cliThrough: (through: readonly string[], ...words: readonly string[]) => Promise<CliResult>
  /** The same at a terminal: what it showed. */
  readonly atTerminal: (words: readonly string[], more?: AtTerminal) => Promise<string>
  /** `llm-do exec --cow . --json -- sh -c SCRIPT`. */
  readonly run: (script: string, ...options: readonly string[]) => Promise<Result>
  readonly changes: (id: string) => Promise<readonly Change[]>
}

/** Makes the files that `names` says; see makePlace. */
export function fill(project: string, user: User, names: string): void {
  for (const name of names.split(/\s+/).filter(Boolean)) {
    const [at = '', to] = name.split('@')
    const path = join(project, at)
    if (to !== undefined) symlinkSync(to, path)
    else if (at.endsWith('/')) mkdirSync(path)
    else writeFileSync(path, `${at}\n`)
    if (user === 'plain') lchownSync(path, uidOf('plain'), uidOf('plain'))
  }
}

/** @param names what is in the project: directories end with a slash, links are NAME@TARGET, files hold their name */
export async function makePlace(user: User, names = ''): Promise<Place> {
  const base = await temporaryDirectory({ owner: user })
  const [project, outside, home] = ['project', 'outside', 'home'].map((name) => join(base, name)) as [
    string,
    string,
    string,
  ]
  const runtime = join(home, 'runtime')
  for (const directory of [project, outside, home, runtime]) {
    await mkdir(directory, { mode: directory === runtime ? 0o700 : 0o755 })
    if (user === 'plain') await chown(directory, uidOf('plain'), uidOf('plain'))
  }
  fill(project, user, names)
  const env = { HOME: home, XDG_STATE_HOME: join(home, 'state'), XDG_RUNTIME_DIR: runtime }
  const cli: Place['cli'] = (...words) =>
    user === currentUser() && canBeHere(words) ? cliHere(words, { cwd: project, env }) : cliThrough([], ...words)
  const cliThrough: Place['cliThrough'] = (through, ...words) =>
    runCli(words, {
      as: user,
      through,
      program: 'llm-do',
      cwd: project,
      env,
    })
  const holders = layerDirectories(env, uidOf(user))
  // Some are in places that outlive the test, root's in the one of the machine.
  onTestFinished(async () => {
    for (const id of layersOf(base, holders)) expect(await cli('discard', '--force', id)).toMatchObject({ status: 0 })
  })
  return {
    user,
    env,
    project,
    outside,
    layers: user === 'root' ? '/var/lib/llm-do/cow' : join(home, 'state/llm-do/cow'),
    holders,
    cli,
    cliThrough,
    atTerminal: async (words, { steps = [], variables = {} } = {}) => {
      const argv = ['/usr/bin/env', ...cliWords(words, { as: user, program: 'llm-do' })]
      const asked = { argv, cwd: project, env: { ...env, PATH: process.env['PATH'], ...variables }, steps }
      const { stdout } = await execa('python3', [TERMINAL], {
        input: JSON.stringify({ ...asked, rows: 24, columns: 200 }),
      })
      return (JSON.parse(stdout) as { readonly screen: string }).screen
    },
    run: async (script, ...options) => {
      const { stdout, stderr } = await cli('exec', '--json', '--cow', '.', ...options, '--', 'sh', '-c', script)
      const result = JSON.parse(stdout.toString()) as Result
      expect([result.error, stderr.toString()]).toEqual([undefined, ''])
      return result
    },
    changes: async (id) => {
      const { stdout, stderr, status } = await cli('changes', '--json', id)
      expect([stderr.toString(), status]).toEqual(['', 0])
      return (JSON.parse(stdout.toString()) as { changes: readonly Change[] }).changes
    },
  }
}

/** Snapshots of directories below a base. */
const layersOf = (base: string, holders: readonly string[]): readonly string[] =>
  holders
    .filter((holder) => existsSync(holder))
    .flatMap((holder) =>
      readdirSync(holder).filter((id) =>
        zonesOf(join(holder, id, 'record')).some((zone) => zone.startsWith(`${base}/`)),
      ),
    )

const zonesOf = (record: string): readonly string[] =>
  existsSync(record) ? (parseRecord(readFileSync(record))?.zones ?? []).map(({ source }) => source) : []

/** By which the helper finds the secret. */
export const runtimeOf = ({ env }: Place) => ({ XDG_RUNTIME_DIR: env['XDG_RUNTIME_DIR'] ?? '' })

export const helperFor = (user: User): readonly string[] =>
  partWords('layers', [], join(programFor(user, 'llm-do'), '..'))

/** The directory of layers that has it. */
export const holderOf = (place: Place, id: string): string =>
  place.holders.find((directory) => existsSync(join(directory, id))) ?? ''

/**
 * Applies, and stops where everything is prepared and nothing was done (default), or where all is decided and nothing is prepared
 * (DECIDED).
 */
export async function stoppedApply(
  place: Place,
  id: string,
  names: readonly string[],
  at = 'syncfs:signal=STOP:when=1',
) {
  const trace = join(await temporaryDirectory({ mode: 0o777 }), 'trace')
  const hold = ['strace', '-f', '-o', trace, '-e', `inject=${at}`]
  const helper = [...helperFor(place.user), 'apply', holderOf(place, id), id, ...place.holders]
  const [file = '', ...words] = [...becoming(place.user), ...hold, ...helper]
  const ended = execa(file, words, { env: runtimeOf(place), input: pathInput(names), reject: false })
  const stopped = await until(async () => {
    const text = existsSync(trace) ? readFileSync(trace, 'utf8') : ''
    return /^(\d+) +--- stopped by SIGSTOP ---/m.exec(text)?.[1]
  }, 'the stop of the apply')
  const goOn = () => process.kill(Number(stopped), 'SIGCONT')
  onTestFinished(() => void (ended.exitCode ?? ended.kill('SIGKILL')))
  return { ended, goOn }
}

/** The directory of the apply is made: two others were before, the last of the path to the layers. */
export const DECIDED = 'mkdirat:signal=STOP:when=3'

/** The input of the helper. */
export const pathInput = (names: readonly string[]): string => names.map((name) => `${name}\0`).join('')

/** A run whose copy-on-write directory is `outside`. @returns its id */
export async function runOutside({ outside, cli }: Place, script: string): Promise<string> {
  const { stdout } = await cli('exec', '--json', '--cow', outside, '--', 'sh', '-c', `cd ${outside}; ${script}`)
  return (JSON.parse(stdout.toString()) as { cow: { id: string } }).cow.id
}

/** Every name below a directory, byte by byte, with its path. */
function pathsIn(directory: Buffer, below = ''): readonly (readonly [name: string, path: Buffer])[] {
  return readdirSync(directory, { encoding: 'buffer' }).flatMap((entry) => {
    const path = Buffer.concat([directory, Buffer.from('/'), entry])
    const name = `${below}${entry.toString('latin1')}`
    return [[name, path] as const, ...(lstatSync(path).isDirectory() ? pathsIn(path, `${name}/`) : [])]
  })
}

const sortedPathsIn = (directory: string) =>
  pathsIn(Buffer.from(directory)).toSorted(([one], [other]) => (one < other ? -1 : 1))

/** The properties that make two trees equal for a person: names, types, modes, owners, content, links and times of files. */
export function treeOf(directory: string, { times = true } = {}): readonly string[] {
  return sortedPathsIn(directory).map(([name, path]) => {
    const status = lstatSync(path)
    const content = status.isFile()
      ? createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 12)
      : status.isSymbolicLink()
        ? readlinkSync(path)
        : ''
    const time = times && !status.isDirectory() ? status.mtimeMs : ''
    return `${name} ${status.mode.toString(8)} ${status.uid}:${status.gid} ${content} ${time}`
  })
}

/** The same with what only looking at inodes tells. */
export function inodesOf(directory: string): readonly string[] {
  return sortedPathsIn(directory).map(([name, path]) => {
    const { ino, ctimeMs, mtimeMs } = lstatSync(path)
    return `${name} ${ino} ${ctimeMs} ${mtimeMs}`
  })
}
