/**
 * Links and places that lead to what a run must not get. A zone that an earlier command replaced by a link is a row of tests/adversary, a
 * link that is there for some observations only is a case of tests/plan/mounts.test.ts.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { listHomes, removeHome } from '../../src/run/homes.ts'
import { textHere } from '../real/in-process.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser, PLAIN_ID } from '../support/users.ts'

async function makeScene() {
  const base = await temporaryDirectory()
  const [work, victim] = [join(base, 'work'), join(base, 'victim')]
  mkdirSync(join(work, 'output'), { recursive: true })
  mkdirSync(victim, { mode: 0o700 })
  writeFileSync(join(victim, 'id_rsa'), 'TOPSECRET\n', { mode: 0o600 })
  return { work, victim }
}

describeWith('userns', 'what decides the next run', () => {
  test('is no writable zone, nor below one: own state, profiles, the package and node', async () => {
    const { work } = await makeScene()
    const own = ['.cache/llm-do/launch', '.config/llm-do/profiles/below'].map((name) => join(work, name))
    for (const directory of own) mkdirSync(directory, { recursive: true })
    const root = checkoutFor(currentUser())
    const places = [...own, join(own[1] ?? '', '..'), ...['', 'bin', 'src/plan'].map((name) => join(root, name))]
    for (const place of [...places, process.execPath]) {
      const { status, err } = await textHere(['--rw', `${place}:/zone`, '--', 'true'], { env: { HOME: work } })
      expect([place, status, err]).toEqual([place, 125, expect.stringContaining('decides the policy of the next run')])
    }
  })

  test('stays as it is in a home that is kept, through a link too, and other files there do not', async () => {
    const { work, victim } = await makeScene()
    const env = { HOME: victim, XDG_STATE_HOME: victim }
    const kept = () => listHomes(env, process.getuid?.() ?? -1).filter(({ project }) => project === work)
    onTestFinished(async () => {
      for (const home of kept()) await removeHome(home)
    })
    const run = (script: string, ...words: readonly string[]) =>
      textHere(['--home', 'tools', ...words, '--', 'sh', '-c', script], { cwd: work, env })
    await run('mkdir bin; echo "sandbox: {}" | tee own.yaml >other.yaml', '--workdir', '/home/sandbox')
    const home = kept()[0]?.path ?? ''
    symlinkSync(join(home, 'own.yaml'), join(victim, 'link.yaml'))
    const script = 'for name in own.yaml other.yaml bin/ls; do echo changed >~/$name && echo $name; done; true'
    for (const profile of [join(home, 'own.yaml'), join(victim, 'link.yaml')])
      expect((await run(script, '--profile', profile)).out).toBe('other.yaml\nbin/ls\n')
    expect(readFileSync(join(home, 'own.yaml'), 'utf8')).toBe('sandbox: {}\n')
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
      textHere(['--', 'sh', '-c', script], { cwd: work, env: { PATH: `${entry}:${process.env['PATH']}` } })
    expect((await by(join(work, 'bin'))).out).toBe('')
    expect((await by(bin)).out).toBe('PUBLIC\n')
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
    const { status, out } = await textHere(['--zone', `in=${directory}/link:ro`, '--', 'cat', '/in/file'])
    return [status, out]
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
