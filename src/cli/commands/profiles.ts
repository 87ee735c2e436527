/**
 * `llm-do profiles [show NAME]`: lists the profiles, or prints one with all that it extends.
 *
 * Edge: profile files, the working directory.
 */
import { readFile } from 'node:fs/promises'
import { describeProfiles, loadProfile } from '../../policy/load.ts'
import { table } from '../../report/table.ts'
import { neutralise } from '../../report/text.ts'
import { homeOf, profileDirectories } from '../../run/caller.ts'
import type { Call, Environment } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

const directories = (env: Environment) => profileDirectories(env, homeOf(env))

async function list(env: Environment, isJson: boolean): Promise<string> {
  const found = await describeProfiles(directories(env))
  if (isJson) return `${JSON.stringify(found)}\n`
  const rows = found.map(({ name, from, file, description = '', problem }) => [
    name,
    problem === undefined ? description : 'cannot be read',
    from === 'shipped' ? from : file,
  ])
  return table(rows.map((row) => row.map(neutralise)))
    .map((line) => `${line}\n`)
    .join('')
}

/** The files in the order in which they are merged: a later one replaces or adds. */
async function show(call: Call, name: string): Promise<string> {
  const { read } = await loadProfile({ ...directories(call.env), name, cwd: currentDirectory(call) })
  const texts = await Promise.all(read.map(async (file) => `# ${file}\n${await readFile(file, 'utf8')}`))
  return texts.map((text) => (text.endsWith('\n') ? text : `${text}\n`)).join('\n')
}

export const profiles = subcommand('profiles', async ({ action, flags, operands: [name = ''] }, call) => {
  await writeStdout(action === 'show' ? await show(call, name) : await list(call.env, flags['json'] === true))
  return 0
})
