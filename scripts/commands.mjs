// Writes the commands `llm-do` and `llm-do-exec` as scripts of the shell (portable.sh), which run everywhere:
//   node scripts/commands.mjs [DIRECTORY]
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const directory = process.argv[2] ?? join(root, 'bin')
const text = readFileSync(join(root, 'scripts/portable.sh'), 'utf8')
const contract = readFileSync(join(root, 'native/lib/contract.h'), 'utf8')
const [, withoutDebugger] = /#define NODE_WITHOUT_DEBUGGER "(.*?)"/.exec(contract)

/** `llm-do-exec WORDS` means `llm-do exec WORDS`. */
const FIRST = { 'llm-do': '', 'llm-do-exec': '"=exec"' }

mkdirSync(directory, { recursive: true })
for (const [name, first] of Object.entries(FIRST)) {
  const made = join(directory, `${name}.new`)
  writeFileSync(
    made,
    text.replace('@NAME@', name).replace('@FIRST@', first).replace('@NODE_WITHOUT_DEBUGGER@', withoutDebugger),
  )
  chmodSync(made, 0o755)
  renameSync(made, join(directory, name)) // a command that is running stays what it is
}
