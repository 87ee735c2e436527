/**
 * `llm-do __complete KIND`: the names that exist at this moment, for the completion of a shell. A line each: the name, and behind a tab
 * what it is. Nothing that a terminal could take for more than text, and nothing at all where something is wrong: a person is typing.
 *
 * Edge: the working directory.
 */
import { realpathSync } from 'node:fs'
import { SandboxError } from '../../error.ts'
import { neutralise } from '../../report/text.ts'
import type { Call } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeStdout } from '../stdio.ts'
import type { Subcommand } from '../subcommand.ts'
import type { NamedThings } from '../subcommands.ts'

type Offer = readonly [name: string, meaning: string]

/** Each loads its own code: the others would be waited for. */
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

const isKind = (word: string): word is NamedThings => Object.hasOwn(OFFERS, word)

/** A name that is spelled in another way than it is would not be found. */
const isPlain = ([name]: Offer): boolean => neutralise(name) === name

export const complete: Subcommand = async (call) => {
  const [kind = ''] = call.text
  if (!isKind(kind)) return 1
  try {
    const offers = (await OFFERS[kind](call)).filter(isPlain)
    await writeStdout(offers.map(([name, meaning]) => `${name}\t${neutralise(meaning)}\n`).join(''))
    return 0
  } catch (error) {
    if (error instanceof SandboxError) return 1
    throw error
  }
}
