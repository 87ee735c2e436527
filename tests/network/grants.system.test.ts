/** Hosts that the owner of a run allows while it runs, and connections as they happen. Each wall with its control. */
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { type CliResult, cliWords, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/processes.ts'
import { becoming, type User } from '../support/users.ts'
import { eachWay, PYTHON } from './ways.ts'
import { openWorld, WORLD, type World } from './world.ts'

let world: World

interface Caller {
  readonly as: User
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** A user with a runtime directory, without which no socket would be private. */
async function caller(as: User): Promise<Caller> {
  const cwd = await temporaryDirectory({ owner: as, mode: 0o755 })
  if (as === 'root') return { as, cwd, env: {} }
  const runtime = await temporaryDirectory({ owner: as, mode: 0o700 })
  return { as, cwd, env: { XDG_RUNTIME_DIR: runtime } }
}

const call = (by: Caller, ...words: readonly string[]): Promise<CliResult> =>
  runCli(words, { ...by, program: 'llm-do', through: world.through })

/** A sandbox in the background, which is gone with the test. */
async function started(by: Caller, name: string, ...words: readonly string[]): Promise<void> {
  const { status, stderr } = await call(by, 'run', '--name', name, ...words, '--', 'sleep', '600')
  expect([status, stderr.toString()]).toEqual([0, ''])
  onTestFinished(async () => void (await call(by, 'stop', name)))
}

/** The answer that curl gets inside, or its exit status. */
async function fetched(by: Caller, name: string, url: string): Promise<string> {
  const { stdout, status } = await call(by, 'exec', '--in', name, '--', 'curl', '-sS', '--max-time', '20', url)
  return status === 0 ? stdout.toString().trim() : `curl ${status}`
}

const allowing = async (by: Caller, ...words: readonly string[]): Promise<readonly [number | undefined, string]> => {
  const { status, stderr } = await call(by, 'allow', ...words)
  return [status, stderr.toString()]
}

const SAYS = (host: string) => expect.stringMatching(`^host=${host} from=`)
const [NO_HOST, NOT_CONNECTED] = ['curl 6', 'curl 7']
/** At the connection, or while it sends or reads: the reset and curl are at work at the same time. */
const RESET = expect.stringMatching(/^curl (7|52|55|56)$/)

const sockets = ({ env }: Caller): string => join(env['XDG_RUNTIME_DIR'] ?? '/run', 'llm-do/runs')

/** Says one line on the socket of a run, and prints what comes back; `closed` where that is nothing. */
const SPEAK = `
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode() + b'\\n'); print(s.recv(999).decode().strip() or 'closed')
except (ConnectionResetError, BrokenPipeError): print('closed')
except OSError as error: print(type(error).__name__)`
const ALLOW_OTHER = 'allow\tother.test\t80\tother.test:80'

async function speak(as: User, socket: string, line: string): Promise<string> {
  const [file = '', ...words] = [...becoming(as), PYTHON, '-c', SPEAK, socket, line]
  return (await execa(file, words)).stdout
}

interface Asker {
  /** The answer to its first word. */
  readonly first: Promise<string>
  readonly say: (...fields: readonly string[]) => void
  readonly on: (question: (question: readonly [host: string, port: string]) => void) => void
  readonly close: () => void
}

/** One that answers questions of a run. */
async function answering(path: string): Promise<Asker> {
  const socket = createConnection({ path })
  const lines = createInterface({ input: socket })
  const say = (...fields: readonly string[]): void => void socket.write(`${fields.join('\t')}\n`)
  const first = new Promise<string>((resolve) => lines.once('line', resolve))
  say('ask')
  await first
  return {
    first,
    say,
    on: (hear) =>
      void lines.on('line', (line) => {
        const [kind, host = '', port = ''] = line.split('\t')
        if (kind === 'question') hear([host, port])
      }),
    close: () => void socket.destroy(),
  }
}

const TERMINAL = join(import.meta.dirname, '../programs/terminal.py')

interface Step {
  readonly until: string
  readonly type: string
}

describeWith('root', 'hosts that are allowed while a sandbox runs', () => {
  beforeAll(async () => {
    world = await openWorld({
      'api.test': [[WORLD]],
      'other.test': [[WORLD]],
      'old.test': [[WORLD]],
      'a.wild.test': [[WORLD]],
      'private.test': [['10.1.2.3']],
      'loop.test': [['127.0.0.1']],
    })
  })
  afterAll(() => world?.close())

  eachWay('a host is reached from then on, by the judgement of the start, and the result says so', async (way) => {
    const by = await caller(way.as)
    const words = ['--engine', way.engine, '--allow-host', 'api.test:80', '--deny-host', 'old.test']
    await started(by, 'growing', '--allow-later', ...words)
    const reach = (url: string) => fetched(by, 'growing', url)
    expect(await reach('http://api.test/say')).toEqual(SAYS('api.test'))
    expect(await reach('http://other.test/say')).toBe(NO_HOST)
    expect(await reach('http://a.wild.test:8080/say')).toBe(NO_HOST)
    expect(await reach('http://api.test:8080/say')).toEqual(RESET)
    const asked = (await world.questions()).length

    const hosts = ['other.test:80', 'api.test:8080', '*.wild.test:8080', 'private.test', 'loop.test']
    expect((await allowing(by, 'growing', ...hosts))[0]).toBe(0)
    expect(await reach('http://other.test/say')).toEqual(SAYS('other.test'))
    expect(await reach('http://api.test:8080/say')).toEqual(SAYS('api.test:8080'))
    expect(await reach('http://a.wild.test:8080/say')).toEqual(SAYS('a.wild.test:8080'))
    expect(await reach('http://other.test:8080/say')).toEqual(RESET)
    expect((await world.questions()).length).toBeGreaterThan(asked)

    // A private address stays closed until it is listed itself.
    expect([await reach('http://private.test/say'), await reach('http://loop.test/say')]).toEqual([NO_HOST, NO_HOST])
    expect(await allowing(by, 'growing', '10.0.0.0/8')).toEqual([0, expect.stringContaining('names may lead to')])
    expect(await reach('http://private.test/say')).toEqual(SAYS('private.test'))
    expect(await reach('http://10.1.2.3/say')).toBe(NOT_CONNECTED)

    const refused = [
      ['old.test', 'denies'],
      ['@npm', 'looked up'],
      ['a b', 'expected'],
      ['*', 'expected'],
      ['localhost', 'expected'],
      ['0.0.0.0/0', 'own'],
    ] as const
    for (const [host, why] of refused)
      expect(await allowing(by, 'growing', host)).toEqual([125, expect.stringContaining(why)])
    expect(await reach('http://old.test/say')).toBe(NO_HOST)

    await call(by, 'kill', 'growing')
    const grantedOfEnded = async () => {
      const lines = (await call(by, 'ps', '--ended', '--json')).stdout.toString().split('\n').filter(Boolean)
      const all = lines.map((line) => JSON.parse(line) as { readonly name: string; readonly result: Result })
      const ended = all.find(({ name }) => name === 'growing')
      return ended?.result.network?.filter(({ verdict }) => verdict === 'granted').map(({ rule }) => rule)
    }
    // The attendant of the run writes the result when the run is gone.
    await expect.poll(grantedOfEnded).toEqual([...hosts, '10.0.0.0/8'])
  })

  eachWay('only its owner speaks to a run: the kernel says who it is, and the directory is closed', async (way) => {
    const [owner, other] = [await caller(way.as), await caller(way.as === 'root' ? 'plain' : 'root')]
    await started(owner, 'mine', '--engine', way.engine, '--allow-later')
    expect(await allowing(other, 'mine', 'other.test')).toEqual([125, expect.stringContaining('RUN_NOT_FOUND')])
    const [name = ''] = readdirSync(sockets(owner)).filter((file) => file.endsWith('.net'))
    const socket = join(sockets(owner), name)
    // Root enters every directory: then it is the kernel's word that counts.
    expect(await speak(other.as, socket, ALLOW_OTHER)).toBe(other.as === 'root' ? 'closed' : 'PermissionError')
    expect(await fetched(owner, 'mine', 'http://other.test/say')).toBe(NO_HOST)
    expect(await speak(owner.as, socket, 'allow\tother.test\t80')).toBe('closed')
    expect(await speak(owner.as, socket, 'allow\t*\t*\t*:*')).toBe('invalid')
    expect(await speak(owner.as, socket, `${'x'.repeat(2000)}`)).toBe('closed')
    // The control: the same words by the owner.
    expect(await speak(owner.as, socket, ALLOW_OTHER)).toBe('allowed')
    expect(await fetched(owner, 'mine', 'http://other.test/say')).toEqual(SAYS('other.test'))
  })

  test('no command of a sandbox reaches the socket of its run, wherever it is', async () => {
    const by = await caller('root')
    await started(by, 'inner', '--allow-later', '--rw', '.')
    const [name = ''] = readdirSync(sockets(by)).filter((file) => file.endsWith('.net'))
    const socket = join(sockets(by), name)
    const inside = await call(by, 'exec', '--in', 'inner', '--', PYTHON, '-c', SPEAK, socket, ALLOW_OTHER)
    expect(inside.stdout.toString()).toBe('FileNotFoundError\n')
    // Another run may not be shown it either.
    for (const zone of ['/run', '/run/llm-do', sockets(by)]) {
      const shown = await call(by, 'exec', '--rw', `${zone}:sockets`, '--', PYTHON, '-c', SPEAK, socket, ALLOW_OTHER)
      expect([zone, shown.status, shown.stdout.toString()]).toEqual([zone, 125, ''])
    }
    expect(await fetched(by, 'inner', 'http://other.test/say')).toBe(NO_HOST)
    expect(await speak('root', socket, ALLOW_OTHER)).toBe('allowed')
  })

  test('a run that was not started for it, or is over, is refused with the flag', async () => {
    const by = await caller('root')
    await started(by, 'fixed', '--allow-host', 'api.test')
    expect(await allowing(by, 'fixed', 'other.test')).toEqual([125, expect.stringContaining('--allow-later')])
    expect(await allowing(by, 'nothing', 'other.test')).toEqual([125, expect.stringContaining('RUN_NOT_FOUND')])
    const refusals = [
      [['--net', 'none', '--allow-later'], 'expected --net restricted'],
      [['--net', 'record', '--allow-later'], 'record'],
      [['--ask-hosts'], 'needs a terminal'],
    ] as const
    for (const [words, why] of refusals) {
      const { status, stderr } = await call(by, 'exec', ...words, '--', 'true')
      expect([words, status, stderr.toString()]).toEqual([words, 125, expect.stringContaining(why)])
    }
    expect(readdirSync(sockets(by)).filter((file) => file.endsWith('.net'))).toEqual([])
  })

  test('connections are seen as they happen, with program and bytes, until the run ends', async () => {
    const by = await caller('root')
    await started(by, 'seen', '--allow-later', '--rw', '.', '--allow-host', 'api.test:7')
    const [file = '', ...words] = cliWords(['ps', '--net', 'seen', '--json'], {
      program: 'llm-do',
      through: world.through,
    })
    const following = execa(file, words, { cwd: by.cwd })
    const lines: string[] = []
    following.stdout.on('data', (bytes: Buffer) => lines.push(...bytes.toString().split('\n').filter(Boolean)))
    // The first question may come before anybody watches.
    const hasSeen = (word: string) => lines.some((line) => line.includes(word)) || undefined
    while (!hasSeen('first.test')) await fetched(by, 'seen', 'http://first.test/')
    // A program that is over cannot be looked at any more.
    const talk = `import os, socket, time
s = socket.create_connection(('api.test', 7)); s.sendall(b'x' * 100)
while not os.path.exists('over'): time.sleep(0.02)`
    const talking = call(by, 'exec', '--in', 'seen', '--', PYTHON, '-c', talk)
    await until('the connection', () => hasSeen('"allowed"'))
    await writeFile(join(by.cwd, 'over'), '')
    await talking
    await until('its end', () => hasSeen('"end"'))
    await call(by, 'kill', 'seen')
    await following
    const seen = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(seen).toContainEqual(
      expect.objectContaining({ what: 'begin', host: 'api.test', port: 7, verdict: 'allowed', program: 'python3' }),
    )
    const [end] = seen.filter(({ what }) => what === 'end')
    expect(end).toMatchObject({ host: 'api.test', port: 7, bytesIn: 106, bytesOut: 100 })
  })

  /* ---- questions ---- */

  const own = async (): Promise<Caller & { readonly socket: () => string }> => {
    const by = await caller('root')
    const socket = () => join(sockets(by), readdirSync(sockets(by)).find((file) => file.endsWith('.net')) ?? '')
    return { ...by, socket }
  }

  test('a flood of names is asked about one at a time, each once, up to a bound; then all are refused as ever', async () => {
    const by = await own()
    await started(by, 'flood', '--allow-later', '--allow-host', 'api.test:80')
    const asker = await answering(by.socket())
    const open: string[] = []
    const asked: string[] = []
    asker.on((question) => {
      asked.push(question.join(' '))
      open.push(question.join(' '))
      expect(open).toHaveLength(1)
      open.pop()
      asker.say('refuse', ...question)
    })
    const flood = `
import socket
def attempt(host):
    try: socket.create_connection((host, 443), 20).recv(1); return 'open'
    except OSError as error: return type(error).__name__
met = [attempt(f'n{i % 300}.flood.test') for i in range(310)]
print(met.count('ConnectionResetError'), met.count('gaierror'))`
    const { stdout } = await call(by, 'exec', '--in', 'flood', '--', PYTHON, '-c', flood)
    // After the last question, names have no address any more.
    expect(stdout.toString()).toBe('64 246\n')
    expect(asked).toHaveLength(64)
    expect(new Set(asked).size).toBe(64)
    expect((await world.questions()).filter((question) => question.includes('flood.test'))).toEqual([])
    expect(await fetched(by, 'flood', 'http://api.test/say')).toEqual(SAYS('api.test'))
    asker.close()
  })

  test('nobody is asked where a name leads before the answer, a private address stays closed, and a deny rule is no question', async () => {
    const by = await own()
    await started(by, 'asked', '--allow-later', '--deny-host', 'old.test', '--allow-host', 'api.test')
    const asker = await answering(by.socket())
    const before: Record<string, number> = {}
    asker.on(([host = '', port = '']) => {
      void world.questions().then((questions) => {
        before[host] = questions.filter((question) => question.includes(host)).length
        asker.say('allow', host, port, `${host}:${port}`)
      })
    })
    const start = (await world.questions()).filter((question) => question.includes('other.test')).length
    expect(await fetched(by, 'asked', 'http://other.test/say')).toEqual(SAYS('other.test'))
    expect(await fetched(by, 'asked', 'http://private.test/say')).toEqual(RESET)
    expect(await fetched(by, 'asked', 'http://loop.test/say')).toEqual(RESET)
    expect(await fetched(by, 'asked', 'http://old.test/say')).toBe(NO_HOST)
    expect(await fetched(by, 'asked', 'http://api.test/say')).toEqual(SAYS('api.test'))
    expect(before).toEqual({ 'other.test': start, 'private.test': expect.any(Number), 'loop.test': expect.any(Number) })
    asker.close()
  })

  test('a question that loses the one who would answer is refused, and so is every later one', async () => {
    const by = await own()
    await started(by, 'left', '--allow-later')
    const asker = await answering(by.socket())
    const second = await answering(by.socket())
    expect(await second.first).toBe('taken')
    asker.on(() => asker.close())
    expect(await fetched(by, 'left', 'http://other.test/say')).toEqual(RESET)
    expect(await fetched(by, 'left', 'http://other.test/say')).toBe(NO_HOST)
    second.close()
  })

  describe('at a terminal', () => {
    const play = async (by: Caller, script: string, steps: readonly Step[], ...words: readonly string[]) => {
      const all = cliWords(['exec', '--ask-hosts', ...words, '--', 'sh', '-c', script], {
        program: 'llm-do',
        through: world.through,
      })
      const argv = ['/bin/sh', ...all.slice(1)]
      const env = { PATH: process.env['PATH'], HOME: by.cwd, LANG: 'C.UTF-8' }
      const input = JSON.stringify({ argv, cwd: by.cwd, env, rows: 24, columns: 100, steps })
      const { stdout } = await execa(PYTHON, [TERMINAL], { input })
      return JSON.parse(stdout) as { readonly status: number; readonly screen: string }
    }
    const times = (screen: string, text: string): number => screen.split(text).length - 1
    const fetch = (host: string) => `curl -sS http://${host}/say;`

    test('the person decides once for each host and port, and sees program, port and name', async () => {
      const steps = [
        { until: 'allow it?', type: 'maybe\n' },
        { until: 'y or n?', type: 'y\n' },
        { until: 'allow it?', type: '\n' },
      ]
      const by = await own()
      const script = [...'12'].map(() => fetch('other.test') + fetch('api.test')).join('')
      const { screen } = await play(by, `${script} echo over`, steps)
      expect(screen).toContain('curl connects to port 80 of\r\n  other.test\r\n')
      expect([times(screen, 'allow it?'), times(screen, 'host=other.test'), times(screen, 'curl: (')]).toEqual([
        2, 2, 2,
      ])
      expect(screen).toContain('over')
    })

    test('the command cannot answer: what was typed before is forgotten, and it has no terminal, nor its input', async () => {
      const by = await own()
      const script = `test -t 0 || test -t 1 || test -t 2 || echo no terminal; cat | wc -c; (: </dev/tty) || echo no tty; ${fetch('other.test')}`
      const { screen } = await play(by, script, [
        { until: '', type: 'y\n' },
        { until: 'allow it?', type: 'n\n' },
      ])
      expect(screen).toMatch(/no terminal\r\n0\r\n/)
      expect(screen).toContain('no tty')
      expect([times(screen, 'host='), times(screen, 'curl: (')]).toEqual([0, 1])
    })

    test('names and programs print as what they are, and output waits behind a question', async () => {
      const by = await own()
      const program = `
import socket, sys, threading
open('/proc/self/comm', 'w').write('\\x1b[2Jcu\\rrl')
over = threading.Event()
def paint():
    while not over.wait(0.001): sys.stdout.write('\\x1b[1;1Hpainted over'); sys.stdout.flush()
threading.Thread(target=paint).start()
s = socket.create_connection(('xn--pypl-53dc.test', 443))
try: s.recv(1)
except OSError: over.set()`
      await writeFile(join(by.cwd, 'paint.py'), program)
      const steps = [
        { until: 'allow it?', type: 'what\n' },
        { until: 'y or n?', type: 'what\n' },
        { until: 'y or n?', type: 'what\n' },
        { until: 'y or n?', type: 'n\n' },
      ]
      const { screen } = await play(by, `${PYTHON} paint.py`, steps, '--ro', '.')
      expect(screen).toContain('\\u{1b}[2Jcu\\u{d}rl connects to port 443 of')
      expect(screen).toContain('xn--pypl-53dc.test (letters of another alphabet: look twice)')
      expect(screen.indexOf('painted over')).toBeGreaterThan(-1)
      const [, after = ''] = screen.split('[N]o ')
      expect(after.split('y or n? n\r\n')[0]).toBe('what\r\ny or n? what\r\ny or n? what\r\n')
    })

    const withProfile = async () => {
      const by = await own()
      await writeFile(
        join(by.cwd, 'mine.yaml'),
        'sandbox:\n  extends: default\n  # my hosts\n  network: { allow: [ api.test ] }\n',
      )
      return { by, profile: ['--profile', './mine.yaml'] }
    }

    test('an answer is not written to a profile that lies in a writable zone, where the command could change it', async () => {
      const { by, profile } = await withProfile()
      const steps = [
        { until: 'allow it?', type: 'p\n' },
        { until: 'y or n?', type: 'y\n' },
      ]
      const { screen, status } = await play(by, fetch('other.test'), steps, ...profile, '--rw', '.')
      expect([screen.includes('[p]rofile'), status]).toEqual([false, 0])
      expect(screen).toContain('host=other.test')
      expect(readFileSync(join(by.cwd, 'mine.yaml'), 'utf8')).not.toContain('other.test')
    })

    test('an answer is written to the profile of the person, and holds for the next run', async () => {
      const { by, profile } = await withProfile()
      const { screen } = await play(by, fetch('other.test'), [{ until: 'allow it?', type: 'p\n' }], ...profile)
      expect(screen).toContain('host=other.test')
      expect(readFileSync(join(by.cwd, 'mine.yaml'), 'utf8')).toContain('# my hosts')
      const { stdout } = await call(by, 'exec', ...profile, '--', 'curl', '-sS', 'http://other.test/say')
      expect(stdout.toString()).toEqual(SAYS('other.test'))
    })
  })
})
