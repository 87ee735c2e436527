/** Behaviour that a user of Docker, bubblewrap or a plain shell would take for granted. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'
import { textHere } from './in-process.ts'

const FILES = { 'here.txt': 'here\n', 'out/.keep': '', 'src/a.c': 'a\n' }
const withMask = (mask: string) => ['sh', '-c', `umask ${mask}; exec "$@"`, 'sh']

describeWith(['userns'], "the caller's directory", () => {
  test('stays read-only around the part that may be written', async () => {
    const cwd = await directoryWith(FILES)
    const script = 'echo 1 >out/made; echo 2 >made'
    const { status, err } = await textHere(['--rw', './out', '--', 'sh', '-c', script], { cwd })
    expect({ status, err }).toEqual({ status: 2, err: expect.stringContaining('Read-only file system') })
    expect((await readdir(cwd)).toSorted()).toEqual(['here.txt', 'out', 'src'])
    expect((await readdir(join(cwd, 'out'))).toSorted()).toEqual(['.keep', 'made'])
  })

  test('can be written around the part that may only be read, which keeps its place', async () => {
    const cwd = await directoryWith(FILES)
    const script = 'echo 1 >made; echo 2 >src/a.c; rm -f src/a.c; mv src gone; echo 3 >src/new; cat src/a.c'
    const { status, out } = await textHere(['--profile', 'task', '--ro', './src', '--', 'sh', '-c', script], { cwd })
    expect({ status, out }).toEqual({ status: 0, out: 'a\n' })
    expect((await readdir(cwd)).toSorted()).toEqual(['here.txt', 'made', 'out', 'src'])
    expect(await readdir(join(cwd, 'src'))).toEqual(['a.c'])
    // Without the option the same script has its way.
    await textHere(['--profile', 'task', '--', 'sh', '-c', script], { cwd })
    expect((await readdir(cwd)).toSorted()).toEqual(['gone', 'here.txt', 'made', 'out'])
  })
})

describeWith(['userns'], '/var/tmp', () => {
  test('can be written, and is no more than /tmp', async () => {
    const script =
      'mktemp -p /var/tmp >/dev/null; head -c 4m /dev/zero >/tmp/x; head -c 2m /dev/zero >/var/tmp/y; rm /tmp/x; wc -c <y'
    const { status, out, err } = await textHere(['--tmp', '5m', '--workdir', '/var/tmp', '--', 'sh', '-c', script])
    expect([status, err]).toEqual([0, expect.stringContaining('No space left on device')])
    expect(Number(out)).toBeLessThan(2 * 1024 ** 2)
  })
})

describeWith(['userns'], "the caller's mask of file modes", () => {
  const PRINTS = ['--rw', '.', '--', 'sh', '-c', 'umask; : >file; mkdir directory']

  test.each([
    ['plainly', [], '0077'],
    ['plainly', [], '0002'],
    ['captured', ['--json'], '0027'],
  ])('counts for what is run %s %j, when it is %s', async (_how, options, mask) => {
    // The second run is the client's, by the plan of the first one.
    for (let times = 0; times < 2; times += 1) {
      const cwd = await temporaryDirectory()
      const { status, stdout } = await runCli([...options, ...PRINTS], { cwd, through: withMask(mask) })
      expect([status, stdout.toString()]).toEqual([0, expect.stringContaining(mask)])
      const modes = await Promise.all(['file', 'directory'].map((name) => stat(join(cwd, name))))
      const open = 0o777 & ~Number.parseInt(mask, 8)
      expect(modes.map(({ mode }) => mode & 0o777)).toEqual([open & 0o666, open])
    }
  })

  test('counts for a host process without a sandbox', async () => {
    const env = { LLM_DO_ALLOW_UNSANDBOXED: '1' }
    const words = ['--backend', 'process', '--', 'sh', '-c', 'umask']
    const { stdout } = await runCli(words, { env, through: withMask('0057') })
    expect(stdout.toString()).toBe('0057\n')
  })
})

testWith(['userns', 'fakeroot'], 'fakeroot gives files to ids that the sandbox does not have', async () => {
  const script = 'cd /tmp; touch f; fakeroot sh -c "chown 0:0 f && chown 5:6 f && stat -c %u:%g f"'
  const cwd = await temporaryDirectory()
  expect(await textHere(['-c', script], { cwd })).toEqual({ status: 0, out: '5:6\n', err: '' })
  const control = await textHere(['-c', `unset FAKEROOTDONTTRYCHOWN; ${script}`], { cwd })
  expect(control.err).toContain('Invalid argument')
})
