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
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { makeDirectories } from '../../src/os/make-directories.ts'
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import { prepareZones } from '../../src/run/make-zones.ts'
import { prepare } from '../../src/run/plan-run.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { canBePlain, checkoutFor, currentUser, PLAIN_ID, type User } from '../support/users.ts'
import { startSwapping } from './swapping.ts'

const RUNS = 30
/** Of the native program or the old calls alone, which take less than a millisecond. */
const TRIES = 2000

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

/** What was made in the user's own directory, whichever name it has just now. */
function madeIn(work: string): readonly string[] {
  const own = ['mid', 'link'].map((name) => join(work, name)).find((path) => statSync(path).uid === PLAIN_ID)
  return readdirSync(own ?? work)
}

const profileOf = (source: string): string =>
  `sandbox: { zones: [{ name: made, hostPath: ${source}, target: /made, mode: rw, create: true }] }\n`

describeWith(['root', 'gcc', 'userns'], "a zone that root makes in another user's directory", () => {
  test.each([0, 3000])('is never made behind a link (exchanged every %d us)', async (pauseUs) => {
    const { work, victim } = await makeScene()
    const profiles = await temporaryDirectory()
    const swapping = await startSwapping(join(work, 'mid'), join(work, 'link'), pauseUs)
    for (let index = 0; index < RUNS; index++) {
      const profile = join(profiles, `p${index}.yaml`)
      writeFileSync(profile, profileOf(join(work, 'mid', `out${index}`)))
      await runCli(['--profile', profile, '--', 'true'], { cwd: profiles })
    }
    await swapping.stop()
    expect(readdirSync(victim)).toEqual([])
  })

  test('is never made behind a link that was put there after the plan', async () => {
    const attack = async (make: (source: string, exchange: () => void) => Promise<unknown>) => {
      const { work, victim } = await makeScene()
      // What the runs above have to hit by chance.
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
    const program = join(checkoutFor('root'), 'bin/runs')
    const swapping = await startSwapping(join(work, 'mid'), join(work, 'link'), 0)
    const why = new Set<string>()
    for (let index = 0; index < TRIES / 4; index++) {
      const { exitCode, stderr } = await execa(program, ['make', join(work, 'mid', `a${index}/b`)], { reject: false })
      if (exitCode !== 0) why.add(stderr)
    }
    await swapping.stop()
    expect([readdirSync(victim), [...why]]).toEqual([[], [`${work}/mid: a symbolic link is in the way`]])
    expect(madeIn(work)).not.toEqual([])
  })

  test('is made behind the link by path (control)', async () => {
    const { work, victim } = await makeScene()
    const swapping = await startSwapping(join(work, 'mid'), join(work, 'link'), 0)
    for (let index = 0; index < TRIES; index++) makeDirectories(join(work, 'mid', `out${index}`))
    await swapping.stop()
    expect(readdirSync(victim)).not.toEqual([])
  })
})

const USERS: readonly User[] = currentUser() === 'root' && canBePlain() ? ['root', 'plain'] : [currentUser()]

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
