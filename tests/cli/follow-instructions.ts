/** Follows a section of a page: its files are written, its script is run by bash with the built commands first on PATH, in a new directory and a new home. */
import { mkdir } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { execa } from 'execa'
import { type Files, fill, type TextRun } from '../real/directory.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import type { Instructions } from './page.ts'

export interface Site {
  readonly home: string
  readonly work: string
  readonly env: Readonly<Record<string, string>>
}

/** Both directories are in one that is removed when the test ends. */
export async function newSite(): Promise<Site> {
  const directory = await temporaryDirectory({ mode: 0o755 })
  const [home, work] = [join(directory, 'home'), join(directory, 'work')]
  for (const each of [home, work]) await mkdir(each)
  const path = [join(home, 'bin'), join(checkoutFor(currentUser()), 'bin'), process.env.PATH ?? ''].join(delimiter)
  return { home, work, env: { PATH: path, HOME: home, LANG: 'C.UTF-8' } }
}

/** Names are those of a page: `~/` is the home. */
export async function writeFiles(files: Files, { home, work }: Site): Promise<void> {
  for (const [name, text] of Object.entries(files))
    await (name.startsWith('~/') ? fill(home, { [name.slice(2)]: text }) : fill(work, { [name]: text }))
}

export interface RunOptions {
  /** Of the variables of the reader. */
  readonly env?: Readonly<Record<string, string>>
  /** Words before bash. */
  readonly through?: readonly string[]
  readonly input?: string
}

export async function runScript(script: string, site: Site, options: RunOptions = {}): Promise<TextRun> {
  const { env = {}, through = [], input } = options
  const [file = '', ...words] = [...through, 'bash', '-e', '-c', script]
  const { exitCode, stdout, stderr } = await execa(file, words, {
    cwd: site.work,
    env: { ...site.env, ...env },
    extendEnv: false,
    reject: false,
    ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
  })
  return { status: exitCode, out: stdout, err: stderr }
}

export async function follow({ files, script }: Instructions, site: Site, options: RunOptions = {}): Promise<TextRun> {
  await writeFiles(files, site)
  return runScript(script, site, options)
}
