/**
 * `llm-do workers list | show NAME | check [TREE]`: what workers there are, what one of them may do, what is wrong with their files.
 * `show` and `check` take the options of exec that are policy: what the operator grants decides about both.
 *
 * Edge: the working directory.
 */
import { resolve } from 'node:path'
import { homeOf } from '../edges.ts'
import { readGrant } from '../exec.ts'
import { environmentLayers } from '../policy/environment.ts'
import { flagLayer, type GivenOptions } from '../policy/option-layer.ts'
import { OPTIONS } from '../policy/options.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { type Answer, checkWorkers, listWorkers, showWorker } from '../worker/verbs.ts'
import { type Call, type Environment, wordsFrom } from './call.ts'
import { readCommandLine, splitWords } from './command-line.ts'
import { currentDirectory } from './directory.ts'
import { say } from './output.ts'
import { shippedWorkers } from './under-worker.ts'
import { FOUND_PROBLEMS, usageError } from './verb.ts'

const USAGE = 'list | show NAME | check [TREE]'
const ACTIONS = ['list', 'show', 'check'] as const
type Action = (typeof ACTIONS)[number]

interface Asked {
  readonly cwd: string
  readonly env: Environment
  /** Flags only; their twins are below them. */
  readonly given: GivenOptions
  readonly operand: string | undefined
}

/** Options may stand before and after the words, as the whole line is ours. */
function sort(words: readonly string[]): { readonly options: readonly string[]; readonly operands: readonly string[] } {
  const { own, commandAt } = splitWords(words)
  if (commandAt >= words.length) return { options: own, operands: [] }
  if (words[commandAt - 1] === '--') return { options: own, operands: words.slice(commandAt) }
  const rest = sort(words.slice(commandAt + 1))
  return { options: [...own, ...rest.options], operands: [words[commandAt] ?? '', ...rest.operands] }
}

const POLICY_OPTIONS = OPTIONS.filter(({ name, sets }) => sets !== undefined || name === 'profile').map(
  ({ name }) => name,
)

const TAKEN: Readonly<Record<Action, readonly string[]>> = {
  list: ['json'],
  show: ['json', 'workshop', ...POLICY_OPTIONS],
  check: ['json', ...POLICY_OPTIONS],
}

const OPERANDS: Readonly<Record<Action, readonly [least: number, most: number]>> = {
  list: [0, 0],
  show: [1, 1],
  check: [0, 1],
}

function read(action: Action, call: Call): Asked {
  const { options, operands } = sort(call.text)
  const { given } = readCommandLine(options)
  const hint = `llm-do workers ${USAGE}`
  const stranger = Object.keys(given).find((name) => !TAKEN[action].includes(name))
  if (stranger !== undefined) throw usageError(`workers ${action}: --${stranger} means nothing here.`, hint)
  const [least, most] = OPERANDS[action]
  if (operands.length < least) throw usageError(`workers ${action}: expected NAME, got nothing.`, hint)
  if (operands.length > most) throw usageError(`workers ${action}: unexpected word "${operands[most]}".`, hint)
  return { cwd: currentDirectory(call), env: call.env, given, operand: operands[0] }
}

/** What the operator grants here, as exec would. */
async function operatorOf({ cwd, env, given }: Asked) {
  const all = { ...environmentLayers(env, cwd).request, ...given }
  const profile = typeof all['profile'] === 'string' ? all['profile'] : undefined
  const { grant, request } = await readGrant({
    command: ['true'], // only a run has one; nothing of it is policy
    layers: [flagLayer(given, cwd)],
    ...(profile !== undefined && { profile }),
    cwd,
    env,
    mode: 'inherit',
  })
  const workshop = typeof all['workshop'] === 'string' ? all['workshop'] : undefined
  return { grant, home: request.home, isProfileChosen: profile !== undefined, workshop }
}

const ANSWERS: Readonly<Record<Action, (asked: Asked) => Promise<Answer<unknown>>>> = {
  list: ({ cwd, env }) => listWorkers({ cwd, home: homeOf(env), shippedDirectory: shippedWorkers() }),
  show: async (asked) =>
    showWorker({
      ...(await operatorOf(asked)),
      cwd: asked.cwd,
      worker: asked.operand ?? '',
      shippedDirectory: shippedWorkers(),
    }),
  check: async (asked) =>
    checkWorkers({ ...(await operatorOf(asked)), tree: resolve(asked.cwd, asked.operand ?? '.') }),
}

function actionOf(word: string | undefined): Action {
  const action = ACTIONS.find((known) => known === word)
  if (action !== undefined) return action
  const got = word === undefined ? 'nothing' : `"${word}"`
  throw usageError(
    `workers: expected ${USAGE}, got ${got}.${didYouMean(word ?? '', ACTIONS)}`,
    `llm-do workers ${USAGE}`,
  )
}

export async function workers(call: Call): Promise<number> {
  const action = actionOf(call.text[0])
  const asked = read(action, wordsFrom(call, 1))
  const { data, lines, ok } = await ANSWERS[action](asked)
  await say(asked.given['json'] === undefined ? lines.map((line) => `${line}\n`).join('') : `${JSON.stringify(data)}\n`)
  return ok ? 0 : FOUND_PROBLEMS
}
