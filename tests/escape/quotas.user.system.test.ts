/** A command's use of the quotas that the kernel counts for its caller, and of those that all users share. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { cliWords, environmentOf, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { becoming, callers, currentUser, PLAIN_ID, type User } from '../support/users.ts'

/** Takes what it gets, prints what that was, and keeps it until its stdin ends. */
const HOG = `
import ctypes, errno, fcntl, json, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result < 0: raise OSError(ctypes.get_errno(), '')
def count(take, most):
    for taken in range(most):
        try: take()
        except OSError as error: return [taken, errno.errorcode[error.errno]]
    return [most, '']
def answer(act):
    try: act()
    except OSError as error: return errno.errorcode[error.errno]
    return ''
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
class Value(ctypes.Union): _fields_ = [('number', ctypes.c_int), ('pointer', ctypes.c_void_p)]
queues = iter(range(100))
def queue():
    name = ('/quota%d.%d' % (os.getpid(), next(queues))).encode()
    check(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None))
    libc.mq_unlink(name)
read_only = os.open('/etc/passwd', os.O_RDONLY)
most = int(sys.argv[1])
print(json.dumps({
    'inotify': count(lambda: check(libc.inotify_init1(0)), most),
    'signals': count(lambda: check(libc.sigqueue(os.getpid(), 40, Value())), most * 10),
    'queues': count(queue, 20),
    'affinity': answer(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))),
    'lease': answer(lambda: fcntl.fcntl(read_only, fcntl.F_SETLEASE, fcntl.F_RDLCK)),
    'notify': answer(lambda: fcntl.fcntl(os.open('/etc', os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_MODIFY)),
    'low port': answer(lambda: socket.socket().bind(('127.0.0.1', 80))),
    'uevents': answer(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)),
    'generic': answer(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)),
    'aio': answer(lambda: check(libc.syscall({'x86_64': 206, 'aarch64': 0}[os.uname().machine], 1, ctypes.byref(ctypes.c_ulong(0))))),
}), flush=True)
sys.stdin.read()
`

async function hog(words: readonly string[], env: Readonly<Record<string, string | undefined>> = {}) {
  const [file = '', ...rest] = words
  const child = spawn(file, rest, {
    stdio: ['pipe', 'pipe', 'inherit'],
    cwd: '/',
    env: { PATH: process.env.PATH, ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'exit').then(([status]) => Promise.reject(new Error(`it ended with ${status}`)))
  ended.catch(() => undefined)
  const [line] = (await Promise.race([once(child.stdout, 'data'), ended])) as [Buffer]
  return { took: JSON.parse(line.toString()) as Record<string, unknown>, end: () => void child.stdin.end() }
}

const script = (most: number) => ['/usr/bin/python3', '-c', HOG, String(most)] as const
/** A user whom nothing else runs as. */
const as = (id: number) => ['setpriv', '--reuid', `${id}`, '--regid', `${id}`, '--clear-groups', '--'] as const

testWith(['root'], 'a program without walls takes all of its user: the control', async () => {
  const id = PLAIN_ID - 100 - (process.pid % 1000)
  const { took, end } = await hog([...as(id), ...script(100_000)])
  expect(took).toMatchObject({
    ...{ inotify: [expect.any(Number), 'EMFILE'], affinity: '', uevents: '', generic: '', aio: '' },
    notify: '',
  })
  // The kernel may give an instance back late: what counts is that the user has no ten.
  const next = await hog([...as(id), ...script(10)])
  expect(next.took).toMatchObject({ inotify: [expect.any(Number), 'EMFILE'], signals: [0, 'EAGAIN'] })
  next.end()
  end()
})

describeWith('userns', 'a command', () => {
  describe.each(callers())('of %s', (caller: User) => {
    test.each(['unshare', 'bwrap'])('leaves its caller the most of each quota (%s)', async (engine) => {
      const home = await temporaryDirectory({ owner: caller, mode: 0o755 })
      const words = cliWords(['--engine', engine, '--timeout', '60s', '--no-workspace', '--', ...script(100_000)], {
        as: caller,
      })
      const { took, end } = await hog(words, { ...environmentOf(caller), HOME: home })
      expect(took).toMatchObject({
        ...{ signals: [1024, 'EAGAIN'], queues: [2, 'EMFILE'], lease: 'EPERM', notify: 'EPERM' },
        ...{ uevents: 'EPROTONOSUPPORT', generic: 'EPROTONOSUPPORT', aio: 'ENOSYS' },
        // Its own network: nothing of the caller's.
        'low port': engine === 'unshare' ? '' : 'EACCES',
      })
      const next = await hog([...becoming(caller), ...script(10)])
      expect(next.took).toMatchObject({ inotify: [10, ''], signals: [100, ''], queues: [expect.any(Number), 'EMFILE'] })
      next.end()
      end()
    })

    test('keeps the processors that affinity gives it, whatever the filter', async () => {
      const home = await temporaryDirectory({ owner: caller, mode: 0o755 })
      const json = await runCli(
        ['--json', '--cpus', '1', '--seccomp', 'off', '--no-workspace', '--', 'taskset', '-p', '-c', '0-1023', '0'],
        {
          ...{ as: caller, cwd: home },
        },
      )
      const { limits, exitCode, stderr } = JSON.parse(json.stdout.toString()) as Record<string, never> & {
        limits: { cpus: { by: string } }
      }
      // The kernel's own quota leaves processors alone: a program may choose among them.
      if (limits.cpus.by !== 'affinity') return
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Operation not permitted')])
    })
  })

  describe.runIf(currentUser() === 'root')('of root with the HOME of a user', () => {
    test('does not obey the profile of that user', async () => {
      const home = await temporaryDirectory({ mode: 0o755 })
      const profiles = join(home, '.config/llm-do/profiles')
      mkdirSync(profiles, { recursive: true })
      const file = join(profiles, 'default.yaml')
      writeFileSync(file, 'sandbox: { extends: default, files: { zones: [{ source: /root, mode: rw }] } }\n')
      chownSync(file, PLAIN_ID, PLAIN_ID)
      const run = await execa(cliWords(['--', 'true'])[0] ?? '', ['--', 'true'], {
        cwd: '/',
        env: { PATH: process.env.PATH, HOME: home },
        extendEnv: false,
        reject: false,
      })
      expect(run).toMatchObject({
        exitCode: 125,
        stderr: expect.stringContaining(`it belongs to user ${PLAIN_ID}, expected root or yourself`),
      })
    })
  })
})
