/** Limits of the caller's own (ulimit): what they become inside, and that none of them ends the runner without a word. */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { canBePlain, currentUser, type User } from '../support/users.ts'

const USERS: readonly User[] = currentUser() === 'root' && canBePlain() ? ['root', 'plain'] : [currentUser()]

/** As in docs/limits.md. */
const SHOW = 'for one in s n c l q e r; do echo "$one $(ulimit -S$one) $(ulimit -H$one)"; done'

async function under(as: User, limits: string, argv: readonly string[]) {
  const through = ['bash', '-c', `${limits}; exec "$@"`, 'bash']
  const { status, signal, stdout, stderr } = await runCli(argv, { as, through })
  return { status, signal, out: stdout.toString(), err: stderr.toString() }
}

describeWith(['userns'], 'inside a sandbox', () => {
  for (const as of USERS) {
    test(`of ${as} the stack has 8 MiB, whatever the caller's has`, async () => {
      for (const size of ['unlimited', '4096', '16384']) {
        const seen = await under(as, `ulimit -S -s ${size} || true`, ['--', 'bash', '-c', 'ulimit -Ss'])
        expect({ size, ...seen }).toMatchObject({ size, status: 0, out: '8192\n' })
      }
    })

    test(`of ${as} programs lie at addresses that cannot be guessed, though the caller's stack is unlimited`, async () => {
      const where = 'grep -m1 libc.so /proc/self/maps'
      const control = await execa('bash', ['-c', `ulimit -s unlimited; ${where}`])
      const seen = await under(as, 'ulimit -s unlimited', ['-c', where])
      expect(seen.out).toMatch(/^7[ef]/)
      expect(control.stdout).not.toMatch(/^7[ef]/)
    })

    test(`of ${as} descriptors, core files, locked memory, queues and priorities are bounded`, async () => {
      const { out } = await under(as, 'true', ['--', 'bash', '-c', SHOW])
      const [, n, c, l, q, e, r] = out.split('\n').map((line) => line.split(' ').slice(1))
      expect({ c, e, r }).toEqual({ c: ['0', '0'], e: ['0', '0'], r: ['0', '0'] })
      expect(n?.[0]).toBe('1024')
      expect(Number(n?.[1])).toBeLessThanOrEqual(524_288)
      expect(Number(l?.[1])).toBeLessThanOrEqual(8192)
      expect(Number(q?.[1])).toBeLessThanOrEqual(819_200)
    })

    test.each([
      ['ulimit -t 5', 'ulimit -Ht', '5\n'],
      ['ulimit -v 4000000', 'ulimit -Hv', '4000000\n'],
      ['ulimit -S -f 100000', 'ulimit -Sf', '100000\n'],
      ['ulimit -n 512', 'ulimit -n; ulimit -Hn', '512\n512\n'],
    ])(`of ${as} a stricter limit of the caller's stays: %s`, async (limits, script, out) => {
      expect(await under(as, limits, ['--', 'bash', '-c', script])).toMatchObject({ status: 0, out })
    })

    test(`of ${as} that may write no files is an error with a message, for node and for the client`, async () => {
      const seen = await under(as, 'ulimit -f 0', ['--', 'true'])
      expect(seen).toMatchObject({ status: 125, signal: undefined, err: expect.stringContaining('ulimit -f') })
    })
  }
})
