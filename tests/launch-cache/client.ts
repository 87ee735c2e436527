/** A home, a directory of work and a copy of the package for each test, and runs of its client: with node and without. */
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import type { CliResult } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type PackageCopy, packageCopy } from '../support/package.ts'

export interface TestSite {
  readonly home: string
  readonly work: string
}

/** Longer than store.ts wants a file that planning reads to be unchanged; milliseconds. */
const SETTLED_MS = 60

export const site: { current: TestSite } = { current: { home: '', work: '' } }

export const built: { package?: PackageCopy } = {}
beforeAll(async () => {
  built.package = await packageCopy()
  await settle(join(built.package.root, 'dist/node-path'))
})
afterAll(() => built.package?.remove())

export const program = (name = 'llm-do-exec'): string => join(built.package?.root ?? '', 'bin', name)
export const cliWords = (words: readonly string[]): readonly string[] => [program(), ...words]

beforeEach(async () => {
  const home = await temporaryDirectory()
  const work = join(home, 'work')
  mkdirSync(work)
  site.current = { home, work }
  mkdirSync(runtimeOf(site.current), { mode: 0o700 })
})

/** Waits until a plan that was made from these files may be kept. */
export async function settle(...files: readonly string[]): Promise<void> {
  while (files.some((file) => Date.now() - statSync(file).ctimeMs < SETTLED_MS)) await setTimeout(10)
}

export const cacheOf = ({ home }: TestSite): string => join(home, '.cache', 'llm-do', 'launch')
export const cachedFiles = (): readonly string[] => {
  try {
    return readdirSync(cacheOf(site.current)).map((name) => join(cacheOf(site.current), name))
  } catch {
    return []
  }
}

/** The next run is planned by node. */
export const forget = (): void => {
  for (const file of cachedFiles()) rmSync(file)
}

/** Where the secret of a user other than root is. */
export const runtimeOf = ({ home }: TestSite): string => join(home, 'runtime')

export const callIn = ({ home, work }: TestSite, env: Record<string, string>) => ({
  cwd: work,
  env: { PATH: process.env['PATH'], HOME: home, LANG: 'C.UTF-8', XDG_RUNTIME_DIR: runtimeOf({ home, work }), ...env },
  extendEnv: false,
  encoding: 'buffer' as const,
  stripFinalNewline: false,
  reject: false,
})

export async function runIn(words: readonly string[], env: Record<string, string> = {}): Promise<CliResult> {
  return await runWords(cliWords(words), env)
}

export async function runWords(
  [file = '', ...argv]: readonly string[],
  env: Record<string, string> = {},
): Promise<CliResult> {
  const run = () => execa(file, argv, { ...callIn(site.current, env), input: 'input\n' })
  const result = await (env['TEST_WITHOUT_NODE'] === undefined ? run() : built.package?.withoutNode(run))
  if (result === undefined) throw new Error('there is no copy of the package')
  return {
    status: result.exitCode,
    signal: result.signal as NodeJS.Signals | undefined,
    stdout: Buffer.from(result.stdout),
    stderr: Buffer.from(result.stderr),
  }
}

/** The package's node fails immediately, so only the client can have run the command. */
export const withoutNode = { TEST_WITHOUT_NODE: 'yes' }

/** Exit status of a run that would start node. */
export const statusWithoutNode = async (
  words: readonly string[],
  env: Record<string, string> = {},
): Promise<number | undefined> => (await runIn(words, { ...env, ...withoutNode })).status

/** A run leaves no plan where the mounts of the machine changed meanwhile. */
const ATTEMPTS = 5

/** Until a plan of these words is kept. The command runs several times. */
export async function planned(words: readonly string[]): Promise<void> {
  for (let left = ATTEMPTS; (await statusWithoutNode(words)) === 99; left -= 1) {
    if (left === 0) throw new Error(`no plan is kept of ${JSON.stringify(words)}`)
    await runIn(words)
  }
}

/** Without what differs from run to run: times, usage, and how many of a tree had ended of the polite signal. */
export const timeless = ({ stdout, ...rest }: CliResult) => ({
  ...rest,
  stdout: stdout
    .toString('latin1')
    .replaceAll(/"(durationMs|setupMs|executionTime|cpuMs|peakMemory)":[\d.]+/g, '"$1":_')
    .replace(/,"peakPids":\d+/, '')
    .replace(/,"readBytes":\d+,"writeBytes":\d+/, '')
    // A failure must stay readable.
    .replaceAll(/(.{1,8}?)\1{99,}/g, (all, unit: string) => `${unit} x ${all.length / unit.length}`)
    .replace(/; \d+ process(es)? killed/, ''),
})
