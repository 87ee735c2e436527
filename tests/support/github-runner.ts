/**
 * Runs a composite action the way GitHub's runner does: each step's text, with its expressions replaced, is a file that
 * `bash --noprofile --norc -e -o pipefail` runs, with new files for outputs and variables; after a failure only `if: always()` steps run.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { parse } from 'yaml'
import { z } from 'zod'

const StepSchema = z.strictObject({
  id: z.string().optional(),
  if: z.literal('always()').optional(),
  shell: z.literal('bash'),
  run: z.string(),
  env: z.record(z.string(), z.string()).optional(),
})

/** The part of https://json.schemastore.org/github-action.json that our composite action uses; anything else is a mistake. */
const ActionSchema = z.strictObject({
  name: z.string(),
  description: z.string(),
  branding: z.strictObject({ icon: z.string(), color: z.string() }),
  inputs: z.record(
    z.string().regex(/^[a-z]+(-[a-z]+)*$/),
    z.strictObject({ description: z.string(), required: z.boolean().optional(), default: z.string().optional() }),
  ),
  outputs: z.record(z.string(), z.strictObject({ description: z.string(), value: z.string() })),
  runs: z.strictObject({ using: z.literal('composite'), steps: z.array(StepSchema) }),
})

export type Action = z.infer<typeof ActionSchema>

/** @throws ZodError for what the runner would not take */
export const readAction = (directory: string): Action =>
  ActionSchema.parse(parse(readFileSync(join(directory, 'action.yml'), 'utf8')))

export interface JobInputs {
  /** The checkout that holds action.yml. */
  readonly action: string
  readonly workspace: string
  /** RUNNER_TEMP. */
  readonly temp: string
  readonly inputs: Readonly<Record<string, string>>
  /** Variables of the job and the machine. */
  readonly env?: Readonly<Record<string, string>>
  /** Words before the bash of the step with that text. */
  readonly around?: (run: string) => readonly string[]
  /** Cancels the job. */
  readonly cancelSignal?: AbortSignal
}

export interface JobResult {
  /** Of the step that failed, else 0. */
  readonly exitCode: number
  /** Output of all steps. */
  readonly log: string
  readonly outputs: Readonly<Record<string, string>>
  readonly summary: string
  /** Variables that later steps of the job would get. */
  readonly later: { readonly env: string; readonly path: string }
}

const FILES = ['GITHUB_OUTPUT', 'GITHUB_STEP_SUMMARY', 'GITHUB_ENV', 'GITHUB_PATH', 'GITHUB_STATE'] as const
type Files = Readonly<Record<(typeof FILES)[number], string>>
type Outputs = Readonly<Record<string, string>>

export async function runAction(job: JobInputs): Promise<JobResult> {
  const { inputs: known, outputs: declared, runs } = readAction(job.action)
  const inputs = Object.fromEntries(
    Object.entries(known).map(([name, { default: otherwise = '' }]) => [name, job.inputs[name] ?? otherwise]),
  )
  const outputs: Record<string, Outputs> = {}
  const seen = { exitCode: 0, log: '', summary: '', later: { env: '', path: '' } }
  for (const step of runs.steps) {
    if (seen.exitCode !== 0 && step.if === undefined) continue
    const files = newFiles(job.temp)
    const env = Object.fromEntries(
      Object.entries(step.env ?? {}).map(([name, text]) => [name, evaluated(text, inputs, outputs)]),
    )
    const { exitCode, all } = await runStep(job, { script: evaluated(step.run, inputs, outputs), env, files })
    seen.exitCode ||= exitCode
    seen.log += `${all}\n`
    seen.summary += readFileSync(files.GITHUB_STEP_SUMMARY, 'utf8')
    seen.later.env += readFileSync(files.GITHUB_ENV, 'utf8')
    seen.later.path += readFileSync(files.GITHUB_PATH, 'utf8')
    outputs[step.id ?? ''] = outputsIn(readFileSync(files.GITHUB_OUTPUT, 'utf8'))
  }
  const values = Object.entries(declared).map(([name, { value }]) => [name, evaluated(value, inputs, outputs)])
  return { ...seen, outputs: Object.fromEntries(values) }
}

function newFiles(temp: string): Files {
  const directory = join(temp, '_runner_file_commands')
  mkdirSync(directory, { recursive: true })
  return Object.fromEntries(
    FILES.map((name) => {
      const file = join(directory, `${name.toLowerCase()}_${randomUUID()}`)
      writeFileSync(file, '')
      return [name, file]
    }),
  ) as Files
}

async function runStep(
  { action, workspace, temp, env: machine, around = () => [], cancelSignal }: JobInputs,
  { script, env, files }: { readonly script: string; readonly env: Outputs; readonly files: Files },
): Promise<{ readonly exitCode: number; readonly all: string }> {
  const file = join(temp, `${randomUUID()}.sh`)
  writeFileSync(file, script)
  const [program = '', ...words] = [...around(script), 'bash', '--noprofile', '--norc', '-e', '-o', 'pipefail', file]
  const variables = { CI: 'true', GITHUB_ACTIONS: 'true', GITHUB_ACTION_PATH: action, GITHUB_WORKSPACE: workspace }
  const running = execa(program, words, {
    cwd: workspace,
    env: { PATH: process.env.PATH, RUNNER_TEMP: temp, ...variables, ...machine, ...env, ...files },
    extendEnv: false,
    all: true,
    reject: false,
  })
  // The runner's first step when a job is cancelled.
  const cancel = () => running.kill('SIGINT')
  cancelSignal?.addEventListener('abort', cancel, { once: true })
  const { exitCode = 130, all } = await running
  cancelSignal?.removeEventListener('abort', cancel)
  return { exitCode, all }
}

/** The expressions that action.yml uses. */
function evaluated(text: string, inputs: Outputs, outputs: Readonly<Record<string, Outputs>>): string {
  return text.replace(/\$\{\{ (.+?) \}\}/g, (_, expression: string) => {
    const [, input] = /^inputs\.([a-z-]+)$/.exec(expression) ?? []
    if (input !== undefined && inputs[input] !== undefined) return inputs[input]
    const [, all] = /^toJSON\(steps\.(\w+)\.outputs\)$/.exec(expression) ?? []
    if (all !== undefined) return JSON.stringify(outputs[all] ?? {})
    const [, step, output] = /^steps\.(\w+)\.outputs\.(\w+)$/.exec(expression) ?? []
    if (step !== undefined && output !== undefined) return outputs[step]?.[output] ?? ''
    throw new Error(`\${{ ${expression} }} means nothing to the runner of these tests`)
  })
}

/** Lines `NAME=VALUE`, and `NAME<<WORD` up to WORD. */
function outputsIn(text: string): Outputs {
  const lines = text.matchAll(/^([^=<\n]+)(?:=(.*)|<<(.+)\n([\s\S]*?)\n\3)$/gm)
  return Object.fromEntries([...lines].map(([, name = '', value, , long]) => [name, value ?? long ?? '']))
}

/** Workflow commands in a log that the runner obeys: between `::stop-commands::TOKEN` and `::TOKEN::` none. */
export function obeyedCommands(log: string): readonly string[] {
  const state = { token: '' }
  return log.split('\n').flatMap((line) => {
    const [, command = '', value = ''] = /^\s*::([\w-]+)[^:]*::(.*)$/.exec(line) ?? []
    if (command === '' || (state.token !== '' && command !== state.token)) return []
    state.token = command === 'stop-commands' ? value : ''
    return command === 'stop-commands' || /^[0-9a-f]{32}$/.test(command) ? [] : [command]
  })
}
