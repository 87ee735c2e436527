/** Sandboxes that stay in the background: `run`, `logs`, `stop`, `ps`, and other commands in them by `exec --in`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { cliWords, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { descendantsOf, readOr, until } from '../support/processes.ts'
import { callers, type User } from '../support/users.ts'

const PATIENCE = { timeout: 20_000 }
/** Names are one user's, and other test files run beside this one. */
let count = 0
const newName = (): string => {
  count += 1
  return `test-${process.pid}-${count}`
}

interface Answer {
  readonly status: number | undefined
  readonly out: string
  readonly err: string
}

async function backgroundOf(as: User) {
  const cwd = await temporaryDirectory({ owner: as, mode: 0o755 })
  const llmDo = async (words: readonly string[], stdin?: string, env = {}): Promise<Answer> => {
    const { status, stdout, stderr } = await runCli(words, {
      ...{ program: 'llm-do', as, cwd, env },
      ...(stdin !== undefined && { stdin }),
    })
    return { status, out: stdout.toString(), err: stderr.toString() }
  }
  /** Started, and stopped with the test. */
  const start = async (...words: readonly string[]): Promise<string> => {
    const name = newName()
    onTestFinished(async () => void (await llmDo(['stop', name])))
    expect(await llmDo(['run', '--name', name, ...words])).toEqual({ status: 0, out: `${name}\n`, err: '' })
    return name
  }
  const inside = (name: string, script: string, stdin?: string, env = {}) =>
    llmDo(['exec', '--in', name, '--', 'sh', '-c', script], stdin, env)
  const listed = async (name: string) =>
    (JSON.parse((await llmDo(['ps', '--json'])).out) as { name?: string; id: string; pid: number }[]).find(
      (run) => run.name === name,
    )
  const ended = async (name: string) =>
    (await llmDo(['ps', '--ended', '--json'])).out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { name: string; state: string; result?: { reason: string; exitCode: number } })
      .find((one) => one.name === name)
  return { cwd, llmDo, start, inside, listed, ended }
}

/** Processes of this machine whose command line has that word. */
const processesWith = (word: string): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readOr(`/proc/${name}/cmdline`).includes(word))
    .map(Number)

describeWith('userns', 'a sandbox in the background', () => {
  describe.each(callers())('of %s', (as) => {
    test('is listed by its name, has a log of both streams, and is forgotten when it is stopped', async () => {
      const { llmDo, start, listed, ended } = await backgroundOf(as)
      const before = await takeSnapshot({ mark: newMark() })
      const name = await start('--', 'sh', '-c', 'echo one; echo two >&2; printf "\\377"; exec sleep 300')
      expect(await listed(name)).toMatchObject({ name, profile: 'default', command: ['sh', '-c', expect.any(String)] })
      await expect.poll(async () => (await llmDo(['logs', name, '--json'])).out, PATIENCE).toContain('base64')
      const lines = (await llmDo(['logs', name, '--json'])).out.trim().split('\n')
      expect(lines.map((line) => JSON.parse(line))).toContainEqual({
        ...{ time: expect.any(String), stream: 'stderr', text: 'two\n' },
      })
      expect((await llmDo(['logs', name])).out).toMatch(/^one\n/)
      expect(await llmDo(['logs', name])).toMatchObject({ status: 0, err: 'two\n' })
      expect(await llmDo(['run', '--name', name, '--', 'true'])).toMatchObject({
        status: 125,
        err: expect.stringContaining('SANDBOX_EXISTS'),
      })
      expect(await llmDo(['stop', name])).toEqual({ status: 0, out: '', err: '' })
      expect([await listed(name), await ended(name)]).toEqual([undefined, undefined])
      expect(await llmDo(['logs', name])).toMatchObject({ status: 125 })
      await expectNothingLeft({ before, mark: name })
    })

    test('that ends by itself keeps its result and its log', async () => {
      const { llmDo, start, ended } = await backgroundOf(as)
      const name = await start('--', 'sh', '-c', 'echo done; exit 3')
      expect((await llmDo(['logs', '-f', name])).out).toBe('done\n')
      await expect
        .poll(() => ended(name), PATIENCE)
        .toMatchObject({
          state: 'ended',
          result: { reason: 'exit', exitCode: 3, stdout: 'done\n' },
        })
      expect(await llmDo(['exec', '--in', name, '--', 'true'])).toMatchObject({
        status: 125,
        err: expect.stringContaining(`${name} has ended`),
      })
    })

    test('whose command cannot start says so, and leaves its name free', async () => {
      const { llmDo, ended } = await backgroundOf(as)
      const name = newName()
      expect(await llmDo(['run', '--name', name, '--', 'no-such-program'])).toMatchObject({
        status: 127,
        err: expect.stringContaining('no-such-program: not found in the sandbox'),
      })
      expect(await llmDo(['run', '--name', name, '--ro', '/no/such/place', '--', 'true'])).toMatchObject({
        status: 125,
      })
      expect(await ended(name)).toBeUndefined()
      for (const refused of ['--json', '--tty', '--plan', '--die-with-parent'])
        expect((await llmDo(['run', '--name', name, refused, '--', 'true'])).err).toContain(
          `${refused} is for a command`,
        )
      expect((await llmDo(['run', '--name', '../x', '--', 'true'])).err).toContain('is no name of a sandbox')
    })

    test('has its deadline and its limit of memory', async () => {
      const { start, ended } = await backgroundOf(as)
      const slow = await start('--timeout', '200ms', '--', 'sleep', '300')
      await expect.poll(() => ended(slow), PATIENCE).toMatchObject({ result: { reason: 'timeout' } })
      const large = await start('--memory', '64m', '--', 'sh', '-c', 'head -c 300m /dev/zero | tail -c 300m | wc -c')
      await expect.poll(() => ended(large), PATIENCE).toMatchObject({ result: { reason: 'memory' } })
    })

    test.each(['supervisor', 'launcher'])('leaves nothing when its %s is killed', async (which) => {
      const { start, listed, ended, llmDo } = await backgroundOf(as)
      const before = await takeSnapshot({ mark: newMark() })
      const mark = `sleep ${10_000 + count}.${process.pid}`
      const name = await start('--', ...mark.split(' '))
      const launcher = (await listed(name))?.pid ?? 0
      const supervisor = Number(/^PPid:\s*(\d+)$/m.exec(readOr(`/proc/${launcher}/status`))?.[1])
      expect(descendantsOf(launcher).length).toBeGreaterThan(0)
      process.kill(which === 'launcher' ? launcher : supervisor, 'SIGKILL')
      await expect.poll(() => ended(name), PATIENCE).toBeDefined()
      await expect.poll(() => processesWith(mark.split(' ')[1] ?? mark), PATIENCE).toEqual([])
      expect(await llmDo(['stop', name])).toMatchObject({ status: 0 })
      await llmDo(['prune'])
      await expectNothingLeft({ before, mark: name })
    })

    test('is ended by kill, by its name', async () => {
      const { llmDo, start, ended } = await backgroundOf(as)
      const name = await start('--', 'sleep', '300')
      expect(await llmDo(['kill', name])).toEqual({ status: 0, out: '', err: '' })
      await expect.poll(() => ended(name), PATIENCE).toMatchObject({ result: { reason: 'cancelled' } })
    })
  })
})

/** What a process says of its walls. */
const WALLS = `grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done; ulimit -a`

describeWith('userns', 'another command in it', () => {
  describe.each(callers())('of %s', (as) => {
    test('sees its files, its processes and its network, and not its secrets', async () => {
      const { cwd, start, inside } = await backgroundOf(as)
      const name = await start(
        ...['--rw', '.', '--env', 'WALL=own', '--'],
        ...['sh', '-c', 'echo first >/tmp/own; echo $$ >pid; exec sleep 300'],
      )
      await expect.poll(() => readOr(join(cwd, 'pid')), PATIENCE).not.toBe('')
      const script = 'cat /tmp/own; tr "\\0" " " </proc/$(cat pid)/cmdline; echo; echo "$WALL $CALLER"; pwd; cat'
      expect(await inside(name, script, 'given', { CALLER: 'secret' })).toEqual({
        status: 0,
        out: 'first\nsleep 300 \nown \n/workspace\ngiven',
        err: '',
      })
    })

    test.each(['bwrap', 'unshare'])('has the same walls, with %s', async (engine) => {
      const { cwd, start, inside, llmDo } = await backgroundOf(as)
      const secret = join(await temporaryDirectory({ owner: as, mode: 0o755 }), 'secret')
      writeFileSync(secret, 'secret', { mode: 0o644 })
      const name = await start('--engine', engine, '--', 'sh', '-c', `{ ${WALLS}; } 2>&1; exec sleep 300`)
      await expect.poll(async () => (await llmDo(['logs', name])).out, PATIENCE).toContain('uts:')
      const own = (await llmDo(['logs', name])).out
      expect(own).toMatch(/CapEff:\t0+\nCapBnd:\t0+\nCapAmb:\t0+\nNoNewPrivs:\t1\nSeccomp:\t2\n/)
      expect((await inside(name, `{ ${WALLS}; } 2>&1`)).out).toBe(own)
      const attempts = [
        `cat ${secret}`,
        'touch /usr/x',
        `ls ${cwd}/..`,
        'unshare -r true',
        'mount -t tmpfs none /tmp',
        'cat /proc/1/environ',
        'ls /proc/1/fd/',
        'head -c1 /proc/1/mem',
      ]
      for (const attempt of attempts) expect(await inside(name, attempt), attempt).toMatchObject({ out: '' })
      for (const attempt of attempts) expect((await inside(name, attempt)).status, attempt).not.toBe(0)
      // init takes no signal from inside; nor can its attendant be looked into, which has our descriptors.
      expect(
        (await inside(name, 'kill -KILL 1; kill -STOP 1; ls /proc/$PPID/fd; kill -TERM $PPID; echo lives')).out,
      ).toBe('lives\n')
      expect((await inside(name, 'ls /proc/self/fd | wc -l')).out.trim()).toBe('4')
    })

    test('ends with its own status, and in words of its own where it cannot start', async () => {
      const { llmDo, start, inside } = await backgroundOf(as)
      const name = await start('--', 'sleep', '300')
      expect(await inside(name, 'echo out; echo err >&2; exit 7')).toEqual({ status: 7, out: 'out\n', err: 'err\n' })
      expect((await inside(name, 'kill -SEGV $$')).status).toBe(139)
      expect(await llmDo(['exec', '--in', name, '--', 'no-such-program'])).toEqual({
        status: 127,
        out: '',
        err: 'llm-do: no-such-program: not found in the sandbox\n',
      })
      expect((await llmDo(['exec', '--in', name, '--', '/usr'])).status).toBe(126)
      for (const refused of ['--rw=/tmp', '--net=host', '--memory=1g', '--profile=strict'])
        expect((await llmDo(['exec', '--in', name, refused, '--', 'true'])).err).toContain(
          `${refused.split('=')[0]} with --in: the walls of ${name} were decided`,
        )
      expect((await llmDo(['exec', '--in', 'no-such-sandbox', '--', 'true'])).err).toContain('SANDBOX_NOT_FOUND')
      expect((await llmDo(['ps', '--json'])).out).toContain(name)
    })

    test('ends with its caller, whatever it has started, and the sandbox lives on', async () => {
      const { cwd, start, listed } = await backgroundOf(as)
      const name = await start('--', 'sleep', '300')
      const [one, two] = [`2${process.pid}.1`, `2${process.pid}.2`]
      const [file = '', ...words] = cliWords(
        ['exec', '--in', name, '--', 'sh', '-c', `(setsid sleep ${one} &); exec sleep ${two}`],
        { as, program: 'llm-do' },
      )
      const caller = spawn(file, words, { cwd, env: { PATH: process.env.PATH, HOME: cwd }, stdio: 'ignore' })
      const sleepers = () => [...processesWith(`sleep\0${one}`), ...processesWith(`sleep\0${two}`)]
      await until('both processes', () => (sleepers().length >= 2 ? sleepers() : undefined))
      caller.kill('SIGKILL')
      await expect.poll(sleepers, PATIENCE).toEqual([])
      expect(await listed(name)).toBeDefined()
    })

    test('leaves nothing of a fork bomb, and the sandbox lives on', async () => {
      const { start, inside } = await backgroundOf(as)
      const name = await start('--pids', '100', '--', 'sleep', '300')
      // Full when the command ends: what is killed then makes room for the rest of it.
      const bomb = 'setsid perl -e "while (1) { fork }" & until set -- /proc/[0-9]*; [ $# -ge 80 ]; do :; done; exit 7'
      expect((await inside(name, bomb)).status).toBe(7)
      expect((await inside(name, 'cat /proc/[0-9]*/comm')).out).not.toContain('perl')
    })

    test('gets a signal of its caller, and ends with the sandbox', async () => {
      const { cwd, start, llmDo } = await backgroundOf(as)
      const name = await start('--', 'sleep', '300')
      const call = (...command: readonly string[]) => {
        const [file = '', ...words] = cliWords(['exec', '--in', name, '--', ...command], { as, program: 'llm-do' })
        return spawn(file, words, {
          cwd,
          env: { PATH: process.env.PATH, HOME: cwd },
          stdio: ['ignore', 'pipe', 'ignore'],
        })
      }
      const signalled = call('sh', '-c', 'echo ready; exec sleep 300')
      await once(signalled.stdout, 'data')
      const over = once(signalled, 'exit')
      signalled.kill('SIGINT')
      // Also where a slow machine comes to the kill before the command has ended of it.
      expect(await over).toEqual([130, null])
      const waiting = call('sh', '-c', 'echo ready; sleep 300')
      await once(waiting.stdout, 'data')
      const end = once(waiting, 'exit')
      expect((await llmDo(['stop', name])).status).toBe(0)
      expect((await end)[0]).toBeGreaterThan(128)
    })

    test('has a terminal of the sandbox where one is asked for', async () => {
      const { start, llmDo } = await backgroundOf(as)
      const name = await start('--', 'sleep', '300')
      const { status, out } = await llmDo(['exec', '--in', name, '--tty', '--', 'sh', '-c', 'tty; exit 4'])
      expect({ status, out }).toEqual({ status: 4, out: '/dev/pts/0\r\n' })
    })

    test('reaches a server of the sandbox, and none of the host', async () => {
      const { start, inside } = await backgroundOf(as)
      const serve = 'import http.server as h;h.test(h.SimpleHTTPRequestHandler,port=8123,bind="127.0.0.1")'
      const name = await start('--net', 'none', '--', 'python3', '-c', serve)
      const get = 'python3 -c "import urllib.request as u;print(u.urlopen(\'http://127.0.0.1:8123/\').status)"'
      await expect.poll(async () => (await inside(name, get)).out, PATIENCE).toBe('200\n')
      expect(readlinkSync('/proc/self/ns/net')).not.toBe((await inside(name, 'readlink /proc/self/ns/net')).out.trim())
      expect((await inside(name, 'cat /proc/net/dev')).out).not.toMatch(/eth|wlan|enp/)
    })
  })
})
