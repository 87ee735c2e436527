/**
 * `--apply on-success`: the client applies what a run of a known plan has changed, or Node does. Both come to the same: host, words and
 * status.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { until } from '../pool/pool.ts'
import type { CliResult } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { testWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { fill, makePlace, type Place, treeOf } from './place.ts'

interface Case {
  readonly title: string
  readonly script: string
  /** The message for people, without the run's id. */
  readonly says: string
  /** A file that is there or not, and what it holds, after both ways. */
  readonly holds: Readonly<Record<string, string | undefined>>
  readonly byNode?: true
  /** A change on the host when the command has written `file`; it waits for a word in `one`. */
  readonly meanwhile?: (project: string) => void
}

const APPLIED = (what: string) => `llm-do: ${what}: llm-do undo ID\n`
const WAITS = 'until grep -q go one; do sleep 0.01; done'

const CASES: readonly Case[] = [
  {
    title: 'changes, additions, removals, links and modes are applied',
    script: 'echo b >> file; mkdir n; echo n > n/n; rm -r d; ln -s file l; chmod +x one',
    says: APPLIED('7 applied'),
    holds: { file: 'file\nb\n', 'n/n': 'n\n', d: undefined, l: 'file\nb\n' },
  },
  {
    title: 'protected names are left out',
    script: 'echo x > .envrc; mkdir .vscode; echo x > .vscode/tasks.json; echo y > ok',
    says: APPLIED('1 applied, 2 left out'),
    holds: { '.envrc': undefined, '.vscode': undefined, ok: 'y\n' },
  },
  {
    title: 'repositories are left out, whatever their name is',
    script:
      'mkdir -p r/.git/hooks b/objects b/refs; echo x > r/.git/hooks/post-checkout; echo ref: x > b/HEAD; echo x > b/config',
    says: APPLIED('1 applied, 2 left out'),
    holds: { 'r/.git': undefined, b: undefined },
  },
  {
    title: 'rights of others are narrowed',
    script: 'echo x > open; chmod 666 open',
    says: APPLIED('1 applied, 1 modes narrowed'),
    holds: { open: 'x\n' },
  },
  {
    title: 'what stays as it was is not mentioned',
    script: 'touch file; echo x > x; rm x',
    says: '',
    holds: { file: 'file\n' },
  },
  {
    title: 'nothing is applied over what the host has changed meanwhile',
    script: `echo inside > file; echo new > new; ${WAITS}`,
    meanwhile: (project) => writeFileSync(join(project, 'file'), 'host\n'),
    says: 'llm-do: 1 changed, 1 added: llm-do diff ID; nothing was applied, the host has changed 1 of them\n',
    holds: { file: 'host\n', new: undefined },
    byNode: true,
  },
  {
    title: 'nothing is applied over what the host has put in the same place',
    script: `echo inside > file; echo new > new; ${WAITS}`,
    meanwhile: (project) => writeFileSync(join(project, 'new'), 'host\n'),
    says: 'llm-do: 2 changed: llm-do diff ID; nothing was applied, the host has changed 1 of them\n',
    holds: { file: 'file\n', new: 'host\n' },
    byNode: true,
  },
  {
    title: 'nothing of a command that fails is applied',
    script: 'echo b >> file; exit 3',
    says: 'llm-do: 1 changed: llm-do diff ID\n',
    holds: { file: 'file\n' },
    byNode: true,
  },
  {
    title: 'more changes than a person should wait for without a way out are applied by Node',
    script: 'mkdir m; cd m; for n in $(seq 1000); do : > $n; done',
    says: APPLIED('1001 applied'),
    holds: { 'm/1000': '' },
    byNode: true,
  },
]

const user = currentUser()
const WORDS = ['exec', '--cow', '.', '--apply', 'on-success', '--', 'sh', '-c']

const layersIn = ({ layers }: Place): readonly string[] => (existsSync(layers) ? readdirSync(layers) : [])

async function runIn(place: Place, { script, meanwhile }: Case, through: readonly string[]): Promise<CliResult> {
  const before = layersIn(place)
  const ended = place.cliThrough(through, ...WORDS, script)
  if (meanwhile === undefined) return await ended
  const written = () =>
    layersIn(place).some((id) => !before.includes(id) && existsSync(join(place.layers, id, 'zone.0/up/new')))
  await until(async () => written() || undefined, 'the change of the command')
  meanwhile(place.project)
  writeFileSync(join(place.project, 'one'), 'go')
  return await ended
}

const textAt = (path: string): string | undefined => (existsSync(path) ? readFileSync(path, 'utf8') : undefined)

function outcomeOf({ project }: Place, { holds }: Case, { status, stderr }: CliResult) {
  return {
    status,
    says: stderr.toString().replace(/(?<=llm-do (undo|diff) )[0-9a-z]{8}/, 'ID'),
    holds: Object.fromEntries(Object.keys(holds).map((name) => [name, textAt(join(project, name))])),
    tree: treeOf(project, { times: false }),
  }
}

const FILES = 'file one d/ d/x'

describe(`as ${user}`, () => {
  for (const one of CASES)
    testWith('strace', `${one.title}, by both ways`, async () => {
      const place = await makePlace(user, FILES)
      const byNode = outcomeOf(place, one, await runIn(place, one, []))
      expect(byNode).toMatchObject({ says: one.says, holds: one.holds })
      for (const name of readdirSync(place.project)) rmSync(join(place.project, name), { recursive: true })
      fill(place.project, user, FILES)
      const trace = join(await temporaryDirectory({ mode: 0o777 }), 'trace')
      const isWithNode = async (run: (through: readonly string[]) => Promise<unknown>) => {
        await run(['strace', '-f', '-qq', '-e', 'trace=execve', '-o', trace])
        return /node/.test(readFileSync(trace, 'utf8'))
      }
      // No plan is kept where the mounts of the machine change meanwhile.
      await until(async () => !(await isWithNode((through) => place.cliThrough(through, ...WORDS, 'true'))), 'a plan')
      const isExplained = await isWithNode(async (through) => {
        expect(outcomeOf(place, one, await runIn(place, one, through))).toEqual(byNode)
      })
      expect(isExplained).toBe(one.byNode === true)
    })
})
