/** The parts of every subcommand. */

import type { ExplainedOption } from '../policy/option-help.ts'
import type { Arguments } from './arguments.ts'
import type { Call } from './call.ts'
import { writeStdout } from './stdio.ts'
import { DECLARED, type SubcommandDeclaration, type SubcommandName } from './subcommands.ts'

/** Runs with the words after its name; answers with the exit status. A SandboxError becomes a message and 125. */
export type Subcommand = (call: Call) => Promise<number>

/** Exit status of a check that found something: `audit verify`, `doctor`. */
export const FOUND_PROBLEMS = 1

/** Exit status of a verb that could not do all that it was asked to, as of every refusal. */
export const FAILED = 125

/** A subcommand whose whole command line is declared in subcommands.ts. */
export function subcommand(name: SubcommandName, run: (parsed: Arguments, call: Call) => Promise<number>): Subcommand {
  return async (call) => {
    const declaration = DECLARED.find((one) => one.name === name)
    if (declaration === undefined) throw new TypeError(`no subcommand ${name}`)
    if (call.text.length === 0 && !needsWords(declaration)) return await run({ operands: [], flags: {} }, call)
    // Without a word there is nothing to parse, and commander takes milliseconds to load.
    const { parseArguments } = await import('./arguments.ts')
    const parsed = parseArguments(declaration, call.text, await execOptionsFor(declaration, call.text[0]))
    if (!('help' in parsed)) return await run(parsed, call)
    await writeStdout(parsed.help)
    return 0
  }
}

/** Only where the first word may lead to them: explaining them takes the tables of all policy keys. */
async function execOptionsFor(declaration: SubcommandDeclaration, first = ''): Promise<readonly ExplainedOption[]> {
  const { actions = [] } = declaration
  const named = actions.filter(({ name }) => name === first)
  const places = [declaration, ...(named.length > 0 ? named : actions)]
  if (places.every(({ execOptions }) => execOptions === undefined)) return []
  return (await import('../policy/option-help.ts')).EXPLAINED_OPTIONS
}

function needsWords({ actions = [], isActionOptional, arguments: operands = [] }: SubcommandDeclaration): boolean {
  return (actions.length > 0 && isActionOptional !== true) || operands.some(({ isOptional }) => isOptional !== true)
}
