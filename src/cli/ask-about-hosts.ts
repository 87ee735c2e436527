/**
 * `--ask-hosts`: the person decides about a host while the command waits for its connection. The command has no terminal meanwhile: its input
 * is empty unless it was redirected, and its output comes through this program, which holds it back while a question is on the screen. So it
 * can neither answer nor paint over a question.
 * Edge: the controlling terminal, stdio, the clock.
 */
import { isatty } from 'node:tty'
import { programOfPort } from '../host/program-of-port.ts'
import { parseRule } from '../network/host-rule.ts'
import { askTerminal, hasTerminal } from '../os/ask-terminal.ts'
import { realOf } from '../os/look.ts'
import type { Plan } from '../plan/plan.ts'
import { isWithin } from '../plan/well-known-paths.ts'
import { addAllowedHost, profileToChange } from '../policy/add-allowed-host.ts'
import { neutralise } from '../report/text.ts'
import { profileDirectories } from '../run/caller.ts'
import { allowWords, type LiveNetwork, startedNetwork } from '../run/live-network.ts'
import type { ExecOptions } from '../run/plan-run.ts'
import type { Environment } from './call.ts'
import { listRuns } from './run-records.ts'
import { writeBytes, writeStderr } from './stdio.ts'
import { usageError } from './usage-error.ts'

type Answer = 'run' | 'profile' | 'no'

/** Milliseconds: less than the helper waits (native/net/questions.c), so that no answer comes too late. */
const PATIENCE_MS = 55_000

interface Question {
  readonly host: string
  readonly port: number
  /** As it calls itself. */
  readonly program: string | undefined
  /** The file that an answer can be written to. */
  readonly profile: string | undefined
}

/** The name alone on its line: a long one cannot push the rest out of sight. A name in another alphabet is in its DNS form. */
export function hostQuestion({ host, port, program = 'a program', profile }: Question): string {
  const foreign = /(^|\.)xn--/.test(host) ? ' (letters of another alphabet: look twice)' : ''
  return [
    `llm-do: ${program} connects to port ${port} of`,
    `  ${host}${foreign}`,
    `llm-do: allow it? [y]es for this run${profile === undefined ? '' : `, [p]rofile ${profile}`}, [N]o `,
  ]
    .map(neutralise)
    .join('\n')
}

const ANSWERS: Readonly<Record<string, Answer>> = { y: 'run', yes: 'run', p: 'profile', profile: 'profile' }
const NO: Readonly<Record<string, Answer>> = { '': 'no', n: 'no', no: 'no' }

/** Nothing is a yes by accident. */
function readAnswer(line: string, profile: string | undefined): Answer | undefined {
  const word = line.trim().toLowerCase()
  const answer = { ...ANSWERS, ...NO }[word]
  return answer === 'profile' && profile === undefined ? undefined : answer
}

/** Output waits while a question is on the screen. */
class Screen {
  private busy: Promise<unknown> = Promise.resolve()

  async write(stream: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void> {
    await this.busy
    await writeBytes(stream, bytes)
  }

  async ask(question: Question, ended: AbortSignal): Promise<Answer> {
    const asked = askTerminal<Answer>({
      text: hostQuestion(question),
      read: (line) => readAnswer(line, question.profile),
      again: 'y or n? ',
      silence: 'no',
      signal: AbortSignal.any([ended, AbortSignal.timeout(PATIENCE_MS)]),
    })
    this.busy = asked.catch(() => undefined)
    return (await asked) ?? 'no'
  }
}

interface Asking {
  readonly env: Environment
  readonly profile: string | undefined
  readonly screen: Screen
}

async function answer(network: LiveNetwork, { question, answer }: { question: Question; answer: Answer }) {
  const { host, port, profile } = question
  const rule = parseRule(`${host}:${port}`)
  if (answer === 'no' || rule === undefined) return network.say('refuse', host, String(port))
  network.say(...allowWords(rule))
  if (answer !== 'profile' || profile === undefined) return
  const problem = addAllowedHost(profile, `${host}:${port}`)
  await writeStderr([`llm-do: ${neutralise(problem ?? `${profile}: network.allow has ${host}:${port} now`)}`])
}

async function answerAll({ env, profile, screen }: Asking, runId: string, ended: AbortSignal): Promise<void> {
  const network = await startedNetwork(env, runId, ended)
  if (network === undefined) return
  network.say('ask')
  for await (const [kind, host = '', port, source] of network.lines) {
    if (kind !== 'question') continue
    const launcher = listRuns(env).find(({ id }) => id === runId)?.pid
    const program = launcher === undefined ? undefined : programOfPort(launcher, Number(source))
    const question = { host, port: Number(port), program, profile }
    await answer(network, { question, answer: await screen.ask(question, ended) })
  }
}

/** There the command could write the new file before it has its name, and the guard would set it aside. */
const isInWritable = (profile: string, zones: Plan['zones']): boolean =>
  zones.some(({ mode, source }) => mode === 'rw' && isWithin(realOf(profile) ?? profile, source))

/** @throws SandboxError USAGE without a person to ask: before the command has run */
export function askAboutHosts(isForPeople: boolean, env: Environment): (options: ExecOptions) => ExecOptions {
  if (!isForPeople || !hasTerminal())
    throw usageError(
      `--ask-hosts needs a terminal${isForPeople ? '' : ', and no --json'}.`,
      'llm-do exec --allow-host HOST, or --allow-later and llm-do allow',
    )
  const screen = new Screen()
  return ({ answerHosts: _, ...options }) => ({
    ...options,
    mode: 'capture',
    stdin: isatty(0) ? 'ignore' : 'inherit',
    hasTerminal: false,
    onStdout: (bytes) => screen.write('stdout', bytes),
    onStderr: (bytes) => screen.write('stderr', bytes),
    answerHosts: (runId, ended, { zones }) => {
      const directories = profileDirectories(env, env['HOME'] ?? '')
      const profile = profileToChange(options.profile ?? 'default', options.cwd ?? '/', directories)
      const isOutside = profile !== undefined && !isInWritable(profile, zones)
      return answerAll({ env, profile: isOutside ? profile : undefined, screen }, runId, ended)
    },
  })
}
