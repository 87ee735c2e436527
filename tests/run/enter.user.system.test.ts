/** Other commands in a sandbox of the background, by `exec --in`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { cliWords, environmentOf } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { processesWith, readOr, until } from '../support/processes.ts'
import { callers, currentUser } from '../support/users.ts'
import { backgroundOf } from './background.ts'

/** The walls of a process, as it sees them. */
const WALLS = `grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done; ulimit -a; echo all`

describeWith('userns', 'another command in it', () => {
  describe.each(callers())('of %s', (as) => {
    test('sees its files, its processes and its network, and not its secrets', async () => {
      const { cwd, start, inside } = await backgroundOf(as)
      const name = await start(
        ...['--rw', '.', '--env', 'WALL=own', '--'],
        ...['sh', '-c', 'echo first >/tmp/own; echo $$ >pid; exec sleep 300'],
      )
      await expect.poll(() => readOr(join(cwd, 'pid'))).not.toBe('')
      const script = 'cat /tmp/own; tr "\\0" " " </proc/$(cat pid)/cmdline; echo; echo "$WALL $CALLER"; pwd; cat'
      expect(await inside(name, script, 'given', { CALLER: 'secret' })).toEqual({
        status: 0,
        out: 'first\nsleep 300 \nown \n/workspace\ngiven',
        err: '',
      })
    })

    test('has the same walls', async () => {
      const { cwd, start, inside, llmDo } = await backgroundOf(as)
      const secret = join(await temporaryDirectory({ owner: as, mode: 0o755 }), 'secret')
      writeFileSync(secret, 'secret', { mode: 0o644 })
      const name = await start('--', 'sh', '-c', `{ ${WALLS}; } 2>&1; exec sleep 300`)
      await expect.poll(async () => (await llmDo(['logs', name])).out).toContain('\nall\n')
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
      const each = attempts.map((attempt) => `(${attempt}) && echo "done: ${attempt}"`).join('; ')
      expect((await inside(name, `${each}; echo tried`)).out).toBe('tried\n')
      // init takes no signal from inside; nor can its attendant be looked into, which has our descriptors.
      expect(
        (await inside(name, 'kill -KILL 1; kill -STOP 1; ls /proc/$PPID/fd; kill -TERM $PPID; echo lives')).out,
      ).toBe('lives\n')
      expect((await inside(name, 'ls /proc/self/fd | wc -l')).out.trim()).toBe('4')
    })

    test('ends with its caller, whatever it has started, and the sandbox lives on', async () => {
      const { cwd, start, listed } = await backgroundOf(as)
      const name = await start('--', 'sleep', '300')
      const [one, two] = [`2${process.pid}.1`, `2${process.pid}.2`]
      const [file = '', ...words] = cliWords(
        ['exec', '--in', name, '--', 'sh', '-c', `(setsid sleep ${one} &); exec sleep ${two}`],
        { as, program: 'llm-do' },
      )
      const caller = spawn(file, words, { cwd, env: { ...environmentOf(as), HOME: cwd }, stdio: 'ignore' })
      const sleepers = () => [...processesWith(`sleep\0${one}`), ...processesWith(`sleep\0${two}`)]
      await until('both processes', () => (sleepers().length >= 2 ? sleepers() : undefined))
      caller.kill('SIGKILL')
      await expect.poll(sleepers).toEqual([])
      expect(await listed(name)).toBeDefined()
    })
  })
})

describeWith(['userns', 'one-user'], 'a command in a sandbox of the background', () => {
  const as = currentUser()

  test('ends with its own status, and in words of its own where it cannot start', async () => {
    const { llmDo, start, enter, inside } = await backgroundOf(as)
    const name = await start('--', 'sleep', '300')
    expect(await inside(name, 'echo out; echo err >&2; exit 7')).toEqual({ status: 7, out: 'out\n', err: 'err\n' })
    expect((await inside(name, 'kill -SEGV $$')).status).toBe(139)
    expect(await enter(name, ['--', 'no-such-program'])).toMatchObject({
      status: 127,
      out: '',
      err: expect.stringContaining('llm-do: error COMMAND_NOT_FOUND: no-such-program: not found in the sandbox\n'),
    })
    expect((await enter(name, ['--', '/usr'])).status).toBe(126)
    const terminal = await enter(name, ['--tty', '--', 'sh', '-c', 'tty; exit 4'])
    expect(terminal).toMatchObject({ status: 4, out: '/dev/pts/0\r\n' })
    for (const refused of ['--rw=/tmp', '--net=host', '--memory=1g', '--profile=strict'])
      expect((await enter(name, [refused, '--', 'true'])).err).toContain(
        `${refused.split('=')[0]} with --in: the walls of ${name} were decided`,
      )
    for (const variable of ['LLM_DO_EXEC_WORKER', 'LLM_DO_EXEC_AUDIT']) {
      const unruled = await enter(name, ['--', 'echo', 'ran'], '', { [variable]: 'x' })
      expect([unruled.status, unruled.out, unruled.err.split('\n')[0]]).toEqual([
        125,
        '',
        `llm-do: error USAGE: ${variable}: llm-do exec --in does not support it.`,
      ])
    }
    expect((await enter(`${name}x`, ['--', 'true'])).err).toContain(
      `SANDBOX_NOT_FOUND: no sandbox is called ${name}x. Did you mean "${name}"?`,
    )
    expect((await llmDo(['ps', '--json'])).out).toContain(name)
  })

  test('takes variables, a directory and a time of its own, by its name and by the ID of its run', async () => {
    const { start, enter, inside, listed } = await backgroundOf(as)
    const name = await start('--env', 'OWN=run', '--env', 'GIVEN=run', '--', 'sleep', '300')
    const id = (await listed(name))?.id ?? ''
    const script = 'echo $OWN $GIVEN $CALLER $PWD $(pwd); setsid sleep 300 & exec sleep 300'
    const options = '--env GIVEN=no --env=GIVEN=here --env CALLER --workdir /tmp --timeout 500ms'.split(' ')
    // By the client, and by Node, which finds the name.
    for (const word of [name, id.slice(0, 12)]) {
      expect(await enter(word, [...options, '--', 'sh', '-c', script], '', { CALLER: 'caller' })).toEqual({
        status: 124,
        out: 'run here caller /tmp /tmp\n',
        err: 'llm-do: stopped after 500ms (--timeout)\nllm-do: hint: raise --timeout\n',
      })
    }
    // Nothing of them is left, and the sandbox lives on.
    expect((await inside(name, 'cat /proc/[0-9]*/comm')).out).not.toMatch(/sleep[\s\S]*sleep/)
    expect(await enter(name, ['--workdir', '/none', '--', 'true'])).toMatchObject({
      status: 125,
      err: `llm-do: error SETUP_FAILED: true: /none: No such file or directory\nllm-do: hint: llm-do exec --in ${name} --workdir / -- ls -ld '/none'\n`,
    })
    expect((await enter(name, ['--workdir', 'none', '--', 'true'])).err).toContain('--workdir: expected an absolute')
  })

  test('takes the streams of an odd caller, and refuses a directory', async () => {
    const { cwd, llmDo, start } = await backgroundOf(as)
    const name = await start('--', 'sleep', '300')
    const call = (shell: string) => {
      const words = cliWords(['exec', '--in', name, '--', 'sh', '-c', 'cat; echo out; exit 5'], {
        as,
        program: 'llm-do',
      })
      return execa('sh', ['-c', shell, 'sh', ...words], { cwd, env: environmentOf(as), reject: false })
    }
    expect(await call('trap "" CHLD; exec "$@" <&- >out')).toMatchObject({ exitCode: 5, stderr: '' })
    expect(readOr(join(cwd, 'out'))).toBe('out\n')
    expect((await call('exec "$@" <&- >&- 2>&-')).exitCode).toBe(5)
    expect(await call('ulimit -f 0; exec "$@"')).toMatchObject({
      ...{ exitCode: 125, stderr: 'llm-do: exec-in: File too large' },
    })
    expect(await call('exec "$@" </')).toMatchObject({
      exitCode: 125,
      stderr: expect.stringMatching(/stdin: expected a file/),
    })
    expect((await llmDo(['ps', '--json'])).out).toContain(name)
  })

  test('has a result in JSON, in each form', async () => {
    const { start, enter } = await backgroundOf(as)
    const name = await start('--', 'sleep', '300')
    const json = async (option: string, script: string) => {
      const { status, out } = await enter(name, [option, '--timeout', '10s', '--', 'sh', '-c', script], '')
      return { status, result: JSON.parse(out) as Record<string, unknown> }
    }
    expect(await json('--json', 'echo out; echo err >&2; exit 7')).toMatchObject({
      status: 7,
      result: { ok: false, reason: 'exit', exitCode: 7, stdout: 'out\n', stderr: 'err\n', sandbox: name, usage: {} },
    })
    expect(await json('--json=shell', 'printf "\\377"')).toEqual({
      status: 0,
      result: { stdout: '/w==', stderr: '', exit_code: 0, truncated: false, encoding: 'base64' },
    })
    // The middle is dropped, and no character with it.
    const long = await json('--json', 'printf éa; head -c 2097152 /dev/zero | tr "\\0" x; printf aé')
    const { stdout, truncated } = long.result as { stdout: string; truncated: { stdout: number } }
    expect([stdout.slice(0, 3), stdout.slice(-3)]).toEqual(['éax', 'xaé'])
    expect(Buffer.byteLength(stdout) + truncated.stdout).toBe(2_097_152 + 6)
    expect(await json('--json', 'kill -SYS $$')).toMatchObject({
      status: 159,
      result: { reason: 'seccomp', signal: 'SIGSYS', message: 'killed by the system call filter' },
    })
    expect((await enter(name, ['--json', '--tty', '--', 'true'], '')).out).toContain('--json with --tty')
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
    const { cwd, start, llmDo, listed } = await backgroundOf(as)
    const name = await start('--', 'sleep', '300')
    const call = (sandbox: string, ...command: readonly string[]) => {
      const [file = '', ...words] = cliWords(['exec', '--in', sandbox, '--', ...command], { as, program: 'llm-do' })
      return spawn(file, words, {
        cwd,
        env: { ...environmentOf(as), HOME: cwd },
        stdio: ['ignore', 'pipe', 'ignore'],
      })
    }
    const ended = async (sandbox: string, signal: NodeJS.Signals, script: string) => {
      const signalled = call(sandbox, 'sh', '-c', script)
      await once(signalled.stdout, 'data')
      const over = once(signalled, 'exit')
      signalled.kill(signal)
      return await over
    }
    const id = (await listed(name))?.id ?? ''
    // Also where a slow machine comes to the kill before the command has ended of it. By its ID Node has found it.
    expect(await ended(name, 'SIGINT', 'echo ready; exec sleep 300')).toEqual([null, 'SIGINT'])
    expect(await ended(id, 'SIGTERM', 'echo ready; exec sleep 300')).toEqual([null, 'SIGTERM'])
    expect(await ended(name, 'SIGTERM', 'trap "exit 9" TERM; echo ready; while :; do sleep 0.01; done')).toEqual([
      9,
      null,
    ])
    const waiting = call(name, 'sh', '-c', 'echo ready; sleep 300')
    await once(waiting.stdout, 'data')
    const end = once(waiting, 'exit')
    expect((await llmDo(['stop', name])).status).toBe(0)
    expect((await end)[0]).toBeGreaterThan(128)
  })

  test('ends the sandbox where it kills the process between it and init, so nothing that it started lives on', async () => {
    const { start, inside, ended } = await backgroundOf(as)
    const name = await start('--', 'sleep', '300')
    const nap = `300.${process.pid}`
    expect(await inside(name, `(setsid sleep ${nap} &); kill -KILL $PPID; sleep 300`)).toMatchObject({ status: 137 })
    await expect.poll(() => processesWith(`sleep\0${nap}`)).toEqual([])
    await expect.poll(async () => (await ended(name))?.result?.reason).toBe('lost')
  })

  test('reaches a server of the sandbox, and none of the host', async () => {
    const { start, inside } = await backgroundOf(as)
    const serve = 'import http.server as h;h.test(h.SimpleHTTPRequestHandler,port=8123,bind="127.0.0.1")'
    const name = await start('--net', 'none', '--', 'python3', '-c', serve)
    const get = 'python3 -c "import urllib.request as u;print(u.urlopen(\'http://127.0.0.1:8123/\').status)"'
    await expect.poll(async () => (await inside(name, get)).out).toBe('200\n')
    expect(readlinkSync('/proc/self/ns/net')).not.toBe((await inside(name, 'readlink /proc/self/ns/net')).out.trim())
    expect((await inside(name, 'cat /proc/net/dev')).out).not.toMatch(/eth|wlan|enp/)
  })
})
