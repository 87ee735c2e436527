/** A standard stream that is a file gives a command no more than its bytes: nothing else of the file can be read, changed or held. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { backgroundOf } from '../run/background.ts'
import { cliWords, environmentOf } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { childrenOf, descendantsOf, readOr, until } from '../support/processes.ts'
import { becoming, callers, PLAIN_ID, type User } from '../support/users.ts'

/** Everything that a descriptor, or the file that it names, can be asked for; each on its own. Then it waits, with what it holds. */
const ATTACK = `
import fcntl, os, sys
fd = int(sys.argv[1]); path = '/proc/self/fd/%d' % fd
def read_again(): 
    got = os.pread(os.open(path, os.O_RDWR), 6, 0)
    if got == b'SECRET': os.write(2, b'read again\\n')
def write_again(): os.pwrite(os.open(path, os.O_RDWR), b'HACKED', 0)
def empty(): os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
def overwrite():
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    os.pwrite(fd, b'HACKED', 0)
def cut(): os.ftruncate(fd, 1)
def mode(): os.fchmod(fd, 0o777)
def times(): os.utime(fd, (1, 1))
def attribute(): os.setxattr(fd, 'user.hacked', b'1')
def lock(): fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
for attempt in (lock, read_again, write_again, overwrite, cut, empty, mode, times, attribute):
    try: attempt()
    except OSError: pass
os.write(2, b'done\\n')
import time; time.sleep(60)
`

const CONTENT = `SECRET ${'x'.repeat(100)}\n`

async function fileOf(as: User) {
  const directory = await temporaryDirectory({ owner: as, mode: 0o755 })
  const path = join(directory, 'file')
  writeFileSync(path, CONTENT, { mode: 0o640 })
  if (as === 'plain' && process.getuid?.() === 0) chownSync(path, PLAIN_ID, PLAIN_ID)
  return { directory, path, home: await temporaryDirectory({ owner: as, mode: 0o755 }) }
}

const begin = (
  words: readonly string[],
  as: User,
  { directory, home }: { readonly directory: string; readonly home: string },
  stdio: readonly (number | 'pipe' | 'ignore')[],
): ChildProcess => {
  const [file = '', ...rest] = words
  const child = spawn(file, rest, { cwd: directory, env: { ...environmentOf(as), HOME: home }, stdio: [...stdio] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** Changes of the file, in words. */
async function attack(as: User, which: 'stdin' | 'stdout', words: (script: readonly string[]) => readonly string[]) {
  const { directory, path, home } = await fileOf(as)
  const before = statSync(path)
  const fd = openSync(path, which === 'stdin' ? 'r' : 'a')
  const script = ['python3', '-c', ATTACK, which === 'stdin' ? '0' : '1']
  const child = begin(
    words(script),
    as,
    { directory, home },
    which === 'stdin' ? [fd, 'ignore', 'pipe'] : ['ignore', fd, 'pipe'],
  )
  const said: Buffer[] = []
  child.stderr?.on('data', (bytes: Buffer) => said.push(bytes))
  const text = () => Buffer.concat(said).toString()
  await until('the attack', () => (text().includes('done') || child.exitCode !== null ? true : undefined))
  const isHeld = (await execa('flock', ['-n', path, 'true'], { reject: false })).exitCode !== 0
  const after = statSync(path)
  const attributes = (await execa('getfattr', ['-m', '.', '--', path], { reject: false })).stdout
  child.kill('SIGTERM')
  closeSync(fd)
  const done = {
    'read again': which === 'stdout' && text().includes('read again'),
    content: readFileSync(path, 'latin1') !== CONTENT,
    mode: after.mode !== before.mode,
    times: after.atimeMs === 1000,
    attribute: attributes.includes('hacked'),
    lock: isHeld,
  }
  expect(text()).toContain('done')
  return Object.entries(done)
    .filter(([, isDone]) => isDone)
    .map(([name]) => name)
}

const EXEC = ['--timeout', '60s']

/** A run of these words in a shell's script. */
const callOf = (as: User, ...command: readonly string[]): string =>
  cliWords([...EXEC, '--', ...command], { as })
    .map((word) => `'${word}'`)
    .join(' ')

/** A script by the user's shell, without a sandbox. */
const byShell = (script: string, as: User, { directory, home }: { directory: string; home: string }) =>
  execa('sh', ['-c', script], {
    cwd: directory,
    env: { ...environmentOf(as), HOME: home },
    extendEnv: false,
    reject: false,
  })

/** Where a descriptor leads; nowhere when the process has ended. */
function targetOf(pid: number, fd: number): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`)
  } catch {
    return ''
  }
}

/** The process that carries the command's output to the file, and what else the runner has started. */
async function relayTo(path: string, runner: number) {
  const relay = await until('the relay', () =>
    descendantsOf(runner).find((pid) => targetOf(pid, 0).startsWith('pipe:') && targetOf(pid, 1) === path),
  )
  const launch = Number(/^PPid:\s*(\d+)$/m.exec(readOr(`/proc/${relay}/status`))?.[1])
  return { relay, others: childrenOf(launch).filter((pid) => pid !== relay) }
}

/** A command that has ended, and the stopped process that has its last words for the file. */
async function endedBeforeItsWords(as: User, options: readonly string[]) {
  const { directory, path, home } = await fileOf(as)
  const words = cliWords([...EXEC, ...options, '--', 'sh', '-c', 'echo here; read go; echo last'], { as })
  const fd = openSync(path, 'a')
  const child = begin(words, as, { directory, home }, ['pipe', fd, 'ignore'])
  const ended = once(child, 'exit')
  await until('the command', () => readFileSync(path, 'latin1').includes('here') || undefined)
  const begun = performance.now()
  const { relay, others } = await relayTo(path, child.pid ?? 0)
  process.kill(relay, 'SIGSTOP')
  child.stdin?.end('\n')
  await until('the end', () => !others.some((pid) => existsSync(`/proc/${pid}`)) || undefined)
  const expectWhole = async () => {
    expect(await ended).toEqual([0, null])
    closeSync(fd)
    expect(readFileSync(path, 'latin1')).toBe(`${CONTENT}here\nlast\n`)
  }
  return { relay, begun, expectWhole }
}

describeWith('userns', 'a stream that is a file', () => {
  describe.each(callers())('of %s', (as) => {
    test('cannot be changed, held or read; a program without walls does all of it', async () => {
      const bare = (script: readonly string[]) => [...becoming(as), ...script]
      expect(await attack(as, 'stdin', bare)).toEqual(expect.arrayContaining(['content', 'mode', 'times', 'lock']))
      expect(await attack(as, 'stdout', bare)).toEqual(
        expect.arrayContaining(['read again', 'content', 'mode', 'times', 'lock']),
      )
      const cells = [
        ['--engine', 'unshare'],
        ['--backend', 'no-namespaces', '--workdir', '/'],
      ]
      for (const options of cells)
        for (const which of ['stdin', 'stdout'] as const) {
          const words = (script: readonly string[]) => cliWords([...EXEC, ...options, '--', ...script], { as })
          expect([options, which, await attack(as, which, words)]).toEqual([options, which, []])
        }
    })

    test('nor by `exec --in`, nor by another process there', async () => {
      const { start } = await backgroundOf(as)
      const name = await start('--', 'sleep', '60')
      const words = (script: readonly string[]) =>
        cliWords(['exec', '--in', name, '--', ...script], { as, program: 'llm-do' })
      for (const which of ['stdin', 'stdout'] as const) expect(await attack(as, which, words)).toEqual([])
    })

    test('is read from the position of its caller, and left where the command ended', async () => {
      const place = await fileOf(as)
      writeFileSync(place.path, 'one\ntwo\nthree\nfour\n')
      const call = callOf(as, 'head', '-n1')
      const script = `(read a; ${call}; read b; echo $a $b) <'${place.path}'; (${call}; ${call}) <'${place.path}'`
      const { stdout } = await byShell(script, as, place)
      expect(stdout).toBe('two\none three\none\ntwo')
    })

    test('gets everything in order, and is as long as the pipes of both streams; a long stdin is whole', async () => {
      const { directory, path, home } = await fileOf(as)
      const long = join(directory, 'long')
      writeFileSync(long, 'x'.repeat(3_000_001))
      chmodSync(long, 0o644)
      const inner =
        'cat | wc -c; i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; echo again >/dev/stdout'
      await byShell(`${callOf(as, 'sh', '-c', inner)} <'${long}' >>'${path}' 2>&1`, as, { directory, home })
      const lines = Array.from({ length: 200 }, (_, index) => `out ${index}\nerr ${index}\n`).join('')
      expect(readFileSync(path, 'latin1')).toBe(`${CONTENT}3000001\n${lines}again\n`)
    })

    // A slow file, where nothing else is slow: what carries the bytes is stopped until the sandbox has ended.
    test.each(['unshare', 'no-namespaces'])(
      'gets the last words of a command that ended before them: %s',
      async (kind) => {
        const options = kind === 'unshare' ? ['--engine', kind] : ['--backend', kind, '--workdir', '/']
        const { relay, expectWhole } = await endedBeforeItsWords(as, options)
        process.kill(relay, 'SIGCONT')
        await expectWhole()
      },
    )

    // The runner is kept waiting from the end of the sandbox to behind the deadline, and the bytes are delivered meanwhile.
    test('gets the last words before a deadline that the runner learns of too late', async () => {
      const { relay, begun, expectWhole } = await endedBeforeItsWords(as, ['--timeout', '3s'])
      const stateOf = (pid: number) => /\) (\w) (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
      const runner = Number(stateOf(relay)[2])
      process.kill(runner, 'SIGSTOP')
      process.kill(relay, 'SIGCONT')
      await until('the last words', () => stateOf(relay)[1] === 'Z' || undefined)
      await until('the deadline', () => performance.now() > begun + 3_100 || undefined)
      process.kill(runner, 'SIGCONT')
      await expectWhole()
    })

    test('that takes no more makes the run fail, whatever the command says', async () => {
      const place = await fileOf(as)
      const call = callOf(as, 'sh', '-c', 'head -c 8000000 /dev/zero; exit 0')
      expect(await byShell(`ulimit -f 8000; ${call} >'${place.path}'`, as, place)).toMatchObject({
        exitCode: 137,
        stderr: expect.stringContaining('stdout: the file that it leads to fails (EFBIG)'),
      })
    })
  })
})
