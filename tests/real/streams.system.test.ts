/**
 * A directory, or a descriptor opened with O_PATH, in the place of a standard stream leads around every mount of the sandbox: such a run is
 * refused before anything is made, and the message names the stream.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { startPool } from '../pool/pool.ts'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'

const O_PATH = 0o10_000_000
const KINDS = {
  'a directory': { flags: constants.O_RDONLY | constants.O_DIRECTORY, name: 'host' },
  'a directory, by O_PATH': { flags: O_PATH | constants.O_DIRECTORY, name: 'host' },
  'a file, by O_PATH': { flags: O_PATH, name: 'host/secret' },
} as const
type Kind = keyof typeof KINDS

const STREAMS = ['stdin', 'stdout', 'stderr'] as const
/** Reads the secret next to the directory that it was given, as any of the three descriptors. */
const ATTACK = 'for fd in 0 1 2; do cat /proc/self/fd/$fd/secret && echo evil >/proc/self/fd/$fd/evil; done; echo end'

async function makeStreamSite() {
  const base = await temporaryDirectory({ mode: 0o755 })
  const host = join(base, 'host')
  mkdirSync(host)
  writeFileSync(join(host, 'secret'), 'SECRET\n')
  return { base, host }
}

interface Starting {
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** The index of a stream, and the descriptor in its place. */
  readonly at: number
  readonly fd: number | 'ignore'
}

async function startWith({ words: [file = '', ...words], env, cwd, at, fd }: Starting) {
  const stdio = STREAMS.map((_, index) => (index === at ? fd : index === 0 ? ('ignore' as const) : ('pipe' as const)))
  const child = spawn(file, words, { cwd, env, stdio })
  const run = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (run.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (run.stderr += chunk.toString()))
  const [status] = await once(child, 'close')
  return { status: status as number | null, ...run }
}

function opened({ base }: { readonly base: string }, kind: Kind): number {
  const fd = openSync(join(base, KINDS[kind].name), KINDS[kind].flags)
  onTestFinished(() => closeSync(fd))
  return fd
}

/** Every kind, every stream and every engine once. */
const CASES: readonly (readonly [Kind, (typeof STREAMS)[number], 'unshare' | 'bwrap'])[] = [
  ['a directory', 'stdin', 'unshare'],
  ['a directory', 'stdout', 'bwrap'],
  ['a directory, by O_PATH', 'stderr', 'unshare'],
  ['a directory, by O_PATH', 'stdin', 'bwrap'],
  ['a file, by O_PATH', 'stdout', 'unshare'],
]

describeWith('userns', 'in the place of a standard stream', () => {
  test.each(CASES)('%s is refused (%s, %s)', async (kind, stream, engine) => {
    const site = await makeStreamSite()
    const home = await temporaryDirectory()
    const call = {
      words: cliWords(['--engine', engine, '--', '/bin/sh', '-c', ATTACK]),
      env: { PATH: process.env['PATH'], HOME: home },
      cwd: home,
    }
    const at = STREAMS.indexOf(stream)
    // By node, with the plan in the cache, and again: the client starts launch itself then.
    const first = await startWith({ ...call, at, fd: opened(site, kind) })
    expect((await startWith({ ...call, at: 0, fd: 'ignore' })).stdout).toBe('end\n')
    const again = await startWith({ ...call, at, fd: opened(site, kind) })
    for (const { status, stdout, stderr } of [first, again]) {
      expect({ status, stdout }).toEqual({ status: 125, stdout: '' })
      if (stream !== 'stderr') expect(stderr).toMatch(new RegExp(`launch: stream ${stream}: (EISDIR|EBADF)`))
    }
    expect(readFileSync(join(site.host, 'secret'), 'utf8')).toBe('SECRET\n')
    await expect(execa('ls', [site.host])).resolves.toMatchObject({ stdout: 'secret' })
  })

  testWith('bwrap', 'a directory leads out of a sandbox that does not look: the control', async () => {
    const site = await makeStreamSite()
    const words = 'bwrap --unshare-all --ro-bind /usr /usr --symlink usr/bin /bin --proc /proc'.split(' ')
    const links = ['lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`])
    const run = await startWith({
      words: [...words, ...links, '--', '/bin/sh', '-c', ATTACK],
      env: { PATH: process.env['PATH'] },
      cwd: '/',
      at: 0,
      fd: opened(site, 'a directory'),
    })
    expect(run.stdout).toContain('SECRET')
    expect(readFileSync(join(site.host, 'evil'), 'utf8')).toBe('evil\n')
  })

  test.each<[Kind]>([['a directory'], ['a file, by O_PATH']])(
    '%s is refused by a caller of a warm sandbox',
    async (kind) => {
      const site = await makeStreamSite()
      const pool = await startPool({ size: 1 })
      await pool.whenReady()
      const run = await startWith({
        words: cliWords(['exec', ...pool.options, '--', '/bin/sh', '-c', ATTACK], pool.call),
        env: { PATH: process.env['PATH'], ...pool.call.env },
        cwd: pool.cwd,
        at: 0,
        fd: opened(site, kind),
      })
      expect({ status: run.status, stdout: run.stdout }).toEqual({ status: 125, stdout: '' })
      expect(run.stderr).toMatch(/launch: stream stdin/)
    },
  )
})

/* Streams need memory that does not grow with them. That they are exact is the contract's row results.bytes. */
const MIB = 1024 ** 2
const FLOOD = 320 * MIB
/** Node with this program needs some 100 MiB, the native part 1; a kept stream needs 320. */
const MOST_BYTES = 256 * MIB

/** Runs words with a flood on stdin; prints the number of bytes from stdout, their end, and the largest peak of a process. */
const MEASURE = `
import json, resource, subprocess, sys
flood = subprocess.Popen(['head', '-c', sys.argv[1], '/dev/zero'], stdout=subprocess.PIPE)
run = subprocess.Popen(sys.argv[2:], stdin=flood.stdout, stdout=subprocess.PIPE)
flood.stdout.close()
count, end = 0, b''
while chunk := run.stdout.read(1 << 16):
    count, end = count + len(chunk), (end + chunk)[-(1 << 20):]
status = run.wait()
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(json.dumps({'status': status, 'bytes': count, 'end': end.decode(), 'peak': peak}))`

async function measure(argv: readonly string[], input: number) {
  const cwd = await directoryWith()
  const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: cwd }
  const words = ['-c', MEASURE, `${input}`, ...cliWords(argv)]
  const { stdout } = await execa('python3', words, { cwd, env, extendEnv: false })
  return JSON.parse(stdout) as { status: number; bytes: number; end: string; peak: number }
}

describeWith(['userns', 'python'], 'a flood', () => {
  test('goes through cat in flat memory', async () => {
    const { status, bytes, peak } = await measure(['--', 'cat'], FLOOD)
    expect({ status, bytes, isFlat: peak < MOST_BYTES }, `${peak}`).toEqual({ status: 0, bytes: FLOOD, isFlat: true })
  })
})

/** Nobody but launch can say what a command that has the caller's streams was refused: it keeps the end of stderr. */
describeWith('userns', 'a command with the streams of its caller', () => {
  const DENIED = 'llm-do: denied: write /workspace/made; to allow it: --rw .\n'
  const REFUSED = `touch: cannot touch 'made': Read-only file system\n${DENIED}`
  const AROUND = {
    'a pipe': '{ run 3>&1 >&2 2>&3 | cat; } 2>/dev/null',
    'one pipe for both': 'run 2>&1 | cat',
    'a file': 'run 2>said; cat said',
    'a socket': `node -e 'require("child_process").spawn("sh", ["-c", process.env.RUN]).stderr.pipe(process.stdout)'`,
  } as const
  const CASES = [
    ['a refused write', 'touch made', REFUSED],
    ['a failure without one', 'echo here | grep nowhere', ''],
    ['a refused write of a command that succeeds', 'touch made 2>/dev/null; true', ''],
    ['an order', 'for i in 1 2 3; do echo $i >&2; done; exit 3', '1\n2\n3\n'],
  ] as const

  test.each(
    Object.entries(AROUND).flatMap(([stream, around]) => CASES.map((one) => [stream, ...one, around] as const)),
  )('%s: %s', async (_stream, _what, script, said, around) => {
    const cwd = await directoryWith()
    const RUN = [...cliWords(['-c', script])].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
    const env = { PATH: process.env.PATH, HOME: await temporaryDirectory(), LANG: 'C.UTF-8', RUN }
    // The second run is the client's.
    for (const run of [1, 2]) {
      const shell = ['-c', `run() { ${RUN}; }; ${around}`]
      const { stdout } = await execa('bash', shell, { cwd, env, extendEnv: false, stripFinalNewline: false })
      expect({ run, stdout }).toEqual({ run, stdout: said })
    }
  })

  test('both streams of one pipe stay in their order', async () => {
    const script = 'for i in $(seq 200); do echo out $i; echo err $i >&2; done'
    const { all } = await execa('bash', ['-c', '"$@" 2>&1 | cat', 'bash', ...cliWords(['-c', script])], { all: true })
    expect(all.split('\n')).toEqual(Array.from({ length: 200 }, (_, i) => [`out ${i + 1}`, `err ${i + 1}`]).flat())
  })

  test('a reader that goes ends the command as it would without us', async () => {
    const around = '{ "$@" 3>&1 >&2 2>&3; echo $? >&2; } | head -n 1'
    const words = cliWords(['--timeout', '20s', '-c', 'trap "" PIPE; yes >&2; echo went on'])
    const { stderr, stdout } = await execa('bash', ['-c', around, 'bash', ...words], { env: { LANG: 'C.UTF-8' } })
    expect({ stdout, stderr }).toEqual({ stdout: 'y', stderr: expect.stringMatching(/^went on\n0$/) })
  })

  test('a reader that does not read delays the end until the timeout', async () => {
    const [program = '', ...words] = cliWords([
      '--timeout',
      '1s',
      '--rw',
      '.',
      '-c',
      'head -c 100k /dev/zero >&2; touch ended',
    ])
    // It reads once nothing of the run is left: what we say of the end goes the same way.
    const around = `mkfifo ../pipe; exec 9<>../pipe; "$@" 2>&9 & run=$!; until test -e ended; do sleep 0.05; done
      while "\${0%-exec}" ps | grep --quiet 100k; do sleep 0.05; done; head -c 64k <&9 >/dev/null; wait $run; echo $?`
    const cwd = join(await directoryWith(), 'work')
    mkdirSync(cwd)
    const { stdout } = await execa('bash', ['-c', around, program, program, ...words], { cwd })
    expect(stdout).toBe('124')
  })
})
