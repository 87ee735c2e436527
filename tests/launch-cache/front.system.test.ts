/** The client compared with node: the same words give the same bytes by both ways, and nothing stale or changed is used. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  linkSync,
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
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { beforeEach, describe, expect, test } from 'vitest'
import { sealOf, takeSecret } from '../../src/host/secret.ts'
import { describeWith, testWith } from '../support/needs.ts'
import {
  cachedFiles,
  cacheOf,
  callIn,
  cliWords,
  program,
  runIn,
  runtimeOf,
  runWords,
  SETTLE_MS,
  site,
  timeless,
  warm,
  withoutNode,
} from './client.ts'

describeWith('bwrap', 'a plan that is known', () => {
  test.each([
    [['-c', 'echo "$0 $1"', '--', 'echo', 'wrong'], '-- echo\n'],
    [['--audit', '-c', 'echo', '-c', 'wrong'], '-c wrong\n'],
    [['--memory', '64MiB', 'echo', '-c', 'wrong'], '-c wrong\n'],
    [['--memory', '64MiB', 'echo', '--', 'echo', 'wrong'], '-- echo wrong\n'],
  ])('runs the same command every time where %j can be split in two ways', async (words, printed) => {
    for (const time of [1, 2, 3]) {
      await setTimeout(SETTLE_MS)
      expect({ time, ...(await runIn(words)) }).toMatchObject({ status: 0, stdout: Buffer.from(printed) })
    }
  })

  test('is started without node', async () => {
    await warm(['--', 'cat'])
    expect(await runIn(['--', 'cat'], withoutNode)).toMatchObject({ status: 0, stdout: Buffer.from('input\n') })
  })

  test.each([
    [['--rw', '.', 'cat']],
    [['--env', 'A=b', '--memory=64MiB', 'echo', '--', '-c']],
    [['--no-workspace', '--timeout', '9s', '/bin/cat']],
  ])('is started without node where no `--` says that the command begins: %j', async (words) => {
    await setTimeout(SETTLE_MS)
    const byNode = await runIn(words)
    expect(await runIn(words, withoutNode)).toEqual(byNode)
    expect(byNode.status).toBe(0)
  })

  test.each([
    [
      ['--rw', 'cat'],
      ['--rw', '.', 'cat'],
    ],
    [
      ['--memory', '64MiB'],
      ['--memory', '64MiB', 'cat'],
    ],
    [
      ['--memori', '64MiB', 'cat'],
      ['--memory', '64MiB', 'cat'],
    ],
  ])('is left to node where the options are not ours, or lack a value: %j', async (words, good) => {
    await setTimeout(SETTLE_MS)
    expect((await runIn(good)).status).toBe(0)
    expect((await runIn(words, withoutNode)).status).toBe(99)
    expect((await runIn(words)).status).toBe(125)
  })

  test('covers what was made at a protected path since, without node, and refuses a link there', async () => {
    const words = [
      '--rw',
      '.',
      '--',
      'sh',
      '-c',
      '{ echo changed > .envrc; } 2>&1 | grep -o "Read-only file system"; cat .envrc',
    ]
    const path = join(site.current.work, '.envrc')
    await warm(words)
    writeFileSync(path, 'host\n')
    expect(await runIn(words, withoutNode)).toMatchObject({
      status: 0,
      stdout: Buffer.from('Read-only file system\nhost\n'),
    })
    rmSync(path)
    symlinkSync('/etc/hostname', path)
    const { status, stdout, stderr } = await runIn(words)
    expect({ status, stdout: stdout.toString() }).toEqual({ status: 125, stdout: '' })
    expect(stderr.toString()).toContain('.envrc must stay read-only but is a symbolic link')
  })

  test('is started without node by a user whose PATH names a place that is closed to him', async () => {
    const closed = join(site.current.home, 'closed')
    mkdirSync(closed, { mode: 0o000 })
    const PATH = `${closed}:${process.env['PATH']}`
    await setTimeout(SETTLE_MS)
    await runIn(['--', 'cat'], { PATH })
    expect((await runIn(['--', 'cat'], { ...withoutNode, PATH })).status).toBe(0)
  })

  /** A place for plans of one's own; for root there is none to choose, so each case has words of its own. */
  test.each<readonly [string, () => Record<string, string>]>([
    ['whose home does not exist', () => ({ HOME: join(site.current.home, 'none') })],
    ['whose home is read-only', () => ({ HOME: '/proc' })],
    [
      'whose cache directory is below what does not exist',
      () => ({ XDG_CACHE_HOME: join(site.current.home, 'a/b/c') }),
    ],
  ])('is started without node by a caller %s', async (_, env) => {
    const words = ['--ro', site.current.work, '--', 'cat']
    expect((await runIn(words, { ...env(), ...withoutNode })).status).toBe(99)
    await setTimeout(SETTLE_MS)
    const byNode = await runIn(words, env())
    expect(await runIn(words, { ...env(), ...withoutNode })).toEqual(byNode)
    expect(byNode.status).toBe(0)
  })

  testWith('root', "is started without node where the home is the account's", async () => {
    const words = ['--ro', site.current.work, '--', 'cat']
    await setTimeout(SETTLE_MS)
    const byNode = await runIn(words, { HOME: '' })
    expect(await runIn(words, { HOME: '', ...withoutNode })).toEqual(byNode)
    expect(byNode.status).toBe(0)
  })

  test('is planned anew when a home that was missing has got a profile', async () => {
    const HOME = join(site.current.home, 'late')
    const words = ['--ro', site.current.work, '--', 'sh', '-c', 'echo "$LATE"']
    await setTimeout(SETTLE_MS)
    await runIn(words, { HOME })
    expect((await runIn(words, { HOME, ...withoutNode })).stdout.toString()).toBe('\n')
    mkdirSync(join(HOME, '.config/llm-do/profiles'), { recursive: true })
    writeFileSync(join(HOME, '.config/llm-do/profiles/default.yaml'), 'env: { set: { LATE: yes } }\n')
    expect((await runIn(words, { HOME, ...withoutNode })).status).toBe(99)
  })

  test.each([[[]], [['--json']]] as const)(
    'is started without node where the directory is one that is not shown: %j',
    async (options) => {
      const words = [program(), ...options, '-c', 'echo began >&2; exit 1']
      const call = async (env: Record<string, string>) => {
        const { home, work } = site.current
        return await runWords(['sh', '-c', 'cd "$0" && exec "$@"', home, ...words], { HOME: home, WORK: work, ...env })
      }
      await setTimeout(SETTLE_MS)
      const byNode = await call({})
      expect(await call(withoutNode).then(timeless)).toEqual(timeless(byNode))
      const said = options.length > 0 ? byNode.stdout.toString() : byNode.stderr.toString()
      expect(said.split('is not shown; /workspace is empty')).toHaveLength(2)
      if (options.length === 0) expect(byNode.stderr.toString()).toMatch(/warning: .*\nbegan\n$/)
    },
  )

  test('warns once of a directory that is not shown, also where node has to explain the end, or to plan anew', async () => {
    const { home } = site.current
    const words = ['sh', '-c', 'cd "$0" && exec "$@"', home, program(), '-c', 'echo began >&2; cat /etc/shadow']
    const warnings = async () => {
      const { stderr } = await runWords(words)
      return stderr
        .toString()
        .split('\n')
        .filter((line) => line.startsWith('llm-do: warning: '))
    }
    await setTimeout(SETTLE_MS)
    expect(await warnings()).toHaveLength(1)
    expect(await warnings()).toHaveLength(1)
    mkdirSync(join(home, '.config/llm-do/profiles'), { recursive: true })
    writeFileSync(
      join(home, '.config/llm-do/profiles/default.yaml'),
      'sandbox: { extends: default, env: { set: { LATE: yes } } }\n',
    )
    expect(await warnings()).toHaveLength(1)
  })

  test('is not left where a warning is of the moment: a socket in a zone that nothing closes', async () => {
    const server = createServer().listen(join(site.current.work, 'socket'))
    try {
      await setTimeout(SETTLE_MS)
      const byNode = await runIn(['--', 'cat'])
      // A kernel whose Landlock closes sockets has no such warning.
      const isWarned = byNode.stderr.includes('warning')
      expect((await runIn(['--', 'cat'], withoutNode)).status).toBe(isWarned ? 99 : 0)
    } finally {
      server.close()
    }
  })

  test('is not started without node when nothing is cached: the control of the tests below', async () => {
    expect((await runIn(['--', 'cat'], withoutNode)).status).not.toBe(0)
  })

  test.each([
    [['--', 'sh', '-c', 'exit 7']],
    [['--', 'sh', '-c', 'kill -SEGV $$']],
    [['--', 'sh', '-c', 'echo out; echo err >&2; exit 1']],
    [['--', 'no-such-command']],
    [['--', 'cat', '/etc/shadow']],
    [['--timeout', '200ms', '--', 'sleep', '9']],
    [['-c', 'cat; env; pwd; id']],
    [['--', 'env']],
    [['--env', 'HOME', '--', 'env']],
    [['--no-such-option', '--', 'true']],
    [['--ro', '/no/such/place', '--', 'true']],
    [['--', 'printf', '%s|', '', '--bind', 'a\nb', 'ü']],
  ])('says and does the same by both ways: %j', async (words) => {
    await setTimeout(SETTLE_MS)
    const byNode = await runIn(words)
    expect(await runIn(words)).toEqual(byNode)
  })
})

const PATH = process.env['PATH'] ?? ''
const toolchain = (): string => join(site.current.home, '.nvm/versions/node/v1')

/** A program of a toolchain, which is not on PATH: only a link leads to it. */
function makeToolchain(): string {
  const bin = join(toolchain(), 'bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'tool'), '#!/bin/sh\necho of the toolchain\n')
  chmodSync(join(bin, 'tool'), 0o755)
  return join(bin, 'tool')
}

describeWith(['bwrap', 'one-user'], 'a plan that was made for another program', () => {
  beforeEach(async () => warm(['--', 'true']))

  test.each([
    [['--', 'cat']],
    [['--', 'uname', '-s']],
    [['--', '/bin/echo', 'x']],
    [['--', 'sh', '-c', 'exit 7']],
    [['-c', 'echo "$0" "$PATH"; exit 7']],
    [['-c', 'echo "$0 $1"', 'name', 'arg']],
    [['-ec', 'false; echo "not ended"']],
    [['-lc', 'shopt login_shell; echo "$0 $-"', '--', 'arg']],
    [['-l', '-c', 'echo "$0"']],
    [['-euo', 'pipefail', '-c', 'false | true']],
    [['-c', '--', 'echo "$0"']],
    [['sh', '-c', 'exit 7']],
    [['--', './here']],
    [['here']],
  ])('runs %j without node, as node would', async (words) => {
    writeFileSync(join(site.current.work, 'here'), '#!/bin/sh\necho "$0" "$PATH"\n')
    chmodSync(join(site.current.work, 'here'), 0o755)
    const env = { PATH: `${site.current.work}:${PATH}` }
    await setTimeout(SETTLE_MS)
    await runIn(['--', 'true'], env)
    const byFront = await runIn(words, { ...env, ...withoutNode })
    for (const file of cachedFiles()) rmSync(file)
    await setTimeout(SETTLE_MS)
    expect(await runIn(words, env)).toEqual(byFront)
  })

  test.each([
    [['--', 'no-such-program']],
    [['--', '/no/such/program']],
    [['--', '/etc']],
    [['--', './closed']],
    [['--', './no-interpreter']],
    [['--', '']],
    [['--', 'tool.wasm']],
  ])('says of %j what a plan of its own says', async (words) => {
    writeFileSync(join(site.current.work, 'closed'), '', { mode: 0o644 })
    writeFileSync(join(site.current.work, 'no-interpreter'), '#!/no/such/interpreter\n', { mode: 0o755 })
    const shared = await runIn(words)
    for (const file of cachedFiles()) rmSync(file)
    await setTimeout(SETTLE_MS)
    const own = await runIn(words)
    expect(own.status).not.toBe(0)
    expect(shared).toEqual(own)
  })

  test('is not for one that a link leads to a toolchain, which its own plan shows', async () => {
    const bin = join(site.current.home, 'bin')
    mkdirSync(bin)
    const env = { PATH: `${bin}:${PATH}` }
    const tool = makeToolchain()
    symlinkSync(tool, join(bin, 'tool'))
    await setTimeout(SETTLE_MS)
    await runIn(['--', 'true'], env)
    expect((await runIn(['--', 'true'], { ...env, ...withoutNode })).status).toBe(0)
    for (const name of ['tool', join(bin, 'tool'), tool]) {
      expect((await runIn(['--', name], { ...env, ...withoutNode })).status).toBe(99)
    }
    await setTimeout(SETTLE_MS)
    const byNode = await runIn(['--', tool], env)
    expect(byNode.stdout.toString()).toBe('of the toolchain\n')
    expect(await runIn(['--', tool], { ...env, ...withoutNode })).toEqual(byNode)
  })

  test('shows nothing to a link that was planted in the workspace since', async () => {
    const outside = join(site.current.home, 'secret')
    mkdirSync(outside)
    writeFileSync(join(outside, 'tool'), '#!/bin/sh\necho secret\n', { mode: 0o755 })
    const env = { PATH: `${site.current.work}:${PATH}` }
    await setTimeout(SETTLE_MS)
    await runIn(['--', 'true'], env)
    symlinkSync(join(outside, 'tool'), join(site.current.work, 'tool'))
    for (const words of [
      ['--', 'tool'],
      ['--', './tool'],
    ]) {
      const { status, stdout, stderr } = await runIn(words, env)
      expect({ status, stdout: stdout.toString() }).toEqual({ status: 127, stdout: '' })
      expect(stderr.toString()).toContain(words[1] === 'tool' ? 'is not visible inside' : 'not found in the sandbox')
      // Node's each time, since it is node that warns.
      expect((await runIn(words, { ...env, ...withoutNode })).status).toBe(99)
    }
  })

  test('is not for another PATH', async () => {
    expect((await runIn(['--', 'cat'], { ...withoutNode, PATH: `/nowhere:${PATH}` })).status).toBe(99)
  })
})

describeWith(['bwrap', 'one-user'], 'a plan that was made for other variables of --env', () => {
  beforeEach(async () => warm(['--env', 'K=one', '--env=L=one', '--', 'env']))

  test.each([
    [['--env', 'K=two', '--env=L=three', '--', 'env']],
    [['--env', 'K=', '--env=L==a=', '--', 'env']],
    [['--env', 'K=a\nb ü', '--env=L=--', '--', 'env']],
    [['--env', 'K=two', '--', 'env']],
    [['--env=OTHER=1', '--env', 'NAMES=2', '--env', 'THAN=3', '--env', 'BEFORE=', '--', 'env']],
    [['--env', 'K=1', '--env', 'K=2', '--', 'env']],
  ])('gives %j without node, as node would', async (words) => {
    const byFront = await runIn(words, withoutNode)
    expect(byFront.status).toBe(0)
    for (const file of cachedFiles()) rmSync(file)
    await setTimeout(SETTLE_MS)
    expect(await runIn(words)).toEqual(byFront)
  })

  test.each([
    [['--env', 'K', '--env=L=one', '--', 'env']],
    [['--env *=', '--', 'env']],
    [['--env', '*=', '--env', '--', 'env']],
    [['--env', 'HOME=/tmp', '--', 'env']],
    [['--env', 'PATH=/bin', '--env', 'K=one', '--', 'env']],
    [['--env', 'TZ=UTC', '--', 'env']],
    [['--', 'env']],
    [['--env', 'K=one', '--env=L', '--', 'env']],
    [['--env', '=one', '--env=L=one', '--', 'env']],
    [['--workdir', '--env', 'K=one', '--', 'env']],
    [['--env', 'K=\ufffd', '--env=L=one', '--', 'env']],
  ])('is not for %j', async (words) => {
    expect((await runIn(words, withoutNode)).status).toBe(99)
  })

  test('gives the last value of a name, and HOME and PATH where they are named', async () => {
    const words = (value: string) => ['--env', `K=${value}`, '--env', `K=${value}x`, '--env', `PATH=/bin:/${value}`]
    const env = ['--', '/usr/bin/env']
    await setTimeout(SETTLE_MS)
    await runIn([...words('a'), ...env])
    const byFront = await runIn([...words('b'), ...env], withoutNode)
    expect(byFront.stdout.toString()).toContain('K=bx\n')
    expect(byFront.stdout.toString()).toContain('PATH=/bin:/b\n')
    for (const file of cachedFiles()) rmSync(file)
    await setTimeout(SETTLE_MS)
    expect(await runIn([...words('b'), ...env])).toEqual(byFront)
  })

  test('is not left where a word only looks like a variable', async () => {
    for (const size of ['64MiB', '65MiB']) {
      const words = ['--workdir', '--env', `--memory=${size}`, '--', 'true']
      await setTimeout(SETTLE_MS)
      expect((await runIn(words)).status).toBe(125)
      expect((await runIn(words, withoutNode)).status).toBe(99)
    }
  })
})

const WORKER = (rules: readonly string[], more = ''): string =>
  ['---', 'name: w', more, 'toolsets:', '  shell:', '    rules:', ...rules, '---', 'Do it.', '']
    .filter((line) => line !== '')
    .join('\n')
const LETS_RUN = ['echo', 'cat', 'sh', 'ls', 'no-such-program'].map(
  (pattern) => `      - { pattern: ${pattern}, approval: preApproved }`,
)
const ASKS = '      - { pattern: env, approval: ask }'

describeWith(['bwrap', 'one-user'], 'a plan under a worker', () => {
  const leave = (text: string, file = 'workers/w.worker') => {
    mkdirSync(dirname(join(site.current.work, file)), { recursive: true })
    writeFileSync(join(site.current.work, file), text)
  }
  const under = (...words: readonly string[]): readonly string[] => ['--worker', 'w', ...words]
  const syntax = (...words: readonly string[]) => under('--allow-shell-syntax', ...words)

  beforeEach(async () => {
    leave(WORKER([...LETS_RUN, ASKS], 'sandbox: { resources: { pids: 9 } }'))
    await warm(under('--', 'echo', 'first'))
    await warm(under('-c', 'echo first'))
    await warm(syntax('-c', 'echo first'))
    await warm(syntax('-lc', 'echo first'))
  })

  const forget = (): void => {
    for (const file of cachedFiles()) rmSync(file)
  }

  test.each([
    [under('--', 'echo', 'second', 'ü')],
    [under('--', 'cat')],
    [under('--', 'sh', '-c', 'echo out; echo err >&2; exit 7')],
    [under('-c', 'echo "a  b" \'c\'')],
    [under('--', 'sh', '-c', 'kill -SEGV $$')],
    [under('--', 'no-such-program')],
    [under('-lc', 'echo a', 'name')],
    [syntax('-c', 'echo a | cat; ls /nowhere 2>&1 || echo b > /tmp/c\n\tcat /tmp/c')],
    [syntax('-c', 'echo a && no-such-program | cat')],
    [syntax('-lc', 'echo "a  b"', 'name')],
  ])('runs %j, which the rules let run, without node and as node would', async (words) => {
    const byFront = await runIn(words, withoutNode)
    expect(byFront.status).not.toBe(99)
    forget()
    await setTimeout(SETTLE_MS)
    expect(await runIn(words)).toEqual(byFront)
  })

  test.each([
    [under('--', 'uname')],
    [under('--', '/bin/echo')],
    [under('--', 'env')],
    [under('-c', 'echo a; echo b')],
    [under('-c', 'uname')],
    [under('-c', 'exec echo a')],
    [under('-lc', 'uname')],
    [under('-lc', 'coproc echo a')],
    [under('--', 'sh', '-c', 'exit 1', '/var/log')],
    [syntax('-c', 'echo a; uname')],
    [syntax('-c', 'echo a | env')],
    [syntax('-c', 'echo $(uname)')],
    [syntax('-c', 'echo a; { uname; }')],
  ])('leaves %j to node, which says the same as without the plan', async (words) => {
    const shared = await runIn(words)
    expect((await runIn(words, withoutNode)).status).toBe(99)
    forget()
    await setTimeout(SETTLE_MS)
    expect(await runIn(words)).toEqual(shared)
  })

  test('has the limits of the worker by both ways, also in what node explains', async () => {
    const words = ['--json', ...under('--', 'sh', '-c', 'kill -SEGV $$')]
    await setTimeout(SETTLE_MS)
    const byNode = timeless(await runIn(words))
    expect(byNode.stdout).toContain('"pids":{"max":9')
    expect(timeless(await runIn(words))).toEqual(byNode)
  })

  test.each<readonly [string, () => void]>([
    ['its worker has changed', () => leave(WORKER(LETS_RUN.slice(1)))],
    ['a worker of that name is found before it', () => leave(WORKER([]), 'w.worker')],
    ['its worker is gone', () => rmSync(join(site.current.work, 'workers/w.worker'))],
    [
      'another worker has its place, size and times',
      () => {
        const file = join(site.current.work, 'workers/w.worker')
        const text = readFileSync(file, 'utf8')
        writeFileSync(`${file}.new`, text.replace('pattern: echo', 'pattern: ecHo'))
        const { atime, mtime } = statSync(file)
        utimesSync(`${file}.new`, atime, mtime)
        renameSync(`${file}.new`, file)
      },
    ],
  ])('is not used when %s', async (_, change) => {
    const words = under('--', 'echo', 'x')
    expect((await runIn(words, withoutNode)).status).toBe(0)
    change()
    expect((await runIn(words, withoutNode)).status).toBe(99)
  })

  test('is not used for a run that names another worker, or none', async () => {
    leave(WORKER([]), 'workers/v.worker')
    for (const words of [
      ['--worker', 'v', '--', 'echo'],
      ['--', 'echo'],
    ])
      expect((await runIn(words, withoutNode)).status).toBe(99)
  })

  test('is not used when the workshop has changed', async () => {
    const workshop = (pids: number) =>
      `workshop: { name: s, workers: [w], sandbox: { resources: { pids: ${pids} } } }\n`
    const words = ['--worker', 'w', '--workshop', 'shop.yaml', '--', 'echo', 'x']
    leave(workshop(30), 'shop.yaml')
    await warm(words)
    expect((await runIn(words, withoutNode)).status).toBe(0)
    leave(workshop(20), 'shop.yaml')
    expect((await runIn(words, withoutNode)).status).toBe(99)
  })
})

describeWith(['bwrap', 'one-user'], 'a known plan whose run ends by no exit', () => {
  const plant = (): void => {
    const make = (name: string, text: string, mode: number) =>
      writeFileSync(join(site.current.work, name), text, { mode })
    make('closed', '', 0o644)
    make('no-interpreter', '#!/no/such/interpreter\n', 0o755)
    make('nothing', 'no program', 0o755)
    symlinkSync('loop', join(site.current.work, 'loop'))
  }

  test.each([
    [['--', 'no-such-program', 'x']],
    [['--', '/no/such/program']],
    [['--', './closed']],
    [['--', './closed/below']],
    [['--', './nothing']],
    [['--', './loop']],
    [['--', '/etc']],
    ...['SEGV', 'TERM', 'INT', 'KILL', 'ABRT', 'PIPE', 'USR1'].map((name) => [['--', 'sh', '-c', `kill -${name} $$`]]),
    [['--timeout', '200ms', '--', 'sleep', '9']],
    // All three are there before the deadline, on a busy machine too.
    [['--timeout', '1s', '-c', 'sleep 9 & sleep 9 & sleep 9']],
  ])('is told without node in the same words: %j', async (words) => {
    plant()
    await setTimeout(SETTLE_MS)
    const byNode = await runIn(words)
    expect(byNode.status).toBeGreaterThan(123)
    expect(await runIn(words, withoutNode)).toEqual(byNode)
  })

  test.each([
    [['--', 'sh', '-c', 'kill -SYS $$']],
    [['--', './no-interpreter']],
    [['--', 'no\u001bprogram']],
    [['--', '']],
    [['--', 'sh', '-c', 'kill -SEGV $$', '/var/log']],
    [['--', 'sh', '-c', 'sleep 9 & kill -SEGV $$']],
    [['--json', '--', 'no\u001bprogram']],
    [['--allow-host', 'example.test', '-c', 'getent hosts other.test; kill -SEGV $$']],
  ])('is told by node where more is to be said: %j', async (words) => {
    plant()
    await setTimeout(SETTLE_MS)
    const byNode = timeless(await runIn(words))
    expect(timeless(await runIn(words))).toEqual(byNode)
    expect((await runIn(words, withoutNode)).status).toBe(99)
  })

  test.each([
    ['--log', '--', 'no-such-program'],
    ['--log', '--', 'sh', '-c', 'kill -SEGV $$'],
    ['--log', '--', 'false'],
    ['--log', '--json', '--', 'false'],
  ])('keeps its status where nobody reads the words any more: %j', async (...words) => {
    await setTimeout(SETTLE_MS)
    const { status } = await runIn(words)
    // The reader is gone long before.
    const script = '{ sleep 0.5; "$@" 2>&1 >/dev/null; } | true; exit $PIPESTATUS'
    const unread = await runWords(['bash', '-c', script, 'bash', ...cliWords(words)], withoutNode)
    expect(unread.status).toBe(status)
  })
})

/** The terminal echoes the end of its input when it comes, before or among what the command prints. */
const withoutEcho = <Shown extends { readonly stdout: string }>(shown: Shown): Shown => ({
  ...shown,
  stdout: shown.stdout.replaceAll('^D\\b\\b', ''),
})

const json = (...command: readonly string[]): readonly string[] => ['--json', '--', ...command]
const printed = (format: string): readonly string[] => json('printf', format)
const CONTROLS = Array.from({ length: 0x20 }, (_, byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
const MIB = 1024 ** 2

describeWith(['bwrap', 'one-user'], 'a known plan whose result is JSON', () => {
  test.each<readonly [string, readonly string[]]>([
    ['nothing', json('true')],
    ['stdin and an exit code', json('sh', '-c', 'cat; echo err >&2; exit 3')],
    ['streams that are opened again', json('sh', '-c', 'echo out >/dev/stdout; echo err >/dev/stderr')],
    ['every control character', printed(`${CONTROLS}\\177"\\\\`)],
    ['UTF-8, and line separators that JSON leaves alone', printed('é\u2028\u2029\u{10ffff}\ufeff')],
    ['a mebibyte, which is the cap', json('sh', '-c', `head -c ${MIB} /dev/zero | tr "\\0" x`)],
    ['a mebibyte that JSON writes six times as long', json('head', '-c', `${MIB}`, '/dev/zero')],
    ['a script', ['--json', '-c', 'echo "$0"; pwd; env']],
    ['the form of a shell', ['--json=shell', '--', 'sh', '-c', 'echo out; echo err >&2; exit 1']],
    ['the form of a task', ['--json=task', '--', 'sh', '-c', 'echo out; exit 1']],
    ['a failure that names what is shown', json('grep', '-q', 'no such line', '/usr/lib/os-release')],
    ['a failure that names what is nowhere', json('ls', '/no/such/file')],
    ['a failure that names what is made inside', json('cat', '/tmp')],
    ...['--json', '--json=shell', '--json=task'].flatMap((form): (readonly [string, readonly string[]])[] => [
      [`death by a signal, ${form}`, [form, '--', 'sh', '-c', 'echo so far; kill -SEGV $$']],
      [`death by everyday's signal, ${form}`, [form, '--', 'sh', '-c', 'echo err >&2; kill -PIPE $$']],
      [`a deadline, ${form}`, [form, '--timeout', '1s', '-c', 'echo so far; exec sleep 60']],
      [`a deadline that kills more, ${form}`, [form, '--timeout', '1s', '-c', 'sleep 60 & sleep 60 & exec sleep 60']],
      [`a command that is not there, ${form}`, [form, '--', 'no-such "command"']],
      [`a command that cannot be executed, ${form}`, [form, '--', '/etc']],
    ]),
    ['odd words', json('printf', '%s|', '', '--json', 'a\nb', 'ü', '"')],
    ['a profile with a quote in its name', ['--json', '--profile', './a"b.yaml', '--', 'true']],
    // The command reads first: the terminal echoes its input when it comes.
    ['a terminal', ['--json', '--tty', '-c', 'read -r line; tty; stty -a | head -n 1']],
  ])('is told without node, in the same bytes: %s', async (_, words) => {
    writeFileSync(join(site.current.work, 'a"b.yaml'), 'sandbox: { extends: default }\n')
    await setTimeout(SETTLE_MS)
    const byNode = withoutEcho(timeless(await runIn(words)))
    expect(byNode.stdout).toMatch(/^\{.*\}\n$/)
    expect(withoutEcho(timeless(await runIn(words, withoutNode)))).toEqual(byNode)
  })

  test.each<readonly [string, readonly string[]]>([
    ['bytes that are no text', printed('\\377')],
    ['more than the cap', json('sh', '-c', `head -c ${MIB + 1} /dev/zero | tr "\\0" x; echo err >&2`)],
    ['a cap within a character', ['--json', '--output', '1k', '-c', 'yes é | head -n 9999; yes a | head -n 999 >&2']],
    ['a cap of the shell form', ['--json=shell', '--output', '10', '--', 'seq', '100']],
    ['a deadline after which it exits', ['--json', '--timeout', '2s', '-c', 'trap "exit 3" TERM; sleep 60 & wait']],
    ['words of a refusal before a signal', json('sh', '-c', 'echo Operation not permitted >&2; kill -SEGV $$')],
    ['too much memory', ['--json', '--memory', '40MiB', '-c', 'x=$(head -c 200M /dev/zero | tr "\\0" x)']],
    ['a failure that may be for want of a path', json('ls', '/root')],
    ['a word that is no text', json('echo', '\ufffd')],
  ])('is told by node, which gets what was captured: %s', async (_, words) => {
    await setTimeout(SETTLE_MS)
    const byNode = timeless(await runIn(words))
    expect(byNode.stdout).toMatch(/^\{.*\}\n$/)
    expect(timeless(await runIn(words))).toEqual(byNode)
  })

  test('is run once, by client and by node', async () => {
    const words = ['--json', '--rw', '.', '-c', 'echo run >>runs; printf "\\377"']
    await setTimeout(SETTLE_MS)
    for (const runs of [1, 2, 3]) {
      await runIn(words)
      expect(readFileSync(join(site.current.work, 'runs'), 'utf8')).toBe('run\n'.repeat(runs))
    }
  })

  test('gives the command the environment of this caller, and leaves none of it in the cache', async () => {
    const words = ['--json=shell', '--env', 'TOKEN', '-c', 'echo $TOKEN']
    await setTimeout(SETTLE_MS)
    await runIn(words, { TOKEN: 'planted-one' })
    expect((await runIn(words, { ...withoutNode, TOKEN: 'planted-two' })).stdout.toString()).toContain('planted-two')
    expect(cachedFiles()).toHaveLength(1)
    expect(readFileSync(cachedFiles()[0] ?? '', 'latin1')).not.toContain('planted')
  })

  const shell = (script: string, command: readonly string[]): readonly string[] => [
    'bash',
    '-c',
    script,
    'bash',
    ...cliWords(command),
  ]

  test.each([
    ['a reader that has gone', '"$@" | true; exit $PIPESTATUS'],
    ['a reader that goes away in between', '"$@" | head -c 9; exit $PIPESTATUS'],
    ['a stdout that is closed', '"$@" >&-'],
    ['a stderr and a stdin that are closed', '"$@" 2>&- <&-'],
    ['a full disk', '"$@" >/dev/full'],
  ])('meets %s in the same way', async (_, script) => {
    const words = shell(script, json('sh', '-c', `head -c ${MIB} /dev/zero; exit 3`))
    await setTimeout(SETTLE_MS)
    const byNode = timeless(await runWords(words))
    expect(timeless(await runWords(words))).toEqual(byNode)
  })

  testWith('python', 'is whole also for a reader that makes no writer wait', async () => {
    const words = ['--json', '--', 'head', '-c', `${MIB}`, '/dev/zero']
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
    const wrapped = ['python3', '-c', slow, ...cliWords(words)]
    await setTimeout(SETTLE_MS)
    await runWords(wrapped)
    const { status, stdout } = await runWords(wrapped, withoutNode)
    expect(status).toBe(0)
    expect(JSON.parse(stdout.toString()).stdout).toHaveLength(MIB)
  })

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('is told after %s, by both ways', async (signal) => {
    const started = join(site.current.work, 'started')
    const words = ['--json', '--rw', '.', '-c', 'echo so far; touch started; exec sleep 60']
    const cancelled: unknown[] = []
    await setTimeout(SETTLE_MS)
    for (const _ of [1, 2]) {
      rmSync(started, { force: true })
      const [file = '', ...argv] = cliWords(words)
      const run = execa(file, argv, callIn(site.current, {}))
      while (!existsSync(started)) await setTimeout(10)
      run.kill(signal)
      const { exitCode, stdout } = await run
      const { reason, message, stdout: text } = JSON.parse(Buffer.from(stdout).toString())
      cancelled.push({ exitCode, reason, message: message.replace(/; \d+ process.*/, ''), text })
    }
    const expected = { exitCode: 130, reason: 'cancelled', message: `cancelled by ${signal}`, text: 'so far\n' }
    expect(cancelled).toEqual([expected, expected])
  })
})

describeWith('bwrap', 'a cached plan is not used', () => {
  const words = ['--profile', './p.yaml', '--', 'cat']
  const profile = (memory: string): void =>
    writeFileSync(
      join(site.current.work, 'p.yaml'),
      `sandbox: { extends: default, resources: { memory: ${memory} } }\n`,
    )

  beforeEach(async () => {
    profile('100m')
    await warm(words)
    expect((await runIn(words, withoutNode)).status).toBe(0)
  })

  const rewrite = (change: (bytes: Buffer) => Buffer | string): void => {
    for (const file of cachedFiles()) writeFileSync(file, change(readFileSync(file)))
  }

  test.each<readonly [string, () => void]>([
    ['when the profile has changed', () => profile('200m')],
    ['when the profile is gone', () => rmSync(join(site.current.work, 'p.yaml'))],
    [
      'when the profile has the same size and times but other content',
      () => {
        const file = join(site.current.work, 'p.yaml')
        profile('900m')
        utimesSync(file, new Date(0), new Date(0))
      },
    ],
    [
      'when a profile that it extends appears earlier in the search order',
      () => {
        const directory = join(site.current.home, '.config', 'llm-do', 'profiles')
        mkdirSync(directory, { recursive: true })
        writeFileSync(join(directory, 'default.yaml'), 'sandbox: {}\n')
      },
    ],
    [
      'when the program that planned it was built anew',
      () => {
        const file = join(dirname(program()), '../dist/cli.cjs')
        writeFileSync(file, readFileSync(file))
      },
    ],
    ['when others may read it', () => chmodSync(cachedFiles()[0] ?? '', 0o644)],
    ['when others may reach its directory', () => chmodSync(cacheOf(site.current), 0o755)],
    [
      'when it is a symbolic link',
      () => {
        const [file = ''] = cachedFiles()
        writeFileSync(`${file}.real`, readFileSync(file), { mode: 0o600 })
        rmSync(file)
        symlinkSync(`${file}.real`, file)
      },
    ],
    ['when it is empty', () => rewrite(() => '')],
    ['when it is cut', () => rewrite((bytes) => bytes.subarray(0, bytes.length - 20))],
    [
      'when a byte is another one',
      () => rewrite((bytes) => Buffer.from(bytes.map((byte, at) => (at === 900 ? byte ^ 1 : byte)))),
    ],
    ['when it is longer', () => rewrite((bytes) => Buffer.concat([bytes, Buffer.from('seccomp\0')]))],
  ])('%s', async (_, change) => {
    change()
    expect((await runIn(words, withoutNode)).status).not.toBe(0)
  })

  /** The secret of the user who runs this test and the command. */
  const secretHere = (): Buffer =>
    takeSecret({ env: { XDG_RUNTIME_DIR: runtimeOf(site.current) }, uid: process.getuid?.() ?? 0 }) ?? Buffer.alloc(0)

  /** With the seal that belongs to it: only what it says is wrong. */
  const forge = (bytes: Buffer, change: (records: string) => string, secret: Uint8Array = secretHere()): Buffer => {
    const [magic = '', check = '', , ...rest] = bytes.toString('latin1').split('\0')
    const records = Buffer.from(change(rest.join('\0')), 'latin1')
    return Buffer.concat([Buffer.from([magic, check, sealOf(secret, records), ''].join('\0')), records])
  }

  const asIs = (records: string): string => records

  describe('that was planted', () => {
    const plant = (change: (records: string) => string, secret?: Uint8Array): void =>
      rewrite((bytes) => forge(bytes, change, secret))

    test('control: it is used with the right key', async () => {
      plant((records) => records.replace('\0hostname\0sandbox\0', '\0hostname\0planted\0'))
      expect((await runIn(words, withoutNode)).status).toBe(0)
    })

    test.each<readonly [string, () => void]>([
      ['with another key', () => plant(asIs, Buffer.alloc(32, 7))],
      ['with an empty key', () => plant(asIs, Buffer.alloc(32))],
      [
        'with a seal that is cut',
        () =>
          rewrite((bytes) =>
            Buffer.from(bytes.toString('latin1').replace(/\0check\0(.{127})./, '\0check\0$1'), 'latin1'),
          ),
      ],
      [
        'with the sum of earlier versions',
        () =>
          rewrite((bytes) =>
            Buffer.from(bytes.toString('latin1').replace(/\0check\0.{128}/, '\0check\0cbf29ce484222325'), 'latin1'),
          ),
      ],
      [
        'with a seal in capital letters',
        () =>
          rewrite((bytes) =>
            Buffer.from(
              bytes.toString('latin1').replace(/\0check\0(.{128})/, (all) => `\0check\0${all.slice(7).toUpperCase()}`),
              'latin1',
            ),
          ),
      ],
      [
        'without a seal',
        () => rewrite((bytes) => Buffer.from(bytes.toString('latin1').replace(/\0check\0.{128}/, ''), 'latin1')),
      ],
      ['with the key, but without places', () => plant((records) => records.replaceAll(/at\0[^\0]*\0[^\0]*\0/g, ''))],
      [
        'with the key, but without files',
        () => plant((records) => records.replaceAll(/content\0[^\0]*\0[^\0]*\0/g, '')),
      ],
      // The name of the file is only a sum of the words that the plan is for.
      [
        'with the key, but for another word',
        () => plant((records) => records.replace(/\0key\0PATH=[^\0]*\0/, '\0key\0PATH=/nowhere\0')),
      ],
      ['with the key, but for a word less', () => plant((records) => records.replace(/\0key\0[^\0]*\0at\0/, '\0at\0'))],
      ['with the key, but for a word more', () => plant((records) => records.replace('\0at\0', '\0key\0more\0at\0'))],
      [
        'with the key, but with an engine that is no path',
        () => plant((records) => records.replace('\0engine\0unshare\0', '\0engine\0bwrap\0word\0bwrap\0')),
      ],
      [
        'with the key, but with an engine that is not there',
        () => plant((records) => records.replace('\0engine\0unshare\0', '\0engine\0bwrap\0word\0/no/such/bwrap\0')),
      ],
      [
        'with the key, but with an engine of an unknown name',
        () => plant((records) => records.replace('\0engine\0unshare\0', '\0engine\0other\0')),
      ],
    ])('%s is not used', async (_, change) => {
      const before = cachedFiles().map((file) => readFileSync(file, 'latin1'))
      change()
      expect(cachedFiles().map((file) => readFileSync(file, 'latin1'))).not.toEqual(before)
      expect((await runIn(words, withoutNode)).status).not.toBe(0)
      // A plan that was used and could not be started would end with 125.
      expect((await runIn(words)).status).toBe(0)
    })

    test.runIf(process.getuid?.() === 0)('with the key, but with an engine of another user is not used', async () => {
      const engine = join(site.current.home, 'bwrap')
      writeFileSync(engine, '#!/bin/sh\n', { mode: 0o755 })
      plant((records) => records.replace('\0engine\0unshare\0', `\0engine\0bwrap\0word\0${engine}\0`))
      // The control: one of root's own is believed, and turns out to be none.
      expect((await runIn(words)).status).toBe(125)
      chownSync(engine, 65_534, 65_534)
      expect((await runIn(words)).status).toBe(0)
    })
  })

  test.runIf(process.getuid?.() !== 0).each<readonly [string, (key: string) => void]>([
    ['is gone', (key) => rmSync(key)],
    ['is another one', (key) => writeFileSync(key, Buffer.alloc(32))],
    ['is too short', (key) => writeFileSync(key, 'short')],
    ['can be read by others', (key) => chmodSync(key, 0o644)],
    ['has a second name', (key) => linkSync(key, `${key}2`)],
    [
      'is a link',
      (key) => {
        renameSync(key, `${key}2`)
        symlinkSync(`${key}2`, key)
      },
    ],
    ['lies in a directory that others may enter', (key) => chmodSync(dirname(key), 0o755)],
    ['lies below a directory that others may write', (key) => chmodSync(join(key, '../..'), 0o777)],
  ])('when the key %s', async (_, change) => {
    change(join(runtimeOf(site.current), 'llm-do/key'))
    expect((await runIn(words, withoutNode)).status).not.toBe(0)
    expect((await runIn(words)).status).toBe(0)
  })

  test.runIf(process.getuid?.() !== 0)('where there is no directory for a key, and nothing is stored', async () => {
    const env = { XDG_RUNTIME_DIR: '' }
    rmSync(cacheOf(site.current), { recursive: true })
    await runIn(words, env)
    expect([cachedFiles(), (await runIn(words, { ...withoutNode, ...env })).status === 0]).toEqual([[], false])
  })

  test.each<readonly [string, (records: string) => string]>([
    ['has an unknown slot', (records) => records.replace('\0stdout\0', '\0secret\0')],
    ['has no end', (records) => records.replace('\0end\0', '\0stdout\0')],
    ['ends twice', (records) => records.replace('\0stdout\0', '\0end\0')],
    ['is there, but nothing is captured', (records) => records.replace('\0capture\x001048576\0', '\0')],
    ['is not there, but the output is captured', (records) => records.replaceAll(/result\0[^\0]*\0[^\0]*\0/g, '')],
    ['keeps a number of bytes that is none', (records) => records.replace('capture\x001048576', 'capture\x00-1')],
  ])('when its answer %s', async (_, change) => {
    const command = ['--json', ...words]
    await warm(command)
    const file = cachedFiles().find((name) => readFileSync(name, 'latin1').includes('\0capture\0')) ?? ''
    const good = readFileSync(file)
    writeFileSync(file, forge(good, asIs))
    expect((await runIn(command, withoutNode)).status).toBe(0)
    const bad = forge(good, change)
    expect(bad).not.toEqual(good)
    writeFileSync(file, bad)
    expect((await runIn(command, withoutNode)).status).not.toBe(0)
    expect(await runIn(command)).toMatchObject({ status: 0 })
  })

  test('for another directory', async () => {
    site.current = { ...site.current, work: join(site.current.work, 'below') }
    mkdirSync(site.current.work)
    expect((await runIn(['--', 'cat'], withoutNode)).status).not.toBe(0)
  })

  test('when the profile has the same size and times but other content, and both were written long ago', async () => {
    const file = join(site.current.work, 'p.yaml')
    const old = (memory: string): void => {
      profile(memory)
      utimesSync(file, new Date(0), new Date(0))
    }
    old('300m')
    await warm(words)
    expect((await runIn(words, withoutNode)).status).toBe(0)
    old('900m')
    expect((await runIn(words, withoutNode)).status).not.toBe(0)
  })

  describeWith('root', 'that is another user’s', () => {
    const OTHER = 12345

    test.each([
      ['its directory', () => cacheOf(site.current), 0o700],
      ['its file', () => cachedFiles()[0] ?? '', 0o600],
    ])('by %s', async (_, of, mode) => {
      const path = of()
      chownSync(path, OTHER, OTHER)
      chmodSync(path, mode)
      expect((await runIn(words, withoutNode)).status).not.toBe(0)
      chownSync(path, 0, 0)
      expect((await runIn(words, withoutNode)).status).toBe(0)
    })
  })

  test('for another PATH', async () => {
    const PATH = `/nowhere:${process.env['PATH']}`
    expect((await runIn(words, { ...withoutNode, PATH })).status).not.toBe(0)
  })
})

/** Each variable that a plan may depend on: src/launch-cache/cache-key.ts and native/client/call.c have the same list. */
const DECIDING: readonly (readonly [name: string, values: (home: string) => readonly [string, string]])[] = [
  ['PATH', () => [`${process.env['PATH']}:/nowhere/one`, `${process.env['PATH']}:/nowhere/two`]],
  ['HOME', (home) => [join(home, 'one'), join(home, 'two')]],
  ['XDG_CONFIG_HOME', (home) => [join(home, 'one'), join(home, 'two')]],
  ['XDG_CACHE_HOME', (home) => [join(home, 'one'), join(home, 'two')]],
  ['XDG_RUNTIME_DIR', (home) => [join(home, 'one'), join(home, 'two')]],
  ['SSH_AUTH_SOCK', (home) => [join(home, 'one'), join(home, 'two')]],
  ['ENABLE_DOCKER', () => ['true', 'false']],
  ['DOCKER_TIMEOUT', () => ['30000', '40000']],
  ['DOCKER_MEMORY_LIMIT', () => ['256m', '300m']],
  ['DOCKER_CPU_LIMIT', () => ['1', '2']],
]

describeWith('userns', 'a plan that was made with a variable set', () => {
  test.each(DECIDING)('%s is started without node for the same value only', async (name, values) => {
    const { home } = site.current
    const [one, two] = values(home)
    for (const directory of [one, two]) if (directory.startsWith(home)) mkdirSync(directory, { mode: 0o700 })
    // Where the cache lies is not what is asked here.
    const base: Record<string, string> = name === 'HOME' ? { XDG_CACHE_HOME: join(home, '.cache') } : {}
    const words = ['--', 'cat']
    await setTimeout(SETTLE_MS)
    await runIn(words, { ...base, [name]: one })
    expect((await runIn(words, { ...base, [name]: one, ...withoutNode })).status).toBe(0)
    if (name === 'XDG_CACHE_HOME') cpSync(one, two, { recursive: true })
    expect((await runIn(words, { ...base, [name]: two, ...withoutNode })).status).not.toBe(0)
  })
})

describe('the store', () => {
  test('never holds a value that came with the command line', async () => {
    await warm(['--env', 'TOKEN=planted-secret', '--', 'true'])
    expect(cachedFiles()).toHaveLength(1)
    expect(readFileSync(cachedFiles()[0] ?? '', 'latin1')).not.toContain('planted')
  })

  test('keeps no plan with a value of the caller’s own profile', async () => {
    writeFileSync(
      join(site.current.work, 'p.yaml'),
      'sandbox: { extends: default, env: { set: { TOKEN: planted-secret } } }\n',
    )
    await warm(['--profile', './p.yaml', '--', 'true'])
    expect(cachedFiles()).toEqual([])
  })

  test('is private', async () => {
    await warm(['--', 'true'])
    expect(cachedFiles()).toHaveLength(1)
    const modes = execFileSync('stat', ['-c', '%a', cacheOf(site.current), ...cachedFiles()], { encoding: 'utf8' })
    expect(modes).toBe('700\n600\n')
  })

  test('is emptied by `llm-do cache clear`', async () => {
    await warm(['--', 'true'])
    const { home, work } = site.current
    await execa(program('llm-do'), ['cache', 'clear'], {
      cwd: work,
      env: { HOME: home, PATH: process.env['PATH'] },
      extendEnv: false,
    })
    expect(cachedFiles()).toEqual([])
  })
})
