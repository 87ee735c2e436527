/**
 * What an earlier command left as a link is not followed by the next run: sources of zones, and toolchains of root. Neither is one
 * that is there for some looks only, since another process exchanges it for a directory all the time.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { canBePlain, currentUser, PLAIN_ID, type User } from '../support/users.ts'
import { startSwapping } from './swapping.ts'

async function makeScene() {
  const base = await temporaryDirectory()
  const [work, victim] = [join(base, 'work'), join(base, 'victim')]
  mkdirSync(join(work, 'output'), { recursive: true })
  mkdirSync(victim, { mode: 0o700 })
  writeFileSync(join(victim, 'id_rsa'), 'TOPSECRET\n', { mode: 0o600 })
  return { work, victim }
}

describeWith('userns', 'a source that an earlier command replaced by a link', () => {
  test('is refused, and the link and where it leads are named', async () => {
    const { work, victim } = await makeScene()
    const planted = await runCli(['--rw', '.', '--', 'sh', '-c', `rmdir output; ln -s ${victim} output`], { cwd: work })
    expect(planted.status).toBe(0)
    const words = ['--', 'sh', '-c', 'cat /output/id_rsa; echo evil >>/output/planted']
    const next = await runCli(['--zone', 'output=./output:rw', ...words], { cwd: work })
    expect([next.status, next.stdout.toString(), existsSync(join(victim, 'planted'))]).toEqual([125, '', false])
    expect(next.stderr.toString()).toContain(`output is a symbolic link to ${victim}`)
    // The control: the place itself is meant.
    const meant = await runCli(['--zone', `output=${victim}:rw`, ...words], { cwd: work })
    expect([meant.stdout.toString(), readFileSync(join(victim, 'planted'), 'utf8')]).toEqual(['TOPSECRET\n', 'evil\n'])
  })
})

describeWith('root', 'a toolchain of root', () => {
  test("shows no file that only root may read, by the project's link or without", async () => {
    const { work, victim } = await makeScene()
    const bin = join(victim, '.opam/bin')
    mkdirSync(bin, { recursive: true })
    chmodSync(victim, 0o755)
    writeFileSync(join(victim, '.opam/secret.key'), 'TOPSECRET\n', { mode: 0o600 })
    writeFileSync(join(victim, '.opam/public'), 'PUBLIC\n', { mode: 0o644 })
    symlinkSync(bin, join(work, 'bin'))
    const script = `cat ${victim}/.opam/public ${victim}/.opam/secret.key`
    const by = (entry: string) =>
      runCli(['--', 'sh', '-c', script], { cwd: work, env: { PATH: `${entry}:${process.env['PATH']}` } })
    expect((await by(join(work, 'bin'))).stdout.toString()).toBe('')
    expect((await by(bin)).stdout.toString()).toBe('PUBLIC\n')
  })
})

describeWith(['root', 'userns'], 'a link of another user, outside of the directory where root starts,', () => {
  const runThrough = async (linkOwner: number, targetOwner: number, mode = 0o755) => {
    const base = await temporaryDirectory({ mode: 0o755 })
    const [directory, target] = [join(base, 'place'), join(base, 'target')]
    mkdirSync(directory)
    mkdirSync(target)
    writeFileSync(join(target, 'file'), 'shown\n', { mode: 0o600 })
    chmodSync(directory, mode)
    symlinkSync(target, join(directory, 'link'))
    execFileSync('chown', ['-h', String(linkOwner), join(directory, 'link')])
    execFileSync('chown', ['-R', String(targetOwner), target])
    const { status, stdout } = await runCli(['--zone', `in=${directory}/link:ro`, '--', 'cat', '/in/file'])
    return [status, stdout.toString()]
  }

  test("is followed to what is that user's own alone, and not where everybody may put links", async () => {
    expect(await runThrough(PLAIN_ID, 0)).toEqual([125, ''])
    expect(await runThrough(PLAIN_ID, PLAIN_ID, 0o1777)).toEqual([125, ''])
    // The controls: the same places, by links that root follows.
    expect(await runThrough(0, 0)).toEqual([0, 'shown\n'])
    expect(await runThrough(0, PLAIN_ID, 0o1777)).toEqual([0, 'shown\n'])
    expect(await runThrough(PLAIN_ID, PLAIN_ID)).toEqual([0, 'shown\n'])
  })
})

const RUNS = 25
const WORDS = ['--', 'sh', '-c', 'cat /output/id_rsa']

interface Race {
  /** Who runs; the other process is a plain user. */
  readonly user: User
  /** What is exchanged: the source `output/data` itself, or the directory it lies in. */
  readonly swapped: 'output' | 'output/data'
  /** Where the runs start. */
  readonly at: 'work' | 'elsewhere'
  readonly pauseUs: number
}

const own = (user: User): number => (user === 'root' || currentUser() !== 'root' ? (process.getuid?.() ?? 0) : PLAIN_ID)

/** `output/data/id_rsa` is `fine` in the work directory of the plain user, and secret behind the link, in a directory of who runs. */
async function makeRace({ user, swapped }: Race) {
  const base = await temporaryDirectory({ mode: 0o755 })
  const [work, victim, other] = ['work', 'victim', 'elsewhere'].map((name) => join(base, name)) as [
    string,
    string,
    string,
  ]
  for (const directory of [work, victim]) mkdirSync(join(directory, 'output/data'), { recursive: true })
  mkdirSync(other)
  writeFileSync(join(work, 'output/data/id_rsa'), 'fine\n')
  writeFileSync(join(victim, 'output/data/id_rsa'), 'SECRET\n', { mode: 0o600 })
  chmodSync(victim, 0o700)
  symlinkSync(join(victim, swapped), join(work, 'link'))
  execFileSync('chown', ['-hR', String(own('plain')), work])
  execFileSync('chown', ['-hR', String(own(user)), victim, other])
  const [swappedPath, link, source] = [swapped, 'link', 'output/data'].map((name) => join(work, name)) as [
    string,
    string,
    string,
  ]
  return { work, other, swappedPath, link, source }
}

const USERS: readonly User[] = currentUser() === 'root' && canBePlain() ? ['root', 'plain'] : [currentUser()]
const SWAPPED = ['output', 'output/data'] as const
const RACES: readonly Race[] = [
  ...USERS.map((user) => ({ user, swapped: 'output', at: 'work', pauseUs: 1 }) as const),
  ...USERS.map((user) => ({ user, swapped: 'output/data', at: 'work', pauseUs: 2000 }) as const),
  // Outside of the caller's directory only root follows fewer links.
  ...(currentUser() === 'root' ? SWAPPED : []).map(
    (swapped) => ({ user: 'root', swapped, at: 'elsewhere', pauseUs: 1 }) as const,
  ),
]

describeWith(['userns', 'gcc'], 'a source that another process exchanges for a link', () => {
  test.each(RACES)('never shows where it leads: $swapped, every $pauseUs us, as $user in $at', async (race) => {
    const { work, other, swappedPath, link, source } = await makeRace(race)
    const home = await temporaryDirectory({ owner: race.user })
    const cwd = race.at === 'work' ? work : other
    const run = () => runCli(['--zone', `output=${source}:ro`, ...WORDS], { as: race.user, cwd, env: { HOME: home } })
    expect((await run()).stdout.toString()).toBe('fine\n')
    const swapping = await startSwapping(swappedPath, link, race.pauseUs)
    const seen = new Set<string>()
    for (let index = 0; index < RUNS; index++) seen.add((await run()).stdout.toString())
    await swapping.stop()
    expect([...seen].filter((text) => text !== '' && text !== 'fine\n')).toEqual([])
  })

  test.each(SWAPPED)('is shown by who looks at %s and goes there by path (control)', async (swapped) => {
    const { source, swappedPath, link } = await makeRace({ user: currentUser(), swapped, at: 'work', pauseUs: 0 })
    const swapping = await startSwapping(swappedPath, link, 0)
    const seen = new Set<string>()
    for (let index = 0; index < 5000; index++) seen.add(waitForExchange(source))
    await swapping.stop()
    expect([...seen].sort()).toEqual(expect.arrayContaining(['SECRET\n', 'fine\n']))
  })
})

function waitForExchange(source: string): string {
  try {
    return readFileSync(join(realpathSync.native(source), 'id_rsa'), 'utf8')
  } catch {
    return '' // It was exchanged between the two.
  }
}
