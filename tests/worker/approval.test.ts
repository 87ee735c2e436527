import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runsDirectory } from '../../src/host/own-directory.ts'
import type { Policy } from '../../src/policy/policy.ts'
import type { Credential } from '../../src/policy/values.ts'
import {
  type Answer,
  type Approval,
  approvalKey,
  processMemory,
  type Question,
  questionText,
  readAnswer,
  settle,
} from '../../src/worker/approval.ts'
import { approvalsDirectory, sessionMemory } from '../../src/worker/approval-store.ts'
import type { Verdict } from '../../src/worker/rules.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { operator } from './support.ts'

const question = (more: Partial<Question> = {}): Question => ({
  command: ['git', 'commit', '-m', 'it is'],
  worker: 'w',
  workerFile: '/project/w.worker',
  policy: operator({ rw: ['./out:/out'] }),
  cwd: '/project',
  home: '/home/ann',
  why: 'w.worker:3: default says ask',
  ...more,
})
const CREDENTIAL: Credential = {
  file: '/home/ann/.netrc',
  target: '/home/sandbox/.netrc',
  origin: { layer: 'flag', source: 'x', key: 'credentials' },
}
/** The policy of the question, and what differs. */
const policyWith = (changes: Partial<Policy>): Policy => ({ ...operator({ rw: ['./out:/out'] }), ...changes })
/** As a worker sets variables. */
const setting = (set: Policy['env']['set']): Policy => policyWith({ env: { inherit: [], set } })
const ASK: Verdict = { decision: 'ask', by: 'default', why: 'why' }
const settled = async (input: {
  readonly verdict?: Verdict
  readonly approval?: Approval
  readonly reply?: Answer
  readonly memory?: ReturnType<typeof processMemory>
  readonly shown?: Question
}) => {
  const { verdict = ASK, approval = 'prompt', reply, memory = processMemory(), shown = question() } = input
  const { run, by } = await settle({ verdict, approval, question: shown, memory, ask: async () => reply })
  return `${run ? 'runs' : 'stays'} by ${by}`
}

test('the question shows command, worker, zones with modes, network and reason', () => {
  expect(questionText(question()).split('\n')).toEqual([
    'worker w wants to run:',
    "  git commit -m 'it is'",
    'zones:   /workspace (ro, /project), /out (rw, /project/out)',
    'network: none',
    'because: w.worker:3: default says ask',
    '[y]es once, [s]ession: this very command from now on, [n]o, [q]uit? ',
  ])
})

test('the question shows what a worker sets, and only the names of what the operator does', () => {
  const policy = operator({ env: ['SECRET=1'] })
  const env = { ...policy.env, set: { ...policy.env.set, LD_PRELOAD: '/workspace/e vil.so\u3164' } }
  const lines = questionText(question({ policy: { ...policy, env } })).split('\n')
  expect(lines[4]).toBe("sets:    SECRET, LD_PRELOAD='/workspace/e vil.so\\u{3164}'")
})

test.each([
  ['nothing is named', {}, '/workspace (ro, /project)'],
  ['only a directory in memory is named', { tmpfs: ['/scratch'] }, '/workspace (ro, /project), /scratch (tmpfs)'],
  [
    'a directory in the project is named',
    { rw: ['./src'] },
    '/workspace (ro, /project), /workspace/src (rw, /project/src)',
  ],
  ['another directory is named', { ro: ['/data'] }, '/workspace (ro, /project), /data (ro, /data)'],
  ['the directory itself is named', { rw: ['.'] }, '/workspace (rw, /project)'],
  ['the directory is taken away', { ro: ['/data'], 'no-workspace': true }, '/data (ro, /data)'],
])('the question says what is visible and where when %s', (_title, given, zones) => {
  const policy = operator(given, { profile: { workspace: 'ro' } })
  expect(questionText(question({ policy })).split('\n')[2]).toBe(`zones:   ${zones}`)
})

test('nothing in a command can paint over the question', () => {
  const text = questionText(question({ command: ['ls', '\u001b[2J', 'a\nb', '\u202e', '\r'] }))
  expect(text.split('\n')).toHaveLength(6)
  expect(text).toContain("ls '\\u{1b}[2J' 'a\\u{a}b' '\\u{202e}' '\\u{d}'")
})

describe('who decides', () => {
  const [RUN, BLOCK]: readonly Verdict[] = [
    { decision: 'run', by: 'rule "x"', why: '' },
    { decision: 'block', by: 'no rule', why: '' },
  ]
  test.each<[string, Parameters<typeof settled>[0], string]>([
    ['a rule that lets run', { verdict: RUN! }, 'runs by rule "x"'],
    ['a rule that blocks', { verdict: BLOCK! }, 'stays by no rule'],
    ['a block under approve_all', { verdict: BLOCK!, approval: 'approve_all' }, 'stays by no rule'],
    ['a rule that lets run under reject_all', { verdict: RUN!, approval: 'reject_all' }, 'runs by rule "x"'],
    ['approve_all', { approval: 'approve_all' }, 'runs by --approval approve_all'],
    ['reject_all', { approval: 'reject_all' }, 'stays by --approval reject_all'],
    ['yes', { reply: 'yes' }, 'runs by user'],
    ['session', { reply: 'session' }, 'runs by user'],
    ['no', { reply: 'no' }, 'stays by user'],
    ['quit', { reply: 'quit' }, 'stays by user'],
    ['no terminal', {}, 'stays by no terminal'],
  ])('%s', async (_, input, expected) => {
    expect(await settled(input)).toBe(expected)
  })
})

test.each<[string, Answer | undefined]>([
  ['y', 'yes'],
  [' YES \n', 'yes'],
  ['s', 'session'],
  ['n', 'no'],
  ['quit', 'quit'],
  ['', undefined],
  ['yeah', undefined],
  ['constructor', undefined],
])('%j is the answer %s', (text, reply) => {
  expect(readAnswer(text)).toBe(reply)
})

describe('what is approved for a session', () => {
  test('is this very command, and no other', async () => {
    const memory = processMemory()
    await settled({ memory, reply: 'session' })
    expect(await settled({ memory })).toBe('runs by session')
    expect(await settled({ memory, shown: question({ command: ['git', 'commit', '-m', 'it', 'is'] }) })).toBe(
      'stays by no terminal',
    )
  })

  test('yes is for once', async () => {
    const memory = processMemory()
    await settled({ memory, reply: 'yes' })
    expect(await settled({ memory })).toBe('stays by no terminal')
  })

  test.each<[string, Partial<Question>]>([
    ['another worker', { workerFile: '/project/v.worker' }],
    ['another directory', { cwd: '/project/sub' }],
    ['wider zones', { policy: operator({ rw: ['.:/out'] }) }],
    ['another network', { policy: operator({ rw: ['./out:/out'], net: 'host' }) }],
    ['a workshop', { workshop: 's' }],
    ['credentials', { policy: policyWith({ credentials: [CREDENTIAL] }) }],
    ['the SSH agent', { policy: policyWith({ sshAgent: true }) }],
    ['another backend', { policy: policyWith({ backend: 'process' }) }],
    ['another workspace', { policy: policyWith({ workspace: 'rw' }) }],
    ['the same path inside', { policy: policyWith({ samePath: true }) }],
    ['variables', { policy: setting({ LD_PRELOAD: '/workspace/evil.so' }) }],
    ['another filter', { policy: policyWith({ seccomp: 'off' }) }],
    ['another limit', { policy: operator({ rw: ['./out:/out'], timeout: '1h' }) }],
    ['values of the operator', { policy: operator({ rw: ['./out:/out'], env: ['SECRET=1'] }) }],
  ])('does not hold for %s', (_, more) => {
    expect(approvalKey(question(more))).not.toBe(approvalKey(question()))
    expect(approvalKey(question(more))).toBe(approvalKey(question(more)))
  })

  test('tells one value of a variable from another, and asks no more for who set it', () => {
    const keyOf = (policy: Policy) => approvalKey(question({ policy }))
    expect(keyOf(setting({ A: '1' }))).not.toBe(keyOf(setting({ A: '2' })))
    expect(keyOf(policyWith({ origins: {}, protectFiles: ['/x'] }))).toBe(approvalKey(question()))
  })

  test('tells one credential file from another at the same place', () => {
    const keyOf = (file: string) =>
      approvalKey(question({ policy: policyWith({ credentials: [{ ...CREDENTIAL, file }] }) }))
    expect(keyOf('/a')).not.toBe(keyOf('/b'))
  })

  const uid = process.getuid?.() ?? 0
  /** Memories as two processes of one session have them: `leader` leads it; its child, whose number is passed on, stays. */
  const inSession = async (leader: string) => {
    const directory = path.join(await temporaryDirectory(), 'approvals')
    const child = spawn('/bin/sh', ['-c', leader], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
    onTestFinished(() => void child.stdin.end()) // what every process of the session waits for
    const ended = once(child, 'exit') // A leader may end before its output is read.
    const [member] = await once(child.stdout, 'data')
    const memory = () => sessionMemory({ directory, uid, member: String(member).trim() })
    return { directory, memory, ended }
  }
  const LED = 'exec 3<&0; cat <&3 & echo $!; wait'
  const LEADERLESS = 'exec 3<&0; cat <&3 & echo $!'

  test('outlives the process in a directory of the user’s own', async () => {
    const { directory, memory } = await inSession(LED)
    await memory().add('key')
    const later = memory()
    expect([await later.has('key'), await later.has('ke'), await later.has('')]).toEqual([true, false, false])
    const [file = ''] = await readdir(directory)
    expect((await stat(path.join(directory, file))).mode & 0o777).toBe(0o600)
  })

  test('is forgotten where others can write', async () => {
    const { directory, memory } = await inSession(LED)
    await memory().add('key')
    expect(await memory().has('key')).toBe(true)
    await chmod(directory, 0o777)
    expect(await memory().has('key')).toBe(false)
    await chmod(directory, 0o700)
    const [file = ''] = await readdir(directory)
    await chmod(path.join(directory, file), 0o666)
    expect(await memory().has('key')).toBe(false)
  })

  test('is not shared in another session', async () => {
    const { directory, memory } = await inSession(LED)
    await memory().add('key')
    const other = await inSession(LED)
    const [file = ''] = await readdir(directory)
    await other.memory().add('another')
    await cp(path.join(directory, file), path.join(other.directory, file))
    expect(await other.memory().has('key')).toBe(false)
  })

  test('ends with the process where the session’s leader is gone', async () => {
    const { memory, ended } = await inSession(LEADERLESS)
    await ended
    const first = memory()
    await first.add('key')
    expect([await first.has('key'), await memory().has('key')]).toEqual([true, false])
  })

  test('is kept next to the records of live runs', () => {
    const uid = process.getuid?.() ?? 0
    const env = { XDG_RUNTIME_DIR: '/run/user/7' }
    expect(approvalsDirectory(env, uid)).toBe(path.join(runsDirectory(env, uid), '../approvals'))
  })
})
