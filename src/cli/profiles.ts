/**
 * `llm-do profiles [show NAME]`: which profiles there are, and what one says with all that it extends.
 *
 * Edge: profile files, the working directory.
 */
import { readFile } from 'node:fs/promises'
import { listProfiles, loadProfile } from '../policy/load.ts'
import { neutralise } from '../report/text.ts'
import { homeOf, profileDirectories } from '../run/caller.ts'
import type { Call, Environment } from './call.ts'
import { currentDirectory } from './directory.ts'
import { say } from './output.ts'
import { understand, usageError } from './verb.ts'

const USAGE = '[show NAME]'

const directories = (env: Environment) => profileDirectories(env, homeOf(env))

async function list(env: Environment, isJson: boolean): Promise<string> {
  const found = listProfiles(directories(env))
  if (isJson) return `${JSON.stringify(found)}\n`
  const width = Math.max(0, ...found.map(({ name }) => name.length))
  return found
    .map(({ name, from, file }) => `${neutralise(name).padEnd(width)}  ${from.padEnd(7)}  ${neutralise(file)}\n`)
    .join('')
}

/** The files in the order in which they speak: a later one replaces or adds. */
async function show(call: Call, name: string): Promise<string> {
  const { read } = await loadProfile({ ...directories(call.env), name, cwd: currentDirectory(call) })
  const texts = await Promise.all(read.map(async (file) => `# ${file}\n${await readFile(file, 'utf8')}`))
  return texts.map((text) => (text.endsWith('\n') ? text : `${text}\n`)).join('\n')
}

export async function profiles(call: Call): Promise<number> {
  const { text, env } = call
  const { flags, operands } = understand(text, { verb: 'profiles', usage: USAGE, flags: ['--json'], operands: [0, 2] })
  const [action, name] = operands
  if (action === undefined) await say(await list(env, flags.has('--json')))
  else if (action === 'show' && name !== undefined) await say(await show(call, name))
  else throw usageError(`profiles: expected show NAME, got "${operands.join(' ')}".`, `llm-do profiles ${USAGE}`)
  return 0
}
