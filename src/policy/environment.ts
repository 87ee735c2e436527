/**
 * The layer of environment variables: the twins of the options, and below them the variables of container-based runners.
 * Pure: the environment is an argument. An empty variable counts as unset, as in POSIX.
 */

import { wrongChoice } from '../text/choices.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { quoteText, quoteValue } from '../text/units.ts'
import type { SandboxInput } from './keys/index.ts'
import type { PolicyLayer } from './layer.ts'
import { layerOfOptions } from './option-layer.ts'
import { OPTIONS, type OptionDeclaration } from './options.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface EnvironmentWords {
  /** Lowest first: DOCKER_*, then LLM_DO_EXEC_*. Always both, even when they say nothing. */
  readonly layers: readonly PolicyLayer[]
  /** Options that are not policy (profile, worker, json...), by option name. `true` for a switch that is on. */
  readonly request: Readonly<Record<string, string | true>>
  /** ENABLE_DOCKER=false: `auto` does not consider docker. It never turns isolation off. */
  readonly withoutDocker: boolean
}

const PREFIX = 'LLM_DO_EXEC_'

/** @param cwd absolute; what host paths in variables are relative to */
export function environmentLayers(env: Environment, cwd: string): EnvironmentWords {
  const docker = dockerWords(env)
  return {
    layers: [
      { layer: 'docker-environment', source: 'environment', directory: cwd, ...docker.layer },
      twinLayer(env, cwd),
    ],
    request: requestOf(env),
    withoutDocker: docker.withoutDocker,
  }
}

function twinLayer(env: Environment, cwd: string): PolicyLayer {
  const twins = OPTIONS.filter((option) => isSet(env, option.environment))
  const given = Object.fromEntries(twins.map((option) => [option.name, givenBy(option, env[option.environment] ?? '')]))
  const layer = layerOfOptions({
    given,
    cwd,
    layer: 'environment',
    source: 'environment',
    locationName: (option) => option.environment,
  })
  return {
    ...layer,
    problems: [...(layer.problems ?? []), ...twins.flatMap((option) => twinProblems(option, env)), ...strangers(env)],
  }
}

/** The first variable that is set of those that ask for these options. */
export function variableOf(names: readonly string[], env: Environment): string | undefined {
  const request = requestOf(env)
  return OPTIONS.find(({ name }) => names.includes(name) && request[name] !== undefined)?.environment
}

function isSet(env: Environment, name: string): boolean {
  return (env[name] ?? '') !== ''
}

function givenBy(option: OptionDeclaration, text: string): string | boolean | readonly string[] | undefined {
  if (option.argument === undefined) return switchOf(text)
  return option.repeats ? text.split('\n').filter((line) => line !== '') : text
}

const SWITCHES: Readonly<Record<string, boolean>> = {
  1: true,
  true: true,
  yes: true,
  on: true,
  0: false,
  false: false,
  no: false,
  off: false,
}

function switchOf(text: string): boolean | undefined {
  const word = text.toLowerCase()
  return Object.hasOwn(SWITCHES, word) ? SWITCHES[word] : undefined
}

function twinProblems(option: OptionDeclaration, env: Environment): readonly string[] {
  const text = env[option.environment] ?? ''
  if (option.argument === undefined && switchOf(text) === undefined) return [notASwitch(option.environment, text)]
  const isBareJson = option.isArgumentOptional && switchOf(text) !== undefined
  const wrong = isBareJson ? undefined : wrongChoice(option.choices, option.environment, text)
  return wrong === undefined ? [] : [wrong]
}

function notASwitch(name: string, text: string): string {
  return `${name}: expected 1, true, yes or on, or 0, false, no or off, got ${quoteValue(text)}.`
}

/** A misspelt variable would be a limit that does not hold. */
function strangers(env: Environment): readonly string[] {
  const known = OPTIONS.map(({ environment }) => environment)
  const unknown = Object.keys(env).filter(
    (name) => name.startsWith(PREFIX) && !known.includes(name) && env[name] !== undefined,
  )
  return unknown.map(
    (name) => `${quoteText(name)}: expected the variable of an option, got an unknown one.${didYouMean(name, known)}`,
  )
}

function requestOf(env: Environment): EnvironmentWords['request'] {
  const aboutTheRun = OPTIONS.filter((option) => option.key === undefined && isSet(env, option.environment))
  return Object.fromEntries(
    aboutTheRun.flatMap((option): [string, string | true][] => {
      const text = env[option.environment] ?? ''
      const isSwitch = option.argument === undefined || (option.isArgumentOptional && switchOf(text) !== undefined)
      if (!isSwitch) return [[option.name, text]]
      return switchOf(text) === true ? [[option.name, true]] : []
    }),
  )
}

interface DockerWords {
  readonly layer: Pick<PolicyLayer, 'values' | 'locations' | 'problems'>
  readonly withoutDocker: boolean
}

/** Docker's own spellings: milliseconds, and memory whose bare digits are bytes. */
function dockerWords(env: Environment): DockerWords {
  const timeout = env.DOCKER_TIMEOUT ?? ''
  const memory = env.DOCKER_MEMORY_LIMIT ?? ''
  const cpus = env.DOCKER_CPU_LIMIT ?? ''
  const enabled = env.ENABLE_DOCKER ?? ''
  const isWrongTime = timeout !== '' && !/^\d+$/.test(timeout)
  const isWrongSwitch = enabled !== '' && switchOf(enabled) === undefined
  const resources: SandboxInput['resources'] = {
    ...(timeout === '' || isWrongTime ? {} : { timeout: `${timeout}ms` }),
    ...(memory === '' ? {} : { memory: /^\d+$/.test(memory) ? Number(memory) : memory }),
    ...(cpus === '' ? {} : { cpus }),
  }
  const locations = {
    'resources.timeout': 'DOCKER_TIMEOUT',
    'resources.memory': 'DOCKER_MEMORY_LIMIT',
    'resources.cpus': 'DOCKER_CPU_LIMIT',
  }
  const problems = [
    ...(isWrongTime ? [`DOCKER_TIMEOUT: expected whole milliseconds such as 30000, got ${quoteValue(timeout)}.`] : []),
    ...(isWrongSwitch ? [notASwitch('ENABLE_DOCKER', enabled)] : []),
  ]
  const values = Object.keys(resources).length === 0 ? {} : { resources }
  return { layer: { values, locations, problems }, withoutDocker: switchOf(enabled) === false }
}
