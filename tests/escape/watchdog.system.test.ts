/**
 * Memory that is held where a watchdog which reads /proc does not look (programs/hide-memory.c), and programs that only look as if.
 * Where the kernel holds the limit these pass, too: the first test of each is the control that the program can be found at all.
 */
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { canBePlain, currentUser, type User } from '../support/users.ts'

const USERS: readonly User[] = currentUser() === 'root' && canBePlain() ? ['root', 'plain'] : [currentUser()]

async function hide(as: User, limit: string, words: readonly string[], engine = 'unshare') {
  const directory = await temporaryDirectory({ mode: 0o755 })
  const source = join(import.meta.dirname, '../programs/hide-memory.c')
  await execa('gcc', ['-O1', '-pthread', '-o', join(directory, 'hide'), source])
  const options = [
    '--memory',
    limit,
    '--timeout',
    '25s',
    '--pids',
    '300',
    '--engine',
    engine,
    '--ro',
    `${directory}:/tool`,
  ]
  const { status, stdout, stderr } = await runCli([...options, '--', '/tool/hide', ...words], { as })
  return { status, out: stdout.toString(), err: stderr.toString() }
}

describeWith(['userns', 'gcc'], 'the memory limit', () => {
  for (const as of USERS) {
    test.each([
      ['open'],
      ['undumpable'],
      ['passing', '0', '0'],
      ['passing', '200', '900'],
      ['copying', '0', '0'],
      ['leader'],
      ['thread'],
    ])(`ends what ${as} hides: %s %s %s`, async (way, ...decoys) => {
      const seen = await hide(as, '64m', [way, '300', ...decoys])
      expect(seen).toMatchObject({ status: 137, out: '', err: expect.stringContaining('memory limit') })
    })

    test.each([
      ['a crowd of processes with open files', ['crowd', '0', '200', '50'], 0],
      ['short-lived copies of a large process', ['copies', '300'], 300],
    ] as const)(`leaves ${as} alone with %s`, async (_, words, mib) => {
      expect(await hide(as, '512m', words)).toMatchObject({ status: 0, out: `held ${mib} MiB\n`, err: '' })
    })
  }
})

describeWith(['bwrap', 'userns', 'gcc'], 'with engine bwrap the memory limit', () => {
  test.each(USERS)('ends what %s hides, and takes bwrap itself for nothing that hides', async (as) => {
    expect(await hide(as, '64m', ['undumpable', '300'], 'bwrap')).toMatchObject({ status: 137, out: '' })
    expect(await hide(as, '64m', ['open', '20'], 'bwrap')).toMatchObject({ status: 0, out: 'held 20 MiB\n' })
  })
})

describeWith(['root', 'userns', 'gcc'], 'detached System V segments', () => {
  test('of root are bounded by the memory limit', async () => {
    expect(await hide('root', '512m', ['segment', '300'])).toMatchObject({ status: 0, out: 'held 300 MiB\n' })
    const { status, out, err } = await hide('root', '64m', ['segment', '300'])
    expect({ out, isHeld: status === 137 || err.includes('shmget: No space left on device') }).toEqual({
      out: '',
      isHeld: true,
    })
  })
})
