/** Callers with something missing: each learns the object, the reason and the fix, and no message calls it our defect. */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

interface CallerRun {
  readonly status: number | undefined
  readonly err: string
}

/** `script` ends in the run, "$@". */
async function runFrom(script: string, { words = ['--', 'true'] }: { words?: string[] } = {}): Promise<CallerRun> {
  const home = await temporaryDirectory()
  const cwd = await temporaryDirectory()
  const { exitCode, stderr } = await execa('bash', ['-c', script, 'bash', ...cliWords(words)], {
    cwd,
    env: { PATH: process.env.PATH, HOME: home },
    extendEnv: false,
    reject: false,
  })
  return { status: exitCode, err: stderr }
}

describeWith(['userns'], 'a caller', () => {
  test.each([10, 24, 48])('who may open %i files runs, or is told to raise the limit', async (most) => {
    const { status, err } = await runFrom(`ulimit -n ${most}; "$@"`)
    expect(err).not.toContain('INTERNAL')
    expect({ status, err }).toEqual(
      status === 0
        ? { status: 0, err: '' }
        : { status: 125, err: expect.stringMatching(/^llm-do: error [\s\S]+ulimit -n/) },
    )
    // A limit that is only asked for is raised: the command has the one of its plan.
    expect(await runFrom(`ulimit -S -n ${most}; "$@"`)).toEqual({ status: 0, err: '' })
  })

  test.each([
    ['is gone', 'd=$(mktemp -d); cd "$d"; rmdir "$d"; "$@"', 'does not exist any more'],
    [
      'has too long a path',
      'd=$(mktemp -d); trap "rm -rf $d" EXIT; cd "$d"; n=$(printf %0200d 0); for i in $(seq 25); do mkdir $n; cd $n; done; "$@"',
      'has a path that is too long',
    ],
    // The text that node makes of the bytes is the name of the other directory.
    [
      'has bytes in its path that are not UTF-8',
      'd=$(mktemp -d); trap "rm -rf $d" EXIT; cd "$d"; mkdir "$(printf "e\\377")" "$(printf "e\\357\\277\\275")"; cd "$(printf "e\\377")"; "$@"',
      'has a path that is not valid UTF-8',
    ],
  ])('whose directory %s is told so', async (_, script, why) => {
    expect(await runFrom(script)).toEqual({
      status: 125,
      err: expect.stringMatching(
        new RegExp(`^llm-do: error ZONE_INVALID: .*${why}.*\nllm-do: hint: cd to another directory$`),
      ),
    })
  })
})

describeWith(['root', 'userns'], 'a caller', () => {
  test.each([
    ['with HOME', 'env HOME=/nonexistent'],
    ['without HOME', 'env -u HOME'],
    ['with an empty HOME', 'env HOME='],
    ['at home in /, as in a container', 'env HOME=/'],
    ['without HOME, with a runtime directory that is not there', 'env -u HOME XDG_RUNTIME_DIR=/run/user/54321'],
    ['without HOME, with the runtime directory of another user', 'env -u HOME XDG_RUNTIME_DIR=/run'],
    ['without any variable', 'env -i'],
  ])('without an account runs, %s', async (_, how) => {
    const words = 'cd /; setpriv --reuid 54321 --regid 54321 --clear-groups --'
    expect(await runFrom(`${words} ${how} "$@"`, { words: ['--', 'sh', '-c', 'exit 7'] })).toMatchObject({ status: 7 })
  })

  test.each([
    ['is empty', 'mount --bind /dev/null /etc/passwd'],
    ['may not be read', 'install -m 0 /dev/null /run/closed; mount --bind /run/closed /etc/passwd; rm /run/closed'],
  ])('without an account runs where the list of accounts %s', async (_, how) => {
    const script = `cd /; ${how}; exec setpriv --reuid 54321 --regid 54321 --clear-groups env -u HOME "$@"`
    const words = ['unshare', '--mount', 'sh', '-c', script, 'sh']
    expect(await runFrom(`${words.map((word) => `'${word}'`).join(' ')} "$@"`)).toMatchObject({ status: 0 })
  })

  test('without an account whose directory is closed to it is told so', async () => {
    const { status, err } = await runFrom('setpriv --reuid 54321 --regid 54321 --clear-groups env -u HOME "$@"')
    expect({ status, err }).toEqual({
      status: 125,
      err: expect.stringMatching(/may not be entered by this user\.\n.*cd /),
    })
  })

  test('whose /run is full is told which step had no room, and nothing of namespaces', async () => {
    const full =
      'mount -t tmpfs -o size=16k,nr_inodes=3 none /run; install -d -m 700 /run/llm-do /run/llm-do/runs; "$@"'
    const seen = await runFrom(`unshare -m bash -c '${full}' bash "$@"`)
    expect(seen).toEqual({ status: 125, err: expect.stringMatching(/ENOSPC.*full[\s\S]*df -h/) })
    expect(seen.err).not.toContain('namespaces')
  })
})

/* The caller's limits (ulimit): the limits of the command, and an error with a reason where the runner cannot work. */
/** As in docs/limits.md. */
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
