/** Hidden files: the command finds them empty, whatever way it takes, and the host keeps what it has. */
import { existsSync } from 'node:fs'
import { link, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runCli, runForResult } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/processes.ts'
import { callers, currentUser, PLAIN_ID, type User } from '../support/users.ts'

const SECRET = 'hunter2'
const HIDDEN = ['.env', 'a/b/.ENV.local', 'a/secrets', 'a/server.PEM', 'config/key']
const HIDE = ['.env*', 'secrets/', '*.pem', 'config/key'].flatMap((pattern) => ['--hide', pattern])

async function give(path: string, as: User): Promise<void> {
  if (as !== currentUser()) await execa('chown', ['-hR', `${PLAIN_ID}:${PLAIN_ID}`, path])
}

/** A directory with the secret in these files. */
async function makeSecrets(as: User, names: readonly string[]): Promise<string> {
  const zone = await temporaryDirectory({ owner: as })
  for (const name of names) {
    await mkdir(dirname(join(zone, name)), { recursive: true })
    await writeFile(join(zone, name), SECRET)
  }
  return zone
}

/** A zone with the secret in many places, each of which is hidden, and `plain`, which is not. */
async function makeZone(as: User): Promise<string> {
  const names = ['.env', 'a/b/.ENV.local', 'a/secrets/deep/token', 'a/server.PEM', 'config/key', 'target']
  const zone = await makeSecrets(as, names)
  await writeFile(join(zone, 'plain'), 'plain\n')
  await link(join(zone, '.env'), join(zone, 'a/other-name'))
  await link(join(zone, 'a/secrets/deep/token'), join(zone, 'a/other-token'))
  await symlink('target', join(zone, '.env.link'))
  await symlink('.env', join(zone, 'to-hidden'))
  await give(zone, as)
  return zone
}

/** Two secrets: one has its pattern by the directory above it, the other by a link that leads there in steps. */
async function makeLedZone(as: User): Promise<string> {
  const zone = await makeSecrets(as, ['config/key', 'end/dir/target'])
  await mkdir(join(zone, 'by'))
  await symlink('end/dir', join(zone, 'middle'))
  await symlink('by/../middle/target', join(zone, '.env'))
  await give(zone, as)
  return zone
}

/** Reads everything by more than one way, and tries to get the covered names out of their places. */
const ATTACK = [
  'cat plain; grep -rs . . /again; cat to-hidden .env.link a/other-name a/other-token',
  'exec 3<.env; cat /proc/self/fd/3 /proc/self/root/workspace/.env a/../a/server.PEM a/secrets/deep/token',
  'mv .env moved; ln .env linked; rm -f .env; mv -T a away; mv -T config conf; umount .env',
  'echo evil >.env; echo evil >away/secrets/new; echo evil >a/secrets/new',
  'grep -rs . . /again; cp -r . /tmp/copy; grep -rs . /tmp/copy; true',
].join('\n')

interface Call {
  readonly as: User
  readonly zone: string
  readonly words: readonly string[]
  readonly script: string
}

async function runIn({ as, zone, words, script }: Call): Promise<Result> {
  const result = await runForResult([...words, '--', 'sh', '-c', script], { as, cwd: zone })
  const layer = result.cow?.id
  if (layer !== undefined) onTestFinished(() => discard(layer, as))
  return result
}

const discard = async (id: string, as: User) => {
  await runCli(['discard', '--force', id], { program: 'llm-do', as })
}

const hiddenIn = ({ hidden }: Result, zone: string) => hidden?.paths.map((path) => path.slice(zone.length + 1)).sort()

describeWith(['unshare', 'userns'], 'A file that the policy hides', () => {
  describe.each(callers())('from a command of %s', (as) => {
    test.each(['ro', 'rw', 'cow'])('cannot be read in a zone that is %s, by no name and no way', async (mode) => {
      const zone = await makeZone(as)
      const second = `--${mode === 'rw' ? 'rw' : 'ro'}=${zone}/config:/again`
      const words = [`--${mode}`, '.', ...(mode === 'cow' ? ['--apply', 'never'] : [second])]
      const seen = await runIn({ as, zone, words: [...words, ...HIDE], script: ATTACK })
      expect(seen.stdout).toContain('plain\n')
      expect(seen.stdout).not.toContain(SECRET)
      expect(hiddenIn(seen, zone)).toEqual(
        expect.arrayContaining([...HIDDEN, 'a/other-name', 'a/other-token', 'target']),
      )
      expect(await readFile(join(zone, '.env'), 'utf8'), 'the host keeps it').toBe(SECRET)

      const control = await makeZone(as)
      const script = 'cat .env a/secrets/deep/token'
      const bare = await runIn({ as, zone: control, words: [`--${mode}`, '.'], script })
      expect(bare.stdout, 'without hide').toBe(SECRET + SECRET)
      expect(bare.hidden).toBeUndefined()
    })

    test.each(['unshare', 'bwrap'])(
      'is covered when it appears or is replaced while the command runs (%s)',
      async (engine) => {
        const zone = await temporaryDirectory({ owner: as })
        await mkdir(join(zone, 'control'))
        await mkdir(join(zone, 'deep/er'), { recursive: true })
        await writeFile(join(zone, '.env'), SECRET)
        await give(zone, as)
        // The loops end when all files are empty; else the run does by its timeout.
        const script =
          'touch control/up; until [ -e control/go ]; do :; done; for at in .env .env.new deep/er/.env; do until [ -e $at ] && [ ! -s $at ]; do :; done; done; cat .env .env.new deep/er/.env; mv deep away; echo empty'
        const running = runIn({ as, zone, words: ['--engine', engine, '--rw', '.', '--hide', '.env*'], script })
        await until('the command', () => existsSync(join(zone, 'control/up')) || undefined)
        await writeFile(join(zone, 'saved'), SECRET)
        await rename(join(zone, 'saved'), join(zone, '.env'))
        await writeFile(join(zone, '.env.new'), SECRET)
        await writeFile(join(zone, 'deep/er/.env'), SECRET)
        await writeFile(join(zone, 'control/go'), '')
        const seen = await running
        expect(seen).toMatchObject({ ok: true, stdout: 'empty\n' })
        expect(hiddenIn(seen, zone)).toEqual(['.env', '.env.new', 'deep/er/.env'])
        expect(await readFile(join(zone, '.env'), 'utf8')).toBe(SECRET)
        expect(existsSync(join(zone, 'deep/er/.env')), 'the directory above stays').toBe(true)
      },
    )

    test('ends the run where a command makes directories so deep that nothing in them can be hidden', async () => {
      const zone = await temporaryDirectory({ owner: as })
      // Only the control finds the file by which it ends; with the wall nothing but the wall ends the run before its timeout.
      const script = `for n in $(seq 25); do mkdir ${'x'.repeat(200)} && cd ${'x'.repeat(200)}; done; until [ -e /workspace/go ]; do sleep 0.1; done; echo survived`
      await writeFile(join(zone, 'go'), '')
      const words = ['--rw', '.', '--protect-not', '*']
      const clear = () => execa('rm', ['-rf', ...['x'.repeat(200)]], { cwd: zone })
      expect(await runIn({ as, zone, words, script })).toMatchObject({ ok: true, stdout: 'survived\n' })
      await clear()
      await rm(join(zone, 'go'))
      const ended = await runIn({ as, zone, words: [...words, '--hide', '.env'], script })
      expect(ended).toMatchObject({
        ok: false,
        stdout: '',
        error: { message: expect.stringContaining('is to be hidden') },
      })
      await clear()
    })

    test.each(['rw', 'cow'])('stays hidden from the run after one that takes its names away (%s)', async (mode) => {
      const attack = async (hide: readonly string[]): Promise<string> => {
        const zone = await makeLedZone(as)
        const script = 'mv config conf; rm .env; rm middle; mv by bye; mv end/dir end/d; mv end e; true'
        const { cow } = await runIn({ as, zone, words: [`--${mode}`, '.', ...hide], script })
        const next = cow === undefined ? ['--rw', '.'] : ['--cow-continue', cow.id]
        const { stdout } = await runIn({ as, zone, words: [...next, ...HIDE], script: 'grep -rhs . .; true' })
        if (cow === undefined) return stdout
        const shown = await runCli(['diff', cow.id], { program: 'llm-do', as, cwd: zone })
        return stdout + shown.stdout.toString()
      }
      expect(await attack(HIDE)).not.toContain(SECRET)
      expect(await attack([]), 'the names taken away by a run without hide').toContain(SECRET)
    })

    test('is in no layer, and stays hidden where an earlier run has renamed its directory', async () => {
      const zone = await makeZone(as)
      const renames = 'mv config conf; mv a/b b; echo new >plain'
      const first = await runIn({ as, zone, words: ['--cow', '.'], script: renames })
      const again = ['--cow-continue', first.cow?.id ?? '', ...HIDE]
      const script = 'cat b/.ENV.local; ls b'
      const seen = await runIn({ as, zone, words: again, script: `${script}/.ENV.local; echo more >plain` })
      expect(seen.stdout).toBe('b/.ENV.local\n')
      const changes = 'cat .env; echo x >.env; mv -T a away; echo more >plain'
      const { cow: pending } = await runIn({ as, zone, words: ['--cow', '.', ...HIDE], script: changes })
      const shown = await runCli(['diff', pending?.id ?? ''], { program: 'llm-do', as, cwd: zone })
      expect(shown.stdout.toString()).toContain('+more')
      await runCli(['apply', pending?.id ?? ''], { program: 'llm-do', as, cwd: zone })
      expect(await readFile(join(zone, '.env'), 'utf8')).toBe(SECRET)
    })

    test.each(['config', 'config/key:/key', 'a/secrets/deep'])(
      'is not shown by a zone of its own: %s',
      async (source) => {
        const zone = await makeZone(as)
        const words = ['--no-workspace', '--ro', source, '--hide', 'config/', '--hide', 'secrets/']
        const seen = await runIn({ as, zone, words, script: 'grep -rs . /key /workspace' })
        expect(seen.error?.message).toContain('is hidden by the policy')
        expect(seen.stdout).toBe('')
      },
    )
  })
})
