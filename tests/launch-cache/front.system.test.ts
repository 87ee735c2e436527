/** The client compared with node: a run gives the same bytes by both ways, and the client leaves to node what it cannot know. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { beforeEach, describe, expect, test } from 'vitest'
import { describeWith, testWith } from '../support/needs.ts'
import { until } from '../support/processes.ts'
import { currentUser } from '../support/users.ts'
import {
  cachedFiles,
  cacheOf,
  callIn,
  cliWords,
  forget,
  planned,
  program,
  runIn,
  runWords,
  settle,
  site,
  statusWithoutNode,
  timeless,
  withoutNode,
} from './client.ts'
import { NODE_RUNS } from './node-runs.ts'

const MIB = 1024 ** 2
const PATH = process.env['PATH'] ?? ''

const inWork = (name: string): string => join(site.current.work, name)

/** The terminal echoes the end of its input when it comes, before or among what the command prints. */
const withoutEcho = <Shown extends { readonly stdout: string }>(shown: Shown): Shown => ({
  ...shown,
  stdout: shown.stdout.replaceAll('^D\\b\\b', ''),
})

const comparable = async (run: ReturnType<typeof runIn>) => withoutEcho(timeless(await run))

function plantPrograms(): void {
  const make = (name: string, text: string, mode: number) => writeFileSync(inWork(name), text, { mode })
  make('closed', '', 0o644)
  make('no-interpreter', '#!/no/such/interpreter\n', 0o755)
  make('here', '#!/bin/sh\necho "$0" "$PATH"\n', 0o755)
}

describeWith('bwrap', 'a known plan', () => {
  beforeEach(plantPrograms)

  // Each form of JSON and each end: tests/native/answer.system.test.ts.
  test.each([
    [['--rw', '.', 'cat'], 0],
    [['--no-workspace', '--env', 'HOME', '/usr/bin/env'], 0],
    [['-c', 'cat; env; pwd; id; echo err >&2; exit 7'], 7],
    [['--', 'printf', '%s|', '', '--bind', 'a\nb', 'ü'], 0],
    [['--', './closed'], 126],
    [['--timeout', '1s', '-c', 'sleep 9 & sleep 9 & sleep 9'], 124],
    [['--json', '--', 'sh', '-c', 'cat; echo err >&2; exit 3'], 3],
    // The command reads first: the terminal echoes its input when it comes.
    [['--json', '--tty', '-c', 'read -r line; tty; stty -a | head -n 1'], 0],
  ])('is started and told without node, in the same bytes: %j', async (words, status) => {
    const byNode = await comparable(runIn(words))
    expect(byNode.status).toBe(status)
    await planned(words)
    expect(await comparable(runIn(words, withoutNode))).toEqual(byNode)
  })

  // Each reason: tests/native/answer.system.test.ts.
  test.each(NODE_RUNS.filter(({ of = currentUser() }) => of === currentUser()))(
    'leaves the report to node: $why',
    async ({ words }) => {
      // Another command with the same options has the same plan, and needs no Node.
      await planned([
        ...words.slice(
          0,
          words.findIndex((word) => word === '-c' || word === '--'),
        ),
        '--',
        'true',
      ])
      expect(await statusWithoutNode(words)).toBe(99)
    },
  )

  test.each([
    [['--rw', '.', '--', 'sh', '-c', 'echo made >here; cat here']],
    [['--cow', '.', '--', 'ls', '-A']],
    [['--ro', '.', '--ro', 'TASK:/mnt/x', '--', 'ls', '/mnt/x']],
  ])('serves a directory that it was not planned in, without node, and leaves nothing: %j', async (written) => {
    const words = () => written.map((word) => word.replace('TASK', `${site.current.work}-task`))
    mkdirSync(`${site.current.work}-task`)
    await planned(words())
    const before = cachedFiles()
    site.current = { ...site.current, work: inWork('fresh') }
    for (const made of ['', '-task']) mkdirSync(`${site.current.work}${made}`)
    const byClient = await comparable(runIn(words(), withoutNode))
    expect(cachedFiles()).toEqual(before)
    forget()
    expect(byClient).toEqual(await comparable(runIn(words())))
  })

  test('is not started without node when nothing is cached: the control', async () => {
    expect(await statusWithoutNode(['--', 'cat'])).toBe(99)
  })

  test('covers what was made at a protected path since, without node, and leaves a link that leads out', async () => {
    const script = '{ echo changed > .envrc; } 2>&1 | grep -o "Read-only file system"; cat .envrc'
    const words = ['--rw', '.', '--', 'sh', '-c', script]
    await runIn(words)
    writeFileSync(inWork('.envrc'), 'host\n')
    const printed = Buffer.from('Read-only file system\nhost\n')
    expect(await runIn(words, withoutNode)).toMatchObject({ status: 0, stdout: printed })
    rmSync(inWork('.envrc'))
    symlinkSync('/etc/hostname', inWork('.envrc'))
    expect(await runIn(words, withoutNode)).toMatchObject({ stdout: Buffer.from('Read-only file system\nsandbox\n') })
  })

  /** A place for plans: root cannot choose one, so each case has different words. */
  test.each<readonly [string, () => Record<string, string>]>([
    ['whose home does not exist', () => ({ HOME: join(site.current.home, 'none') })],
    ['whose home is read-only', () => ({ HOME: '/proc' })],
    ['whose PATH names a closed place', () => ({ PATH: `${join(site.current.home, 'closed')}:${PATH}` })],
  ])('is started without node by a caller %s', async (_, env) => {
    mkdirSync(join(site.current.home, 'closed'), { mode: 0o000 })
    const words = ['--ro', site.current.work, '--', 'cat']
    expect(await statusWithoutNode(words, env())).toBe(99)
    const byNode = await runIn(words, env())
    expect(await runIn(words, { ...env(), ...withoutNode })).toEqual(byNode)
    expect(byNode.status).toBe(0)
  })

  testWith('root', "is started without node where the home is the account's", async () => {
    const words = ['--ro', site.current.work, '--', 'cat']
    const byNode = await runIn(words, { HOME: '' })
    expect(await runIn(words, { HOME: '', ...withoutNode })).toEqual(byNode)
    expect(byNode.status).toBe(0)
  })

  test('is planned anew when a home that was missing has got a profile', async () => {
    const HOME = join(site.current.home, 'late')
    const words = ['--ro', site.current.work, '--', 'sh', '-c', 'echo "$LATE"']
    await runIn(words, { HOME })
    expect((await runIn(words, { HOME, ...withoutNode })).stdout.toString()).toBe('\n')
    mkdirSync(join(HOME, '.config/llm-do/profiles'), { recursive: true })
    writeFileSync(join(HOME, '.config/llm-do/profiles/default.yaml'), 'env: { set: { LATE: yes } }\n')
    expect(await statusWithoutNode(words, { HOME })).toBe(99)
  })

  test('warns once of a directory that is not shown: by the client, by node, and where node explains the end', async () => {
    const call = async (script: string, env: Record<string, string> = {}) => {
      const words = ['sh', '-c', 'cd "$0" && exec "$@"', site.current.home, program(), '-c', script]
      return await runWords(words, { WORK: site.current.work, ...env })
    }
    const byNode = await call('echo began >&2; exit 1')
    expect(byNode.stderr.toString()).toMatch(/^llm-do: warning: .*is not shown; \/workspace is empty.*\nbegan\n$/)
    expect(await call('echo began >&2; exit 1', withoutNode)).toEqual(byNode)
    const explained = (await call('kill -SYS $$')).stderr.toString()
    expect(explained.split('\n').filter((line) => line.startsWith('llm-do: warning: '))).toHaveLength(1)
  })

  test('is not left where a warning is of the moment: a socket in a zone that nothing closes, and one whose server may come again', async () => {
    const path = inWork('socket')
    const listen = `net.createServer().listen('${path}', () => process.kill(process.pid, 'SIGKILL'))`
    spawnSync(process.execPath, ['-e', listen])
    // A plan for this directory alone: one for any is not used where a socket is.
    const words = ['--same-path', '--', 'cat']
    expect((await runIn(words)).stderr.toString()).toBe('')
    const afterEnd = await statusWithoutNode(words)
    rmSync(path)
    const server = createServer().listen(path)
    try {
      const byNode = await runIn(['--', 'cat'])
      // A kernel whose Landlock closes sockets has no such warning.
      const expected = byNode.stderr.includes('warning') ? 99 : 0
      expect([afterEnd, await statusWithoutNode(['--', 'cat'])]).toEqual([expected, expected])
    } finally {
      server.close()
    }
  })

  test('runs its command once, by client and by node', async () => {
    const words = ['--json', '--rw', '.', '-c', 'echo run >>runs; echo EROFS >&2; exit 1']
    for (const runs of [1, 2]) {
      await runIn(words)
      expect(readFileSync(inWork('runs'), 'utf8')).toBe('run\n'.repeat(runs))
    }
  })

  test('gives the command the environment of this caller, and leaves none of it in the cache', async () => {
    const words = ['--json=shell', '--env', 'TOKEN', '--env', 'SET=planted-set', '-c', 'echo $TOKEN']
    await runIn(words, { TOKEN: 'planted-one' })
    expect((await runIn(words, { ...withoutNode, TOKEN: 'planted-two' })).stdout.toString()).toContain('planted-two')
    expect(cachedFiles()).toHaveLength(1)
    expect(readFileSync(cachedFiles()[0] ?? '', 'latin1')).not.toContain('planted')
  })
})

describeWith('bwrap', 'a client whose words are not read', () => {
  const shell = (script: string, command: readonly string[]) => ['bash', '-c', script, 'bash', ...cliWords(command)]
  /** Descriptor 4 is a pipe whose last reader has gone. */
  const UNREAD = 'mkfifo unread; exec 3<>unread 4>unread 3<&-; rm unread; '

  test.each([
    ['a reader that has gone', `${UNREAD}"$@" >&4`],
    ['a stdout that is closed', '"$@" >&-'],
    ['a stderr and a stdin that are closed', '"$@" 2>&- <&-'],
    ['a full disk', '"$@" >/dev/full'],
  ])('meets %s as node does', async (_, script) => {
    const words = shell(script, ['--json', '--', 'sh', '-c', `head -c ${MIB} /dev/zero; exit 3`])
    const byNode = timeless(await runWords(words))
    expect(timeless(await runWords(words))).toEqual(byNode)
  })

  test('keeps the status of the command', async () => {
    const command = ['--log', '--json', '--', 'sh', '-c', 'kill -SEGV $$']
    const { status } = await runIn(command)
    const unread = await runWords(shell(`${UNREAD}"$@" 2>&4 >/dev/null`, command), withoutNode)
    expect([status, unread.status]).toEqual([139, 139])
  })

  testWith('python', 'is whole also for a reader that makes no writer wait', async () => {
    const slow = [
      'import os, subprocess, sys, time',
      'ours, theirs = os.pipe()',
      'os.set_blocking(theirs, False)',
      'child = subprocess.Popen(sys.argv[1:], stdout=theirs)',
      'os.close(theirs)',
      'time.sleep(0.5)',
      'sys.stdout.buffer.write(os.fdopen(ours, "rb").read())',
      'sys.exit(child.wait())',
    ].join('\n')
    const wrapped = ['python3', '-c', slow, ...cliWords(['--json', '--', 'head', '-c', `${MIB}`, '/dev/zero'])]
    await runWords(wrapped)
    const { status, stdout } = await runWords(wrapped, withoutNode)
    expect(status).toBe(0)
    expect(JSON.parse(stdout.toString()).stdout).toHaveLength(MIB)
  })

  test.each(['SIGTERM', 'SIGINT'] as const)('reports %s, as node does', async (signal) => {
    const words = ['--json', '--rw', '.', '-c', 'echo so far; touch started; exec sleep 60']
    const cancelled: unknown[] = []
    for (const _ of [1, 2]) {
      rmSync(inWork('started'), { force: true })
      const [file = '', ...argv] = cliWords(words)
      const run = execa(file, argv, callIn(site.current, {}))
      await until('the command', () => existsSync(inWork('started')) || undefined)
      run.kill(signal)
      const { signal: killedBy, stdout } = await run
      const { reason, message, stdout: text } = JSON.parse(Buffer.from(stdout).toString())
      cancelled.push({ killedBy, reason, message: message.replace(/; \d+ process.*/, ''), text })
    }
    const expected = { killedBy: signal, reason: 'cancelled', message: `cancelled by ${signal}`, text: 'so far\n' }
    expect(cancelled).toEqual([expected, expected])
  })
})

/** The client's answer to each command line, and node's answer without a plan. */
async function byBoth(lines: readonly (readonly string[])[], env: Record<string, string> = {}) {
  const byClient: unknown[] = []
  for (const words of lines) byClient.push([words, await runIn(words, { ...env, ...withoutNode })])
  const byNode: unknown[] = []
  for (const words of lines) {
    forget()
    byNode.push([words, await runIn(words, env)])
  }
  return { byClient, byNode }
}

async function statusesWithoutNode(lines: readonly (readonly string[])[]) {
  const statuses: unknown[] = []
  for (const words of lines) statuses.push([words, await statusWithoutNode(words)])
  return statuses
}

// Programs that share a plan: tests/native/program.system.test.ts, tests/launch-cache/program.test.ts.
describeWith('bwrap', 'a plan that was made for another program', () => {
  test('runs each without node, as node would', async () => {
    plantPrograms()
    const env = { PATH: `${site.current.work}:${PATH}` }
    await runIn(['--', 'true'], env)
    const lines = [
      ['--', 'sh', '-c', 'exit 7'],
      ['-c', 'echo "$0 $1" "$PATH"', 'name', 'arg'],
      ['-lc', 'shopt login_shell; echo "$0 $-"', '--', 'arg'],
      ['here'],
    ]
    const { byClient, byNode } = await byBoth(lines, env)
    expect(byClient).toEqual(byNode)
  })

  test('is not for one that a link leads to a toolchain, which its own plan shows', async () => {
    const [bin, toolchain] = [join(site.current.home, 'bin'), join(site.current.home, '.nvm/versions/node/v1/bin')]
    for (const directory of [bin, toolchain]) mkdirSync(directory, { recursive: true })
    const tool = join(toolchain, 'tool')
    writeFileSync(tool, '#!/bin/sh\necho of the toolchain\n', { mode: 0o755 })
    symlinkSync(tool, join(bin, 'tool'))
    const env = { PATH: `${bin}:${PATH}` }
    await runIn(['--', 'true'], env)
    expect(await statusWithoutNode(['--', 'true'], env)).toBe(0)
    for (const name of ['tool', join(bin, 'tool'), tool]) expect(await statusWithoutNode(['--', name], env)).toBe(99)
    const byNode = await runIn(['--', tool], env)
    expect(byNode.stdout.toString()).toBe('of the toolchain\n')
    expect(await runIn(['--', tool], { ...env, ...withoutNode })).toEqual(byNode)
  })

  test('shows nothing to a link that was planted in the workspace since', async () => {
    const outside = join(site.current.home, 'secret')
    mkdirSync(outside)
    writeFileSync(join(outside, 'tool'), '#!/bin/sh\necho secret\n', { mode: 0o755 })
    const env = { PATH: `${site.current.work}:${PATH}` }
    await runIn(['--', 'true'], env)
    symlinkSync(join(outside, 'tool'), inWork('tool'))
    for (const [name, why] of [
      ['tool', 'is not visible inside'],
      ['./tool', 'not found in the sandbox'],
    ] as const) {
      const { status, stdout, stderr } = await runIn(['--', name], env)
      expect({ status, stdout: stdout.toString() }).toEqual({ status: 127, stdout: '' })
      expect(stderr.toString()).toContain(why)
      // Node warns, so node is needed each time.
      expect(await statusWithoutNode(['--', name], env)).toBe(99)
    }
  })
})

describeWith('bwrap', 'a plan that was made for other variables of --env', () => {
  test('gives these without node, as node would, and is not for names that decide, for odd words, and for other options', async () => {
    await runIn(['--env', 'K=one', '--env=L=one', '--', 'env'])
    const others = [
      ['--env', 'K', '--env=L=one', '--', 'env'],
      ['--env', '*=', '--env', '--', 'env'],
      ['--env', 'HOME=/tmp', '--', 'env'],
      ['--env', 'PATH=/bin', '--env', 'K=one', '--', 'env'],
      ['--', 'env'],
      ['--env', '=one', '--env=L=one', '--', 'env'],
      ['--workdir', '--env', 'K=one', '--', 'env'],
      ['--env', 'K=\ufffd', '--env=L=one', '--', 'env'],
    ]
    expect(await statusesWithoutNode(others)).toEqual(others.map((words) => [words, 99]))
    const { byClient, byNode } = await byBoth([
      ['--env', 'K=a\nb ü', '--env=L==a=', '--', 'env'],
      ['--env', 'K=1', '--env', 'K=2', '--', 'env'],
      ['--env', 'K=two', '--', 'env'],
      [...Array.from({ length: 2000 }, (_, n) => `--env=N${n % 1000}=${n}`), '--', 'env'],
    ])
    expect(byClient).toEqual(byNode)
    expect(JSON.stringify(byClient)).not.toContain('"status":99')
  })
})

// Commands that rules let run: tests/native/rules.system.test.ts.
describeWith('bwrap', 'a plan under a worker', () => {
  const leave = (text: string, file = 'workers/w.worker') => {
    mkdirSync(dirname(inWork(file)), { recursive: true })
    writeFileSync(inWork(file), text)
  }
  const workerOf = (...names: readonly string[]): string =>
    ['---', 'name: w', 'sandbox: { resources: { pids: 9 } }', 'toolsets:', '  shell:', '    rules:']
      .concat(names.map((name) => `      - { pattern: ${name}, approval: preApproved }`))
      .concat('      - { pattern: env, approval: ask }', '---', 'Do it.', '')
      .join('\n')
  const under = (...words: readonly string[]): readonly string[] => ['--worker', 'w', ...words]
  const syntax = (...words: readonly string[]) => under('--allow-shell-syntax', ...words)

  beforeEach(async () => {
    leave(workerOf('echo', 'cat', 'sh', 'no-such-program'))
    await settle(inWork('workers/w.worker'))
  })

  test('runs without node what the rules let run, as node would, and leaves the rest to node', async () => {
    for (const words of [under('--', 'echo', 'first'), under('-c', 'echo first'), syntax('-c', 'echo first')])
      await runIn(words)
    const left = [
      under('--', 'uname'),
      under('--', 'env'),
      under('-c', 'echo a; echo b'),
      syntax('-c', 'echo a; uname'),
      syntax('-c', 'echo a > /tmp/b'),
      syntax('-c', 'echo $(uname)'),
    ]
    expect(await statusesWithoutNode(left)).toEqual(left.map((words) => [words, 99]))
    const { byClient, byNode } = await byBoth([
      under('--', 'sh', '-c', 'echo out; echo err >&2; exit 7'),
      under('-c', 'echo "a  b" \'c\''),
      under('--', 'no-such-program'),
      syntax('-c', 'echo a | cat; echo b\n\techo c'),
    ])
    expect(byClient).toEqual(byNode)
  })

  test('has the limits of the worker by both ways, also in what node explains', async () => {
    const words = ['--json', ...under('--', 'sh', '-c', 'kill -SEGV $$')]
    const byNode = timeless(await runIn(words))
    expect(byNode.stdout).toContain('"pids":{"max":9')
    expect(timeless(await runIn(words))).toEqual(byNode)
  })

  test.each<readonly [string, () => void]>([
    ['a worker of that name is found before it', () => leave(workerOf(), 'w.worker')],
    ['its worker is gone', () => rmSync(inWork('workers/w.worker'))],
    [
      'another worker has its place, size and times',
      () => {
        const file = inWork('workers/w.worker')
        writeFileSync(`${file}.new`, readFileSync(file, 'utf8').replace('pattern: echo', 'pattern: ecHo'))
        const { atime, mtime } = statSync(file)
        utimesSync(`${file}.new`, atime, mtime)
        renameSync(`${file}.new`, file)
      },
    ],
  ])('is not used when %s', async (_, change) => {
    const words = under('--', 'echo', 'x')
    await planned(words)
    change()
    expect(await statusWithoutNode(words)).toBe(99)
  })

  test('is not used for another worker, for none, and when the workshop has changed', async () => {
    leave(workerOf(), 'workers/v.worker')
    await runIn(under('--', 'echo', 'x'))
    for (const words of [
      ['--worker', 'v', '--', 'echo'],
      ['--', 'echo'],
    ])
      expect(await statusWithoutNode(words)).toBe(99)
    const workshop = (pids: number) =>
      `workshop: { name: s, workers: [w], sandbox: { resources: { pids: ${pids} } } }\n`
    const words = ['--worker', 'w', '--workshop', 'shop.yaml', '--', 'echo', 'x']
    leave(workshop(30), 'shop.yaml')
    await settle(inWork('shop.yaml'))
    await planned(words)
    leave(workshop(20), 'shop.yaml')
    expect(await statusWithoutNode(words)).toBe(99)
  })
})

/** Each variable that a plan may depend on: src/launch-cache/cache-key.ts and native/client/call.c have the same list. */
const DECIDING = [
  ...['PATH', 'HOME', 'XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'XDG_STATE_HOME', 'XDG_RUNTIME_DIR', 'SSH_AUTH_SOCK'],
  ...['ENABLE_DOCKER', 'DOCKER_TIMEOUT', 'DOCKER_MEMORY_LIMIT', 'DOCKER_CPU_LIMIT'],
]

describeWith('userns', 'a plan that was made with variables set', () => {
  test('is started without node for the same values only', async () => {
    const [one, two] = ['one', 'two'].map((name) => join(site.current.home, name)) as [string, string]
    for (const directory of [one, two]) mkdirSync(directory, { mode: 0o700 })
    const valuesOf = (directory: string, number: number): Record<string, string> => ({
      ...Object.fromEntries(DECIDING.map((name) => [name, name.startsWith('DOCKER') ? `${number}` : directory])),
      // Milliseconds: a timeout that a busy machine reaches is another subject.
      DOCKER_TIMEOUT: `${number * 60_000}`,
      PATH: `${PATH}:${directory}`,
      ENABLE_DOCKER: `${number === 1}`,
      DOCKER_MEMORY_LIMIT: `${256 * number}m`,
    })
    const [own, others] = [valuesOf(one, 1), valuesOf(two, 2)]
    await runIn(['--', 'cat'], own)
    // Where the cache lies, and whose key seals it, is another question.
    for (const name of ['llm-do', '.cache'])
      if (existsSync(join(one, name))) cpSync(join(one, name), join(two, name), { recursive: true })
    expect(await statusWithoutNode(['--', 'cat'], own)).toBe(0)
    for (const name of DECIDING)
      expect([name, await statusWithoutNode(['--', 'cat'], { ...own, [name]: others[name] ?? '' })]).toEqual([name, 99])
  })
})

describe('the store', () => {
  test('keeps no plan with a value of the caller’s own profile', async () => {
    const text = (set: string) => `sandbox: { extends: default, env: { set: { ${set} } } }\n`
    for (const [set, kept] of [
      ['TOKEN: planted-secret', 0],
      ['', 1], // The control.
    ] as const) {
      writeFileSync(inWork('p.yaml'), text(set))
      await settle(inWork('p.yaml'))
      await runIn(['--profile', './p.yaml', '--', 'true'])
      expect(cachedFiles()).toHaveLength(kept)
    }
  })

  test('is private, and is emptied by `llm-do cache clear`', async () => {
    await runIn(['--', 'true'])
    expect(cachedFiles()).toHaveLength(1)
    const modes = execFileSync('stat', ['-c', '%a', cacheOf(site.current), ...cachedFiles()], { encoding: 'utf8' })
    expect(modes).toBe('700\n600\n')
    await execa(program('llm-do'), ['cache', 'clear'], callIn(site.current, {}))
    expect(cachedFiles()).toEqual([])
  })
})
