/**
 * `llm-do init`: a commented workshop and a first worker for this project, and the line that tries them.
 *
 * Edge: the working directory.
 */
import { neutralise } from '../../report/text.ts'
import { initProject } from '../../worker/init.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

export const init = subcommand('init', async (_, call) => {
  const cwd = currentDirectory(call)
  const { written, kept } = await initProject(cwd)
  const lines = [
    ...written.map((file) => `wrote  ${file}`),
    ...kept.map((file) => `kept   ${file}   (it was there already)`),
    'try    llm-do exec --worker helper --workshop workshop.yaml -- ls',
  ]
  await writeStdout(lines.map((line) => `${neutralise(line)}\n`).join(''))
  return 0
})
