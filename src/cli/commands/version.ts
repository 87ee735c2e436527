/** `llm-do version`. */
import { packageVersion } from '../../os/native-programs.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

export const version = subcommand('version', async () => {
  await writeStdout(`${packageVersion()}\n`)
  return 0
})
