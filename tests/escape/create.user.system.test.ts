/**
 * Directories of zones with `create` are made where the plan says, whatever another user does to the directories on the way: root
 * is asked to make one in a directory of a plain user, who exchanges a step of the path for a link to a directory of root.
 */
import {
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeDirectories } from '../../src/os/make-directories.ts'
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import { prepareZones } from '../../src/run/make-zones.ts'
import { prepare } from '../../src/run/plan-run.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { runPart } from '../support/host-part.ts'
import { describeWith } from '../support/needs.ts'
import { callers, PLAIN_ID } from '../support/users.ts'

async function makeScene() {
  const base = await temporaryDirectory({ mode: 0o755 })
  const [work, victim] = [join(base, 'work'), join(base, 'victim')]
  for (const directory of [work, join(work, 'mid')]) {
    mkdirSync(directory)
    chownSync(directory, PLAIN_ID, PLAIN_ID)
  }
  mkdirSync(victim, { mode: 0o700 })
  symlinkSync(victim, join(work, 'link'))
  lchownSync(join(work, 'link'), PLAIN_ID, PLAIN_ID)
  return { work, victim }
}

const profileOf = (source: string): string =>
  `sandbox: { zones: [{ name: made, hostPath: ${source}, target: /made, mode: rw, create: true }] }\n`

describeWith(['root', 'gcc', 'userns'], "a zone that root makes in another user's directory", () => {
  test('is never made behind a link that was put there after the plan', async () => {
    const attack = async (make: (source: string, exchange: () => void) => Promise<unknown>) => {
      const { work, victim } = await makeScene()
      const exchange = () => {
        rmSync(join(work, 'mid'), { recursive: true, force: true })
        symlinkSync(victim, join(work, 'mid'))
      }
      const outcome = await make(join(work, 'mid/out'), exchange).then(
        () => 'made',
        ({ message }: Error) => message.replaceAll(work, ''),
      )
      return { outcome, behind: readdirSync(victim) }
    }
    const byRun = (source: string, exchange: () => void) =>
      prepareZones(async () => {
        const zones: SandboxInput['zones'] = [
          { name: 'made', hostPath: source, target: '/made', mode: 'rw', create: true },
        ]
        const cwd = await temporaryDirectory()
        const layer = { layer: 'flag', source: 'test', directory: cwd, values: { zones } } as const
        const prepared = await prepare({ command: ['true'], mode: 'capture', cwd, layers: [layer] })
        exchange()
        return prepared
      })
    const byPath = async (source: string, exchange: () => void) => {
      exchange()
      makeDirectories(source)
    }
    expect(await attack(byRun)).toEqual({
      outcome: expect.stringMatching(/\/mid: a symbolic link is in the way/),
      behind: [],
    })
    expect(await attack(byPath)).toEqual({ outcome: 'made', behind: ['out'] })
  })

  test('is never made behind a link by the native program, which makes others', async () => {
    const { work, victim } = await makeScene()
    const make = (path: string) => runPart('runs', ['make', join(work, path)])
    expect(await make('link/a/b')).toMatchObject({
      exitCode: 125,
      stderr: `${work}/link: a symbolic link is in the way`,
    })
    expect(readdirSync(victim)).toEqual([])
    // The controls: by path it is made there, and where no link is, the program makes it.
    makeDirectories(join(work, 'link/a'))
    expect(await make('mid/a/b')).toMatchObject({ exitCode: 0 })
    expect([readdirSync(victim), readdirSync(join(work, 'mid/a'))]).toEqual([['a'], ['b']])
  })
})

const USERS = callers()

describeWith('userns', 'a zone that is missing', () => {
  describe.each(USERS)('as %s', (user) => {
    test('is made with the directories above it, by every caller, with the mode that mkdir gives', async () => {
      const cwd = await temporaryDirectory({ owner: user })
      const uid = user === 'root' ? 0 : statSync(cwd).uid
      writeFileSync(join(cwd, 'p.yaml'), profileOf('./a/b'))
      const words = ['--profile', './p.yaml', '--', 'sh', '-c', 'echo ok >/made/file']
      for (const umask of ['022', '077']) {
        const through = ['sh', '-c', `umask ${umask}; exec "$@"`, 'sh']
        const ran = await runCli(words, { as: user, cwd, through })
        expect([ran.status, ran.stderr.toString()]).toEqual([0, ''])
        const seen = ['a', 'a/b'].map((path) => statSync(join(cwd, path)))
        expect(seen.map((status) => [status.mode & 0o7777, status.uid])).toEqual(
          seen.map(() => [0o777 & ~Number.parseInt(umask, 8), uid]),
        )
        expect(existsSync(join(cwd, 'a/b/file'))).toBe(true)
        rmSync(join(cwd, 'a'), { recursive: true })
      }
    })
  })
})
