/**
 * `llm-do __complete WORD...`: what the last word can become, for the completion of a shell (completion.ts has the form of the answer).
 * It prints only text that no terminal interprets, and nothing on an error: a person is typing.
 *
 * Edge: the working directory.
 */
import { realpathSync } from 'node:fs'
import { SandboxError } from '../../error.ts'
import { neutralise } from '../../report/text.ts'
import type { Call } from '../call.ts'
import { completionOf, type Offer } from '../completed-word.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeStdout } from '../stdio.ts'
import type { Subcommand } from '../subcommand.ts'
import type { NamedThings } from '../subcommands.ts'

/** Each loads only its own code. */
const OFFERS: Readonly<Record<NamedThings, (call: Call) => Promise<readonly Offer[]>>> = {
  profiles: async ({ env }) => {
    const [{ listProfiles }, { homeOf, profileDirectories }] = await Promise.all([
      import('../../policy/load.ts'),
      import('../../run/caller.ts'),
    ])
    return listProfiles(profileDirectories(env, homeOf(env))).map(({ name, from }) => [name, from])
  },
  workers: async (call) => {
    const [{ listFiles }, { homeOf }, { shippedWorkers }] = await Promise.all([
      import('../../worker/load.ts'),
      import('../../run/caller.ts'),
      import('../under-worker.ts'),
    ])
    const finding = { cwd: currentDirectory(call), home: homeOf(call.env), shippedDirectory: shippedWorkers() }
    return (await listFiles(finding)).map(({ name, from }) => [name, from])
  },
  runs: async ({ env }) => {
    const { isOwn, listRuns } = await import('../run-records.ts')
    return listRuns(env)
      .filter(isOwn)
      .map(({ id, command }) => [id, command.join(' ')])
  },
  'failed-runs': async ({ env }) => {
    const { failedRuns } = await import('../../run/failed-runs.ts')
    return failedRuns(env).map(({ id, words }) => [id, words.join(' ')])
  },
  'refused-hosts': async ({ env }) => {
    const { refusedHosts } = await import('../../run/failed-runs.ts')
    return refusedHosts(env).map((host) => [host, 'refused in the last run that was refused a host'])
  },
  caches: async ({ env }) => {
    const { listPrivate } = await import('../../host/private-directory.ts')
    return listPrivate(env, process.getuid?.() ?? -1, 'caches').map((name) => [name, ''])
  },
  sandboxes: async ({ env }) => {
    const { listNamed } = await import('../../run/named-sandboxes.ts')
    return listNamed(env).map(({ name, command }) => [name, command.join(' ')])
  },
  layers: async ({ env }) => {
    const { listLayers } = await import('../../cow/layers.ts')
    return listLayers(env).map(({ id, record }) => [id, record.zones.map(({ source }) => source).join(' ')])
  },
  homes: async (call) => {
    const { listHomes } = await import('../../run/homes.ts')
    const here = realpathSync.native(currentDirectory(call))
    const kept = listHomes(call.env, process.getuid?.() ?? -1).filter(({ project }) => project === here)
    return kept.map(({ name }) => [name, ''])
  },
}

/** A name in another spelling would not be found. A line that starts with a colon is not offered. */
const isPlain = ([name]: Offer): boolean => neutralise(name) === name && !name.startsWith(':')

async function linesOf(call: Call): Promise<readonly string[]> {
  const { offers = [], names = [], paths, prefix = '', commandAt } = completionOf(call.text)
  const existing = (await Promise.all(names.map((kind) => OFFERS[kind](call)))).flat()
  const current = call.text.at(-1) ?? ''
  const words = [...offers, ...existing.map(([name, meaning]): Offer => [`${prefix}${name}`, meaning])]
  return [
    ...words
      .filter(isPlain)
      .flatMap(([word, meaning]) => (word.startsWith(current) ? `${word}\t${neutralise(meaning)}` : [])),
    ...(paths === undefined ? [] : [`:${paths} ${prefix}`]),
    ...(commandAt === undefined ? [] : [`:command ${commandAt}`]),
  ]
}

export const complete: Subcommand = async (call) => {
  try {
    await writeStdout((await linesOf(call)).map((line) => `${line}\n`).join(''))
    return 0
  } catch (error) {
    if (error instanceof SandboxError) return 1
    throw error
  }
}
