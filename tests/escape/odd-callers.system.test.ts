/** Callers with something missing: each is told what, why and what helps, and nothing is called a defect of ours. */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

interface CallerRun {
  readonly status: number | undefined
  readonly err: string
}

/** `script` ends in the run, "$@". */
async function runFrom(
  script: string,
  { words = ['--', 'true'], env = {} }: { words?: string[]; env?: object } = {},
): Promise<CallerRun> {
  const home = await temporaryDirectory()
  const cwd = await temporaryDirectory()
  const { exitCode, stderr } = await execa('bash', ['-c', script, 'bash', ...cliWords(words)], {
    cwd,
    env: { PATH: process.env.PATH, HOME: home, ...env },
    extendEnv: false,
    reject: false,
  })
  return { status: exitCode, err: stderr }
}

describeWith(['userns'], 'a caller', () => {
  test('whose HOME is relative is told so', async () => {
    expect(await runFrom('"$@"', { env: { HOME: 'relative' } })).toEqual({
      status: 125,
      err: expect.stringMatching(
        /^llm-do: error POLICY_INVALID: HOME: expected an absolute path, got "relative"\nllm-do: hint: .*HOME/,
      ),
    })
  })

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
