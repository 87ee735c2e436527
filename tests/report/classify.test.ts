import { describe, expect, test } from 'vitest'
import type { Outcome, SetupFailure } from '../../src/backends/outcome.ts'
import { SandboxError } from '../../src/error.ts'
import type { PlannedZone } from '../../src/plan/plan.ts'
import { classify, refusal } from '../../src/report/classify.ts'
import type { InvisiblePath } from '../../src/report/hints.ts'
import { capture, outcome, plan, UNBUILT } from './fixtures.ts'

const origins = {
  'resources.timeout': [
    { layer: 'built-in', source: 'built-in', key: 'resources.timeout' },
    { layer: 'profile', source: 'profiles/ci.yaml', key: 'resources.timeout' },
  ],
} as const

function resultOf(more: Partial<Outcome>) {
  return classify(plan(), outcome(more), ['x'], { origins })
}

describe('a result', () => {
  test('is a success only for exit code 0 without a limit, a signal or a filter', () => {
    const ends: readonly Partial<Outcome>[] = [{}, { exitCode: 3 }, { reason: 'timeout' }, { reason: 'disk' }]
    expect(ends.map((end) => resultOf(end).ok)).toEqual([true, false, false, false])
  })
})

describe('a command that cannot be executed says why', () => {
  const failed = (errno: string, detail = ''): SetupFailure => ({
    code: errno === 'ENOENT' && detail === '' ? 'COMMAND_NOT_FOUND' : 'COMMAND_NOT_EXECUTABLE',
    step: 'init: execve',
    path: 'prog',
    errno,
    detail,
  })
  const ODD = 'COMMAND_NOT_EXECUTABLE'
  const rows: readonly [string, SetupFailure, number, string, RegExp][] = [
    ['a missing command', failed('ENOENT'), 127, 'COMMAND_NOT_FOUND', /^prog: not found in the sandbox$/],
    ['a missing interpreter', failed('ENOENT', 'interpreter /bin/nope'), 126, ODD, /interpreter.*\/bin\/nope/],
    ['no permission', failed('EACCES'), 126, ODD, /permission denied/],
    ['a directory', failed('EISDIR'), 126, ODD, /is a directory/],
    ['a foreign architecture', failed('ENOEXEC'), 126, ODD, /wrong architecture/],
    ['anything else', failed('EIO'), 126, ODD, /EIO/],
  ]
  test.each(rows)('%s', (_, failure, status, code, message) => {
    const result = classify(plan(), outcome({ reason: 'setup', exitCode: null, failure }), ['prog'])
    expect(result).toMatchObject({ reason: 'setup', exitCode: null, error: { code } })
    expect(result.exitStatus).toBe(status)
    expect(result.error?.message).toMatch(message)
    expect(result.hints[0]).toBe(result.error?.hint)
  })

  test('an empty word is a command that is not found', () => {
    const result = classify(plan(), outcome({ reason: 'setup', exitCode: null, failure: failed('ENOENT') }), [''])
    expect([result.exitStatus, result.error?.message]).toEqual([127, "'': not found in the sandbox"])
  })
})

test('a sandbox that could not be built is exit status 125 with step, object and errno', () => {
  const failure = { ...UNBUILT, step: 'stager: open_tree', path: '/srv/x', errno: 'EPERM', detail: 'no' }
  const result = classify(plan(), outcome({ reason: 'setup', exitCode: null, failure }), ['x'])
  expect([result.reason, result.exitStatus, result.error?.code]).toEqual(['setup', 125, 'SETUP_FAILED'])
  for (const word of ['stager: open_tree', '/srv/x', 'EPERM']) expect(result.error?.message).toContain(word)
})

test.each<[string, Partial<SetupFailure>, string, string]>([
  [
    'a workspace that cannot be entered',
    { step: 'init: chdir', path: '/workspace/sub', errno: 'EACCES' },
    "init: chdir /workspace/sub: EACCES: the command's user may not enter /srv/it's/sub",
    "chmod o+rx '/srv/it'\\''s/sub', or run llm-do as a plain user",
  ],
  [
    'a working directory that no zone shows',
    { step: 'init: chdir', path: '/opt', errno: 'EACCES' },
    'may not enter /opt ',
    'chmod o+rx /opt,',
  ],
  [
    "root's writable zone where there are no idmapped mounts",
    { step: 'stage: idmap zone of root', path: '/mnt/out', errno: 'EINVAL' },
    "stage: idmap zone of root /mnt/out: EINVAL: /mnt/out is root's",
    'chown -R USER /mnt/out;',
  ],
])('%s is told with the host path, why, and what to do', (_, failure, message, hint) => {
  const zones = [{ source: "/srv/it's", target: '/workspace' } as PlannedZone]
  const broken = { ...UNBUILT, ...failure }
  const { error } = classify(plan({ zones }), outcome({ reason: 'setup', exitCode: null, failure: broken }), ['x'])
  expect(error?.code).toBe('SETUP_FAILED')
  expect(error?.message).toContain(message)
  expect(error?.hint).toContain(hint)
})

test('a failure that is known is explained, with the fix for the engine that ran', () => {
  const failure = { ...UNBUILT, step: 'bwrap', detail: 'bwrap: setting up uid map: Permission denied' }
  const program = '/opt/bwrap'
  const result = classify(plan(), outcome({ reason: 'setup', exitCode: null, failure }), ['x'], { program })
  expect(result.error?.message).toContain('AppArmor')
  expect(result.error?.hint).toContain(program)
})

describe('the message', () => {
  test('of a timeout names the limit, who set it, and what was killed', () => {
    expect(resultOf({ reason: 'timeout', killed: 2 }).message).toBe(
      'stopped after 30s (resources.timeout, profiles/ci.yaml); 2 processes killed',
    )
  })
  test('of a memory kill names the size', () => {
    expect(resultOf({ reason: 'memory', exitCode: null, signal: 'SIGKILL' }).message).toBe(
      'killed at the memory limit of 512MiB (resources.memory)',
    )
  })
  test('counts what was dropped of the output', () => {
    const stdout = capture('head', { tail: Buffer.from('tail'), bytes: 8 + 2048 })
    const result = resultOf({ stdout })
    expect(result.message).toBe('output kept 8B, dropped 2KiB')
    expect([result.reason, result.ok, result.truncated.stdout, result.stdout]).toEqual(['exit', true, 2048, 'headtail'])
    expect(result.hints).toEqual(['raise --output or resources.output'])
  })
  const quiet: readonly [string, Partial<Outcome>][] = [
    ['a success', {}],
    ['a failing command', { exitCode: 1 }],
    ['a pipe that closed early', { exitCode: null, signal: 'SIGPIPE' }],
    ['processes that were swept up after a success', { killed: 3 }],
  ]
  test.each(quiet)('is empty for %s', (_, more) => {
    expect(resultOf(more)).toMatchObject({ message: '', hints: [], warnings: [] })
  })
})

test('a warning tells of processes that were killed at the memory limit while the command went on', () => {
  const events = { oomKill: 2, pidsMax: 0, throttledMs: 0 }
  const warnings = ['2 processes killed at the memory limit, the command went on']
  expect(resultOf({ events })).toMatchObject({ ok: true, reason: 'exit', warnings })
  expect(resultOf({ events, reason: 'memory', exitCode: null })).toMatchObject({ reason: 'memory', warnings: [] })
})

describe('hints', () => {
  const FORKS = { oomKill: 0, pidsMax: 1, throttledMs: 0 }
  const rows: readonly [string, Partial<Outcome>, string][] = [
    ['a timeout', { reason: 'timeout' }, 'raise --timeout or resources.timeout, for example --timeout 1m'],
    ['a memory kill', { reason: 'memory' }, 'raise --memory or resources.memory, for example --memory 1g'],
    ['the cpu-time limit', { reason: 'cpu-time' }, 'raise --cpu-time or resources.cpuTime, for example --cpu-time 4s'],
    ['refused forks', { exitCode: 1, events: FORKS }, 'raise --pids or resources.pids, for example --pids 64'],
  ]
  test.each(rows)('after %s name the flag to raise', (_, more, hint) => {
    expect(resultOf(more).hints).toEqual([hint])
  })

  const rlimit = plan({ limits: { pids: { max: 16, by: 'rlimit' } } })
  const peak = (peakPids: number) => ({ cpuMs: 1, peakMemory: 2, peakPids })
  const crowds: readonly [string, Partial<Outcome>, boolean][] = [
    ['it left as many as it may have, itself included', { exitCode: 1, killed: 15 }, true],
    ['it left one less', { exitCode: 1, killed: 14 }, false],
    ['the watchdog saw as many in addition to the two of the sandbox', { exitCode: 1, usage: peak(18) }, true],
    ['the watchdog saw one less', { exitCode: 1, usage: peak(17) }, false],
    ['a signal ended it in a full house', { exitCode: null, signal: 'SIGABRT', killed: 15 }, true],
    ['it was killed with all the rest', { reason: 'timeout', exitCode: null, killed: 16 }, true],
    ['it succeeded', { killed: 40, usage: peak(60) }, false],
  ]
  test.each(crowds)('where nothing counts refused processes: %s', (_, more, expected) => {
    const { reason, hints } = classify(rlimit, outcome(more), ['x'])
    expect(reason).not.toBe('pids')
    expect(hints.some((hint) => hint.includes('raise --pids or resources.pids'))).toBe(expected)
  })

  test('guess nothing about processes where the kernel counts refusals', () => {
    expect(resultOf({ exitCode: 1, killed: 40, usage: peak(60) }).hints).toEqual([])
  })

  test('name the flag that shows a path, quoted for a shell, when the command failed', () => {
    const invisible = [{ path: "/srv/it's here", flags: "--ro '/srv/it'\\''s here'" }]
    const result = classify(plan(), outcome({ exitCode: 1 }), ['cat', "/srv/it's here"], { invisible })
    expect(result.hints[0]).toContain(`to show it: --ro '/srv/it'\\''s here'`)
    expect([result.reason, result.denials]).toEqual(['exit', []])
    expect(classify(plan(), outcome(), ['cat', "/srv/it's here"], { invisible }).hints).toEqual([])
  })
})

test.each([
  ['a peak of processes that was not counted is left out', { peakPids: 0 }, {}],
  ['counted bytes of disks are told, none of them, too', { peakPids: 3, readBytes: 0 }, { peakPids: 3, readBytes: 0 }],
])('usage: %s', (_title, counted, told) => {
  const usage = { cpuMs: 1, peakMemory: 2 }
  expect(resultOf({ usage: { ...usage, ...counted } }).usage).toEqual({ ...usage, ...told })
})

describe('denials', () => {
  const MIB = 1024 ** 2
  const tmp = { target: '/tmp', size: 50 * MIB, inodes: 1, mode: 0o1777 }
  const events = { oomKill: 0, pidsMax: 0, throttledMs: 0 }
  const denied = (
    more: Partial<Outcome>,
    planned: Parameters<typeof plan>[0] = {},
    hidden: readonly InvisiblePath[] = [],
  ) => classify(plan({ scratch: [tmp], ...planned }), outcome({ exitCode: 1, ...more }), ['x'], { hidden }).denials

  const killed = { exitCode: null, signal: 'SIGSYS' }
  const attempts = { count: 1, first: [{ path: '/srv/.git', aside: '.git.set-aside', gone: false }] }
  const guarded = {
    reason: 'protected',
    guarded: { attempts, setId: { count: 0, first: [] }, configLocked: false },
  } as const
  const rows: readonly [string, Partial<Outcome>, object][] = [
    [
      'memory beyond the limit',
      { exitCode: null, signal: 'SIGKILL', events: { ...events, oomKill: 2 } },
      { layer: 'limit', operation: 'allocate', count: 2, fix: '--memory 1g', key: 'resources.memory' },
    ],
    [
      'a process beyond the limit',
      { events: { ...events, pidsMax: 9 } },
      { layer: 'limit', operation: 'fork', count: 9, fix: '--pids 64', key: 'resources.pids' },
    ],
    ['a full /tmp', { full: ['/tmp'] }, { operation: 'write', target: '/tmp', fix: '--tmp 100m', evidence: 'sandbox' }],
    ['a killed system call', killed, { layer: 'seccomp', operation: 'syscall', fix: '--seccomp off', key: 'seccomp' }],
    ['a protected name', guarded, { layer: 'guard', operation: 'create', target: '/srv/.git', fix: '' }],
  ]
  test.each(rows)('%s', (_, more, expected) => {
    expect(denied(more)).toEqual([expect.objectContaining(expected)])
  })

  test('what no filter lets through for root has no flag', () => {
    expect(denied(killed, { identity: 'fresh' })).toMatchObject([{ layer: 'seccomp', fix: '', key: '' }])
  })

  test('what stderr says of a file system that is known to be full is no second row', () => {
    const stderr = capture("dd: error writing '/tmp/x': No space left on device")
    expect(denied({ stderr })).toMatchObject([{ target: '/tmp/x', evidence: 'stderr' }])
    expect(denied({ stderr, full: ['/tmp'] })).toMatchObject([{ target: '/tmp', evidence: 'sandbox' }])
  })

  test('a command that succeeded was not denied what it printed', () => {
    const stderr = capture("touch: cannot touch '/opt/x': Read-only file system")
    expect(denied({ stderr }, {}, [{ path: '/opt/y' }])).toMatchObject([{ target: '/opt/x' }, { target: '/opt/y' }])
    expect(denied({ stderr, exitCode: 0, full: ['/tmp'] }, {}, [{ path: '/opt/y' }])).toEqual([])
  })
})

test('the isolation of the process backend claims nothing', () => {
  const isolation = { fs: 'host', pid: false, net: 'host', ipc: false, user: false, seccomp: 'off' }
  expect(classify(plan({ backend: 'process' }), outcome(), ['x']).isolation).toEqual(isolation)
})

describe('a refusal is a result too', () => {
  test('with every problem in the message', () => {
    const error = new SandboxError('POLICY_INVALID', 'a.yaml: 2 problems', { problems: ['one', 'two'], hint: 'fix it' })
    const result = refusal(error, ['x'], 'ci')
    expect([result.reason, result.backend, result.exitStatus]).toEqual(['setup', null, 125])
    expect(result.error).toEqual({ code: 'POLICY_INVALID', message: 'a.yaml: 2 problems\none\ntwo', hint: 'fix it' })
  })
  test('and denied with status 126 when a rule blocked the command', () => {
    const result = refusal(new SandboxError('COMMAND_BLOCKED', 'no'), ['x'], 'ci')
    expect([result.reason, result.exitStatus]).toEqual(['denied', 126])
  })
})
