/**
 * `llm-do profiles [show NAME]`: which profiles there are, and what one says with all that it extends.
 *
 * Edge: profile files, process.env, the working directory.
 */
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../native.ts'
import { listProfiles, loadProfile, type ProfileDirectories, profileDirectoryOf } from '../policy/load.ts'
import { neutralise } from '../report/text.ts'
import type { Words } from './argv.ts'
import { say } from './output.ts'
import { understand, usageError } from './verb.ts'

const USAGE = '[show NAME]'

function directories(): ProfileDirectories {
  return {
    configDirectory: profileDirectoryOf(process.env, homedir()),
    shippedDirectory: join(packageRoot(), 'profiles'),
  }
}

async function list(isJson: boolean): Promise<string> {
  const found = listProfiles(directories())
  if (isJson) return `${JSON.stringify(found)}\n`
  const width = Math.max(0, ...found.map(({ name }) => name.length))
  return found
    .map(({ name, from, file }) => `${neutralise(name).padEnd(width)}  ${from.padEnd(7)}  ${neutralise(file)}\n`)
    .join('')
}

/** The files in the order in which they speak: a later one replaces or adds. */
async function show(name: string): Promise<string> {
  const { read } = await loadProfile({ ...directories(), name, cwd: process.cwd() })
  const texts = await Promise.all(read.map(async (file) => `# ${file}\n${await readFile(file, 'utf8')}`))
  return texts.map((text) => (text.endsWith('\n') ? text : `${text}\n`)).join('\n')
}

export async function profiles({ text }: Words): Promise<number> {
  const { flags, operands } = understand(text, { verb: 'profiles', usage: USAGE, flags: ['--json'], operands: [0, 2] })
  const [action, name] = operands
  if (action === undefined) await say(await list(flags.has('--json')))
  else if (action === 'show' && name !== undefined) await say(await show(name))
  else throw usageError(`profiles: expected show NAME, got "${operands.join(' ')}".`, `llm-do profiles ${USAGE}`)
  return 0
}
