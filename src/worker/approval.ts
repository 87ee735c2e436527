/** The question to a person before a command runs, and the meaning of the answers. Pure but for the asking, which is passed in. */
import { createHash } from 'node:crypto'
import { SandboxError } from '../error.ts'
import { canonicalJson } from '../plan/hash.ts'
import { zonesInside } from '../plan/mounts.ts'
import { showNetwork } from '../policy/keys/network-narrowing.ts'
import type { Policy } from '../policy/policy.ts'
import { neutralise } from '../report/text.ts'
import { shellWord } from '../text/shell-word.ts'
import type { Verdict } from './rules.ts'

export const APPROVALS = ['prompt', 'approve_all', 'reject_all'] as const
export type Approval = (typeof APPROVALS)[number]

/** Possible answers: this once, this exact command for the session, no, or stop asking and end. */
export type Answer = 'yes' | 'session' | 'no' | 'quit'

/** Everything that a decision about one command rests on. */
export interface Question {
  readonly command: readonly string[]
  readonly worker: string
  /** Canonical path of the worker's file. */
  readonly workerFile: string
  readonly workshop?: string
  readonly policy: Policy
  /** Canonical directory of the caller. */
  readonly cwd: string
  /** Canonical home directory of the caller, which is never shown unasked. */
  readonly home: string
  /** The rule that asks. */
  readonly why: string
}

/** The text of the question, without control or invisible characters that could paint over it. */
export function questionText(question: Question): string {
  const { command, worker, workshop, policy, why } = question
  return [
    `worker ${worker}${workshop === undefined ? '' : ` in workshop ${workshop}`} wants to run:`,
    `  ${command.map(shellWord).join(' ')}`,
    `zones:   ${zoneWords(question)}`,
    `network: ${showNetwork(policy.network)}`,
    ...(policy.credentials.length === 0
      ? []
      : [`credentials: ${policy.credentials.map(({ file }) => file).join(', ')}`]),
    ...(policy.sshAgent ? ['the SSH agent can be used'] : []),
    ...variableLines(policy),
    `because: ${why}`,
    '[y]es once, [s]ession: this very command from now on, [n]o, [q]uit? ',
  ]
    .map(neutralise)
    .join('\n')
}

/** A variable of a worker can decide what the command does (LD_PRELOAD). Values of the operator can be secrets: only their names are shown. */
function variableLines({ env, origins }: Policy): readonly string[] {
  const isWorkers = (name: string): boolean => !Object.hasOwn(origins, `env.set.${name}`)
  const set = Object.entries(env.set).map(([name, value]) => (isWorkers(name) ? `${name}=${shellWord(value)}` : name))
  return set.length === 0 ? [] : [`sets:    ${set.join(', ')}`]
}

/** Everything that is visible, the caller's directory too where no zone names it. */
function zoneWords({ policy, cwd, home }: Question): string {
  const zones = zonesInside(policy, { cwd, home })
  if (zones.length === 0) return 'none'
  return zones
    .map(({ target, source, mode }) => `${target} (${[mode, source].filter((word) => word !== undefined).join(', ')})`)
    .join(', ')
}

const ANSWERS: Readonly<Record<string, Answer>> = {
  y: 'yes',
  yes: 'yes',
  s: 'session',
  session: 'session',
  n: 'no',
  no: 'no',
  q: 'quit',
  quit: 'quit',
}

/** undefined for anything but an answer: a yes is never given by accident. */
export function readAnswer(text: string): Answer | undefined {
  const word = text.trim().toLowerCase()
  return Object.hasOwn(ANSWERS, word) ? ANSWERS[word] : undefined
}

/**
 * The key of a session's approval: the exact words, and the whole policy they would run under, values of variables included. It leaves out
 * who set a key, and which files of this machine are protected.
 */
export function approvalKey({ command, worker, workerFile, workshop, policy, cwd }: Question): string {
  const { profile: _, origins: __, protectFiles: ___, zones, credentials, ...rest } = policy
  const wanted = { ...rest, zones: zones.map(withoutOrigin), credentials: credentials.map(withoutOrigin) }
  const facts = [command, worker, workerFile, workshop ?? '', cwd, wanted]
  return createHash('sha256').update(canonicalJson(facts)).digest('hex')
}

const withoutOrigin = <T extends { readonly origin: unknown }>({ origin: _, ...rest }: T): Omit<T, 'origin'> => rest

/** The approvals of a session. */
export interface Memory {
  readonly has: (key: string) => Promise<boolean>
  readonly add: (key: string) => Promise<void>
}

export interface Settled {
  readonly run: boolean
  /** The decider, for the audit: `rule "git log"`, `user`, `session`, `--approval approve_all`, `no terminal`. */
  readonly by: string
  readonly why: string
}

export interface Settling {
  readonly verdict: Verdict
  readonly approval: Approval
  readonly question: Question
  readonly memory: Memory
  /** Prints the text and waits for an answer; undefined without a terminal. `key` is the name under which the answer is remembered. */
  readonly ask: (text: string, key: string) => Promise<Answer | undefined>
}

/** The recorded decider where the question needs a terminal and has none. */
const UNASKED = 'no terminal'

/** The decider of record where an option answers. */
export const answeredBy = (approval: Exclude<Approval, 'prompt'>): string => `--approval ${approval}`

/** Makes yes or no of a verdict. A block stays a block whatever `--approval` says, and no terminal means no. */
export async function settle(settling: Settling): Promise<Settled> {
  const { verdict, approval, question, memory, ask } = settling
  if (verdict.decision !== 'ask') return { run: verdict.decision === 'run', by: verdict.by, why: verdict.why }
  if (approval !== 'prompt') return { run: approval === 'approve_all', by: answeredBy(approval), why: verdict.why }
  const key = approvalKey(question)
  if (await memory.has(key)) return { run: true, by: 'session', why: 'approved before in this session' }
  const answer = await ask(questionText(question), key)
  if (answer === undefined)
    return { run: false, by: UNASKED, why: `${verdict.why}, and there is no terminal to ask on` }
  if (answer === 'session') await memory.add(key)
  return { run: answer === 'yes' || answer === 'session', by: 'user', why: `the answer was ${answer}` }
}

/**
 * The refusal of a command that may not run, exit status 126.
 * @param word the name or path by which the worker was asked for
 */
export function blockedError(input: {
  readonly worker: string
  readonly word: string
  readonly by: string
  readonly why: string
  readonly needsShellSyntax?: true
}): SandboxError {
  const message = neutralise(`worker ${input.worker} may not run this command: ${input.why}.`)
  return new SandboxError('COMMAND_BLOCKED', message, { hint: wayOut(input) })
}

function wayOut({ by, word, needsShellSyntax }: Parameters<typeof blockedError>[0]): string {
  if (needsShellSyntax)
    return '--allow-shell-syntax   (each command of the text is then judged by the rules, what a substitution runs is asked for)'
  return by === UNASKED
    ? 'run it at a terminal, or answer with --approval approve_all, or give its rule approval: preApproved'
    : `llm-do workers show ${shellWord(word)}   (its rules, and where they are written)`
}

/** Remembers in this process only. */
export function processMemory(): Memory {
  const keys = new Set<string>()
  return { has: async (key) => keys.has(key), add: async (key) => void keys.add(key) }
}
