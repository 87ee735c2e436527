/** Flags for what only profiles could say before: what they do to a real run. */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser, uidOf } from '../support/users.ts'
import { textHere } from './in-process.ts'

/** The run of a command in a directory of its user. */
async function makePlace() {
  const cwd = await temporaryDirectory({ mode: 0o755 })
  const run = (...argv: readonly string[]) => textHere(argv, { cwd })
  return { cwd, run }
}

/** KiB of a file system, as df says it. */
const sizeOf = (place: string) => `df -Pk ${place} | awk 'NR == 2 { print $2 }'`

describeWith('userns', 'a flag of', () => {
  test("--home DIR is a home that stays, beside the caller's directory", async () => {
    const { cwd, run } = await makePlace()
    const first = await run('--home', './home:create', '-c', 'echo kept >~/file; pwd')
    expect(first).toEqual({ status: 0, out: '/workspace\n', err: '' })
    expect(await readFile(join(cwd, 'home/file'), 'utf8')).toBe('kept\n')
    expect((await stat(join(cwd, 'home/file'))).uid).toBe(uidOf(currentUser()))
    expect(await run('--home', './home:ro', '-c', 'cat ~/file; echo no >~/file')).toMatchObject({
      status: expect.not.stringMatching('^0$'),
      out: 'kept\n',
    })
    expect(await readFile(join(cwd, 'home/file'), 'utf8')).toBe('kept\n')
  })

  test('--home, --shm, --run and --tmp SIZE bound what is in memory', async () => {
    const { run } = await makePlace()
    const places = ['~', '/dev/shm', '/run', '/tmp']
    const { out } = await run(
      ...['--home', '5m', '--shm', '3m', '--run', '2m', '--tmp', '4m', '--swap', '1m'],
      ...['-c', places.map(sizeOf).join('; ')],
    )
    expect(out).toBe('5120\n3072\n2048\n4096\n')
  })

  test('a zone ends in :optional where it may be missing, and in :create where it is made', async () => {
    const { cwd, run } = await makePlace()
    expect(await run('--ro', './none', '--', 'true')).toMatchObject({ status: 125 })
    expect(await run('--ro', './none:optional', '--', 'ls')).toEqual({ status: 0, out: '', err: '' })
    expect(await run('--rw', './made:/made:create', '-c', 'echo x >/made/file')).toMatchObject({ status: 0 })
    expect(await readFile(join(cwd, 'made/file'), 'utf8')).toBe('x\n')
  })
})
