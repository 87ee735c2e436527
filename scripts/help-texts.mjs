// The texts of `--help` and `--version` for native/client/help-text.c, which prints them without starting node: for each command line its words
// without `--help`, with blanks between them, then the text; each ended by NUL.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadSources } from './load-sources.mjs'

const SOURCES = `
  export { parseArguments } from './cli/arguments.ts'
  export { execUsage, LEARN_USAGE, programUsage } from './cli/help.ts'
  export { SUBCOMMANDS } from './cli/subcommands.ts'
  export { EXPLAINED_OPTIONS } from './policy/option-help.ts'`

/** @param directory gets help-texts */
export async function writeHelpTexts(root, directory) {
  const sources = await loadSources(root, 'help-texts', SOURCES)
  const { parseArguments, execUsage, LEARN_USAGE, programUsage, SUBCOMMANDS, EXPLAINED_OPTIONS } = sources
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const own = { exec: execUsage(), help: programUsage(), learn: LEARN_USAGE }
  const textOf = (declaration, words) =>
    own[declaration.name] ?? parseArguments(declaration, words, EXPLAINED_OPTIONS).help
  const rows = SUBCOMMANDS.flatMap((declaration) => [
    [declaration.name, textOf(declaration, ['--help'])],
    ...(declaration.actions ?? []).map(({ name }) => [
      `${declaration.name} ${name}`,
      textOf(declaration, [name, '--help']),
    ]),
  ])
  const all = [['', programUsage()], ['--version', `${version}\n`], ...rows]
  writeFileSync(join(directory, 'help-texts'), all.map(([words, text]) => `${words}\0${text}\0`).join(''))
}
