/** Reads the options of a task and applies them to the policy: a task only narrows. Pure. */
import type { Policy } from '../core.ts'
import type { Task } from './port.ts'

const LONGEST_ID = 256
const MOST_COMMANDS = 1_000
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/** @returns what is wrong with it, for people; undefined when it can be tried */
export function taskProblem({ id, commands, timeoutMs, env = {} }: Task): string | undefined {
  if (id === '' || id.length > LONGEST_ID) return `id: expected 1 to ${LONGEST_ID} characters`
  if (commands.length === 0 || commands.length > MOST_COMMANDS)
    return `command: expected 1 to ${MOST_COMMANDS} commands`
  if (commands.some(([program = '']) => program === '')) return 'command: expected a program, got nothing'
  if (commands.some((words) => words.some((word) => word.includes('\0')))) return 'command: a word holds a NUL byte'
  if (timeoutMs !== undefined && (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1))
    return 'timeout: expected whole milliseconds above 0'
  const variable = Object.entries(env).find(([name, value]) => !VARIABLE.test(name) || value.includes('\0'))
  return variable === undefined ? undefined : `env: a variable that no process can get: ${JSON.stringify(variable[0])}`
}

/** Each line of a text is a command of a shell; empty ones are none. */
export function commandLines(text: string): readonly (readonly string[])[] {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  return lines.map((line) => ['/bin/sh', '-c', line])
}

const TIMEOUT = 'resources.timeout'
const OF_TASK = { layer: 'worker', source: 'the task', key: 'timeout' } as const

/** The operator's policy, and less of it where the task says so. Variables that the operator has set stay as they are. */
export function narrowedBy(task: Task, policy: Policy): Policy {
  const { resources, env, require, origins } = policy
  const timeout = shorter(resources.timeout, task.timeoutMs)
  const isShorter = timeout !== resources.timeout
  return {
    ...policy,
    resources: { ...resources, timeout },
    // The message about a limit names the level that set it.
    origins: isShorter ? { ...origins, [TIMEOUT]: [...(origins[TIMEOUT] ?? []), OF_TASK] } : origins,
    env: { ...env, set: { ...task.env, ...env.set } },
    require: [...new Set([...require, ...(task.require ?? [])])],
  }
}

function shorter(limit: number | null, wanted: number | undefined): number | null {
  if (wanted === undefined) return limit
  return limit === null ? wanted : Math.min(limit, wanted)
}
