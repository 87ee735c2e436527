/** Another user takes the name below /tmp where a user without a runtime directory has the records of runs. */
import { chownSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { hostCall } from '../../src/os/native-programs.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { runPart } from '../support/host-part.ts'
import { describeWith } from '../support/needs.ts'
import { packageOfFile } from '../support/package.ts'
import { makeTestSite } from './chain.ts'
import { planOnce, supervised } from './launch.ts'

/** A user of this file alone: no other test uses the name below /tmp. */
const UID = 64_777
const TAKEN = `/tmp/llm-do-${UID}`

/** Root's own, where everybody can read it: a user takes no native programs that belong to another user. */
const built = packageOfFile()

async function makeHome(): Promise<string> {
  const home = await temporaryDirectory({ mode: 0o755 })
  chownSync(home, UID, UID)
  onTestFinished(() => rmSync(TAKEN, { recursive: true, force: true }))
  return home
}

const program = () => join(built().root, 'bin/llm-do')

const asUser = (home: string, words: readonly string[]) =>
  execa('setpriv', ['--reuid', `${UID}`, '--regid', `${UID}`, '--clear-groups', '--', program(), ...words], {
    cwd: home,
    env: { PATH: process.env['PATH'], HOME: home },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })

const TAKERS: readonly (readonly [string, (home: string) => void])[] = [
  ["another user's directory", () => mkdirSync(TAKEN, { mode: 0o755 })],
  [
    "a link to the user's own private directory",
    (home) => {
      mkdirSync(join(home, 'victim'), { mode: 0o700 })
      chownSync(join(home, 'victim'), UID, UID)
      symlinkSync(join(home, 'victim'), TAKEN)
    },
  ],
]

describeWith(['root', 'plain-user', 'userns'], 'the name below /tmp', () => {
  test.each(TAKERS)('is %s: runs go on elsewhere, and ps, kill and prune find them', async (_, take) => {
    const home = await makeHome()
    take(home)
    const run = asUser(home, ['exec', '-c', 'exec sleep 60'])
    const listed = async () => JSON.parse((await asUser(home, ['ps', '--json'])).stdout || '[]') as { id: string }[]
    await expect.poll(async () => (await listed()).length).toBe(1)
    const [{ id }] = (await listed()) as [{ id: string }]
    expect((await asUser(home, ['kill', id])).exitCode).toBe(0)
    expect((await run).signal).toBe('SIGTERM')
    expect((await asUser(home, ['prune'])).stdout).toBe('0 removed')
    expect(readdirSync(join(home, '.cache/llm-do/run/runs'))).toEqual([])
    // Layers of copy-on-write zones could have been there, too.
    expect((await asUser(home, ['exec', '--cow', '.', '--', 'touch', 'new'])).exitCode).toBe(0)
    if (existsSync(join(home, 'victim'))) expect(readdirSync(join(home, 'victim'))).toEqual([])
  })

  test('control: free, it is used', async () => {
    const home = await makeHome()
    expect((await asUser(home, ['exec', '--', 'true'])).exitCode).toBe(0)
    expect(readdirSync(TAKEN)).toContain('runs')
  })

  test('the native part follows a link neither in the last name nor in the one before', async () => {
    const base = await temporaryDirectory()
    mkdirSync(join(base, 'real/runs'), { recursive: true, mode: 0o700 })
    mkdirSync(join(base, 'own'), { mode: 0o700 })
    symlinkSync('real', join(base, 'link'))
    symlinkSync('../real/runs', join(base, 'own/runs'))
    const list = async (directory: string) => (await runPart('runs', ['list', join(base, directory)])).exitCode
    expect([await list('real/runs'), await list('link/runs'), await list('own/runs')]).toEqual([0, 125, 125])
  })

  test.each(['own', 'own/runs'])('root believes no record in a directory of another user (%s)', async (given) => {
    const base = await temporaryDirectory()
    const runs = join(base, 'own/runs')
    mkdirSync(runs, { recursive: true, mode: 0o700 })
    // As if its run had been killed: what bears its mark is what was left of it.
    const prune = async () => {
      writeFileSync(join(runs, 'planted'), 'id\0planted\0')
      return (await runPart('runs', ['prune', runs])).exitCode
    }
    const victim = execa('/bin/sleep', ['60'], { env: { LLM_DO_RUN: 'planted' }, extendEnv: false, reject: false })
    onTestFinished(() => void victim.kill('SIGKILL'))
    chownSync(join(base, given), UID, UID)
    expect([await prune(), existsSync(`/proc/${victim.pid}/exe`)]).toEqual([125, true])
    // The control: in root's own it is believed.
    chownSync(join(base, given), 0, 0)
    expect(await prune()).toBe(0)
    expect((await victim).signal).toBe('SIGKILL')
  })
})

describeWith('userns', 'the record of a run', () => {
  test.each(['a/../../planted', '../planted', '/planted', ''])(
    'is not made where its id is a path (%j)',
    async (id) => {
      const site = await makeTestSite()
      const own = await temporaryDirectory()
      mkdirSync(join(own, 'runs/a'), { recursive: true, mode: 0o700 })
      const runsDirectory = join(own, 'runs')
      const planned = await planOnce({ site, engine: 'unshare', command: ['/bin/true'], runsDirectory })
      const run = async (name: string) => {
        return supervised({ ...planned.launch(), ...hostCall('launch', ['--id', name]) })
      }
      expect(await run(id)).toMatchObject({ reason: 'setup', failure: { step: 'launch: run id', path: id } })
      expect(await run('good')).toMatchObject({ reason: 'exit', exitCode: 0 })
    },
  )
})
