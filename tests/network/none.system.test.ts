/** A command without network asks for a name: it hears at once that there is none, and its result names the host and the flag for it. */
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { startPool } from '../pool/pool.ts'
import { programFor, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { AT_ONCE_MS, needsOf, WAYS, type Way } from './ways.ts'

const run = async (command: readonly string[], { engine, as }: Way = WAYS[0]): Promise<Result> => {
  const { stdout } = await runCli(['--json', '--engine', engine, '--', ...command], { as })
  return JSON.parse(stdout.toString()) as Result
}

const PYTHON = '/usr/bin/python3'
/** Milliseconds of each of three look-ups. */
const LOOK_UP = `
import socket, time
def ms(name):
    begun = time.monotonic()
    try: socket.getaddrinfo(name, 80)
    except socket.gaierror as error: return error.errno == socket.EAI_NONAME and 1000 * (time.monotonic() - begun)
print(*(ms(name) for name in ['first.example', 'second.example', 'third.example']))`

const denial = (host: string) => ({ operation: 'resolve', target: host, fix: `--allow-host ${host}` })

describeWith('root', 'without network', () => {
  const CLIENTS: readonly (readonly [what: string, client: string])[] = [
    ['curl', 'curl -sS http://api.example/'],
    ['wget', 'wget -q -O - http://api.example/'],
    ['busybox', 'busybox wget -q -O - http://api.example/'],
    ['git', 'cd /tmp && git ls-remote http://api.example/repo.git'],
    ['node', `node -e 'fetch("http://api.example/").catch((e) => process.exit(e.cause.code === "ENOTFOUND" ? 1 : 0))'`],
    ['node (IPv4)', `node -e 'require("http").get({ host: "api.example", family: 4 })'`],
    [
      'node (c-ares)',
      `node -e 'require("dns").resolve4("api.example", (e) => process.exit(e.code === "ENOTFOUND" ? 1 : 0))'`,
    ],
    ['npm', 'cd /tmp && npm install --registry http://api.example/ nothing'],
    ['ssh', 'ssh -o BatchMode=yes api.example'],
  ]

  test.each(CLIENTS)('%s fails, and the result names the host', async (_, client) => {
    const { exitCode, denials, durationMs } = await run(['sh', '-c', client])
    expect(exitCode).not.toBe(0)
    expect(denials).toContainEqual(expect.objectContaining(denial('api.example')))
    expect(durationMs).toBeLessThan(20_000) // with retries it takes over a minute
  })

  describe.each(WAYS)('$engine as $as', (way) => {
    testWith(needsOf(way), 'names do not exist at once', async () => {
      const { stdout, denials } = await run([PYTHON, '-c', LOOK_UP], way)
      const times = stdout.trim().split(' ').map(Number)
      expect(times).toHaveLength(3)
      for (const ms of times) expect(ms).toBeLessThan(AT_ONCE_MS) // an answer that never comes takes 5 s
      expect(denials).toMatchObject(['first.example', 'second.example', 'third.example'].map(denial))
    })
  })

  test('a warm sandbox does the same', async () => {
    const pool = await startPool()
    const { stdout, isWarm } = await pool.runWarm([PYTHON, '-c', LOOK_UP], { env: { LLM_DO_EXEC_JSON: 'native' } })
    expect(isWarm).toBe(true)
    expect((JSON.parse(stdout.toString()) as Result).denials).toHaveLength(3)
  })

  test('a command that fails hears it in one line, one that succeeds does not', async () => {
    const failing = await runCli(['--', 'sh', '-c', 'curl -s http://api.example/'])
    expect(failing.stderr.toString()).toMatch(
      /^llm-do: denied: resolve api\.example( \(\d times\))?; to allow it: --allow-host api\.example\n/m,
    )
    const succeeding = await runCli(['--', 'sh', '-c', 'curl -s http://api.example/; true'])
    expect(succeeding.stderr.toString()).not.toMatch(/hint|denied/)
  })

  test('nothing but the name server is there, and the command cannot take its place', async () => {
    const script = `
import errno, socket
def attempt(what):
    try: return what() and 'ok'
    except OSError as error: return errno.errorcode[error.errno]
def bind(kind):
    with socket.socket(socket.AF_INET, kind) as s: return s.bind(('127.0.0.1', 53)) or True
print(attempt(lambda: bind(socket.SOCK_DGRAM)), attempt(lambda: bind(socket.SOCK_STREAM)),
      attempt(lambda: socket.create_connection(('127.0.0.1', 53), 2)), attempt(lambda: socket.create_connection(('203.0.114.10', 53), 2)))`
    const { stdout } = await run([PYTHON, '-c', script])
    expect(stdout).toBe('EACCES EACCES ECONNREFUSED ENETUNREACH\n')
  })

  testWith('strace', 'a command that asks for no name costs one socket, and no helper is started', async () => {
    const trace = await temporaryDirectory({ mode: 0o755 })
    const words = [
      '-f',
      '-qq',
      '-e',
      'trace=socket,execve',
      '-o',
      `${trace}/calls`,
      programFor('root'),
      '--',
      '/bin/true',
    ]
    const { exitCode } = await execa('strace', words, { cwd: trace, reject: false })
    expect(exitCode).toBe(0)
    const { stdout } = await execa('grep', ['-cE', 'execve\\(.*/net"', `${trace}/calls`], { reject: false })
    expect(stdout).toBe('0')
    const inet = await execa('grep', ['-c', 'socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC|SOCK_NONBLOCK', `${trace}/calls`])
    expect(inet.stdout).toBe('1')
  })
})
