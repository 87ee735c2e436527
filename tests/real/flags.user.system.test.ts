/** Flags for what only profiles could say before: what they do to a real run. */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser, uidOf } from '../support/users.ts'
import { textHere } from './in-process.ts'

describeWith('userns', 'a flag of', () => {
  test("--home DIR is a home that stays, beside the caller's directory", async () => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const run = (...argv: readonly string[]) => textHere(argv, { cwd })
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
})
