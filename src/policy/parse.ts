/** The text of a profile -> a policy layer. Pure. Values are checked later, by mergePolicies(), together with all others. */
import { readYaml } from '../config/yaml.ts'
import { SandboxError } from '../error.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { isMapping } from '../text/json.ts'
import { quoteText, quoteValue } from '../text/units.ts'
import type { SandboxInput } from './keys/index.ts'
import { invalidPolicy } from './policy-error.ts'
import { type ParsedProfile, profileLayer } from './profile-layer.ts'

/**
 * Reads the text of a profile.
 * @param input.file absolute path, for messages
 * @param input.directory what relative host paths are relative to (the directory of the file)
 * @throws SandboxError PROFILE_UNREADABLE with line and column, POLICY_INVALID when it is YAML but no profile
 */
export function parseProfile(input: {
  readonly file: string
  readonly bytes: Uint8Array
  readonly directory?: string
}): ParsedProfile {
  const { file, directory } = input
  const reading = readYaml(decode(input))
  if (!reading.ok) throw unreadable([file, reading.line, reading.column], reading.reason)
  const values = sandboxOf(file, reading.value)
  const lines = linesBelow('sandbox', reading.lines)
  return profileLayer({ file, values, lines, ...(directory === undefined ? {} : { directory }) })
}

function linesBelow(key: string, lines: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const below = Object.entries(lines).filter(([known]) => known.startsWith(`${key}.`))
  return Object.fromEntries(below.map(([known, line]) => [known.slice(key.length + 1), line]))
}

function sandboxOf(file: string, value: unknown): SandboxInput {
  if (!isMapping(value))
    throw invalidPolicy([`${file}: expected a mapping with the key sandbox, got ${quoteValue(value)}.`])
  const strangers = Object.keys(value).filter((key) => key !== 'sandbox')
  const problems = strangers.map(
    (key) => `${file}: expected only the key sandbox at the top, got ${quoteText(key)}.${didYouMean(key, ['sandbox'])}`,
  )
  const { sandbox } = value
  const wrong = isMapping(sandbox) ? [] : [`${file}: sandbox: expected a mapping, got ${quoteValue(sandbox)}.`]
  if (problems.length + wrong.length > 0) throw invalidPolicy([...problems, ...wrong])
  return sandbox as SandboxInput
}

function decode({ file, bytes }: { readonly file: string; readonly bytes: Uint8Array }): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw unreadable([file], 'expected UTF-8 text, got other bytes', cause)
  }
}

function unreadable(location: readonly (string | number | undefined)[], reason: string, cause?: unknown): SandboxError {
  const where = location.filter((part) => part !== undefined).join(':')
  const hint = 'llm-do profiles show default   (a profile that works)'
  return new SandboxError('PROFILE_UNREADABLE', `${where}: ${reason.replace(/\.$/, '')}.`, { hint, cause })
}
