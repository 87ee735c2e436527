/** The caller's limits (ulimit): the limits of the command, and an error with a reason where the runner cannot work. */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'

/** As in docs/reference/limits.md. */
const SHOW =
  'for one in s n c l q e r; do echo "$one $(ulimit -S$one) $(ulimit -H$one)"; done; grep -m1 libc.so /proc/self/maps'

async function under(limits: string, argv: readonly string[], home: 'file' | 'new' = 'file') {
  const through = ['bash', '-c', `${limits}; exec "$@"`, 'bash']
  const { status, signal, stdout, stderr } = await runCli(argv, { through, home })
  return { status, signal, out: stdout.toString(), err: stderr.toString() }
}

describeWith(['userns'], 'inside a sandbox', () => {
  test.each(['unlimited', '4096'])(
    'the limits are those of the plan where the caller has a stack of %s',
    async (size) => {
      const { out } = await under(`ulimit -S -s ${size}`, ['--', 'bash', '-c', SHOW])
      const [s, n, c, l, q, e, r] = out.split('\n').map((line) => line.split(' ').slice(1))
      expect({ s: s?.[0], n: n?.[0], c, e, r }).toEqual({
        s: '8192',
        n: '1024',
        c: ['0', '0'],
        e: ['0', '0'],
        r: ['0', '0'],
      })
      expect(Number(n?.[1])).toBeLessThanOrEqual(524_288)
      expect(Number(l?.[1])).toBeLessThanOrEqual(8192)
      expect(Number(q?.[1])).toBeLessThanOrEqual(819_200)
      // With an unlimited stack libraries would lie at addresses that can be guessed: the control.
      expect(out).toMatch(/^7[ef][0-9a-f]+-.*libc/m)
      const control = await execa('bash', ['-c', 'ulimit -s unlimited; grep -m1 libc.so /proc/self/maps'])
      expect(control.stdout).not.toMatch(/^7[ef]/)
    },
  )

  test('stricter limits of the caller stay', async () => {
    const limits = 'ulimit -t 5; ulimit -v 4000000; ulimit -S -f 100000; ulimit -n 512'
    const show = 'ulimit -Ht; ulimit -Hv; ulimit -Sf; ulimit -n; ulimit -Hn'
    expect(await under(limits, ['--', 'bash', '-c', show])).toMatchObject({
      status: 0,
      out: '5\n4000000\n100000\n512\n512\n',
    })
  })

  test('a caller that may write no files gets an error with the reason', async () => {
    const seen = await under('ulimit -f 0', ['--', 'true'], 'new')
    expect(seen).toMatchObject({ status: 125, signal: undefined, err: expect.stringContaining('ulimit -f') })
  })
})
