/**
 * `llm-do homes [remove NAME]`: lists the home directories that are kept, or removes one of this directory.
 * Edge: the file system, the user.
 */
import { realpathSync } from 'node:fs'
import { SandboxError } from '../../error.ts'
import { lookForWorktree } from '../../host/linked-worktree.ts'
import { table } from '../../report/table.ts'
import { neutralise } from '../../report/text.ts'
import { projectOf } from '../../run/home-project.ts'
import { listHomes, removeHome } from '../../run/homes.ts'
import type { Call } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

const kept = ({ env }: Call) => listHomes(env, process.getuid?.() ?? -1)

async function list(call: Call, isJson: boolean): Promise<void> {
  const homes = kept(call)
  if (isJson) return await writeStdout(`${JSON.stringify(homes)}\n`)
  const rows = table(homes.map(({ name, project, path }) => [name, project, path].map(neutralise)))
  await writeStdout(rows.map((line) => `${line}\n`).join(''))
}

async function remove(call: Call, wanted: string): Promise<void> {
  const directory = realpathSync.native(currentDirectory(call))
  const uid = process.getuid?.() ?? -1
  const here = projectOf(directory, lookForWorktree(directory, uid), { uid, home: call.env['HOME'] ?? '' })
  const home = kept(call).find(({ name, project }) => name === wanted && project === here)
  if (home === undefined)
    throw new SandboxError('ZONE_INVALID', `no home ${JSON.stringify(wanted)} is kept for this directory`, {
      hint: 'llm-do homes',
    })
  await removeHome(home)
}

export const homes = subcommand('homes', async ({ action, flags, operands: [name = ''] }, call) => {
  await (action === 'remove' ? remove(call, name) : list(call, flags['json'] === true))
  return 0
})
