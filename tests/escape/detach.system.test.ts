/**
 * Protections are mounts, and a command that can make mounts of its own could walk away from them: the program detach.c does it in one
 * way after the other. Every filter, engine and user, with the control that shows the program at work where nothing is protected.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser, type User } from '../support/users.ts'
import { ENGINES } from './chain.ts'

const SOURCE = join(import.meta.dirname, '..', 'programs', 'detach.c')

const FILTERS: Readonly<Record<string, string>> = {
  'extends nested': 'extends: nested\n',
  'default with namespaces': 'extends: default\nallow: [unshare, mount, umount2, pivot_root]\n',
}

const site = { directory: '', program: '' }

beforeAll(async () => {
  site.directory = (await newDirectory({ mode: 0o755 })).path
  site.program = join(site.directory, 'detach')
  execFileSync('cc', ['-O2', '-static', '-o', site.program, SOURCE])
  for (const [name, text] of Object.entries(FILTERS)) writeFileSync(join(site.directory, name), text)
  return () => execFileSync('rm', ['-rf', site.directory])
})

/** A name of the shipped filters, or the file of one of FILTERS. */
const filterOf = (filter: string): string => (filter in FILTERS ? join(site.directory, filter) : filter)

interface Attack {
  readonly engine: (typeof ENGINES)[number]
  readonly user: User
  readonly filter: string
  readonly options?: readonly string[]
}

interface DetachedRun {
  readonly status: number | undefined
  readonly stdout: string
  readonly stderr: string
  /** Names in the zone, afterwards. */
  readonly names: readonly string[]
}

async function attack({ engine, user, filter, options = [] }: Attack): Promise<DetachedRun> {
  const zone = await temporaryDirectory({ owner: user, mode: 0o755 })
  mkdirSync(join(zone, '.vscode'))
  writeFileSync(join(zone, '.vscode', 'tasks.json'), 'host\n')
  const words = [
    '--engine',
    engine,
    '--seccomp',
    filterOf(filter),
    '--rw',
    `${zone}:/zone`,
    '--workdir',
    '/tmp',
    ...options,
  ]
  const shown = ['--ro', `${site.program}:/detach`]
  const run = await runCli([...words, ...shown, '--', '/detach', '/zone', '.vscode', 'moved'], { as: user })
  const { status } = run
  return { status, stdout: run.stdout.toString(), stderr: run.stderr.toString(), names: readdirSync(zone) }
}

const USERS: readonly User[] = currentUser() === 'root' ? ['root', 'plain'] : ['plain']

for (const user of USERS) {
  for (const engine of ENGINES) {
    describeWith(
      [engine, 'userns', 'gcc', ...(user === 'plain' ? ['plain-user' as const] : [])],
      `as ${user} with ${engine}`,
      () => {
        test.each([
          ['default', 'unshare: EPERM'],
          ['strict', 'unshare: EPERM'],
          ['off', 'tmpfs: EPERM'],
          ['extends nested', 'tmpfs: EPERM'],
          ['default with namespaces', 'tmpfs: EPERM'],
        ])('under %s a protected path stays in its place', async (filter, stopped) => {
          const { stdout, names } = await attack({ engine, user, filter })
          expect(stdout).toContain('before .vscode: EBUSY\n')
          expect(stdout).toContain(`${stopped}\n`)
          expect(names).toEqual(['.vscode'])
        })

        test('under nested the run is refused, and the way is named', async () => {
          const { status, stdout, stderr, names } = await attack({ engine, user, filter: 'nested' })
          expect([status, stdout, names]).toEqual([125, '', ['.vscode']])
          expect(stderr).toMatch(
            user === 'root'
              ? /is root's and cannot be writable under seccomp nested/
              : /it could move its protected paths \(.*--protect-not '\*'/,
          )
        })

        test('under nested the program can leave every mount: what is given up moves', async () => {
          const options = ['--protect-not', '*']
          const { stdout, names } = await attack({ engine, user, filter: 'nested', options })
          // A zone of root is refused all the same: an overlay over it could leave a program of root there.
          const isRefused = user === 'root'
          expect(stdout.includes('detach: done\n')).toBe(!isRefused)
          expect(names).toEqual([isRefused ? '.vscode' : 'moved'])
        })
      },
    )
  }
}
