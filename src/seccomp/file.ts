/** A user's filter file: YAML or JSON to rules. Pure; whoever reads the file passes its text. */
import { parseDocument } from 'yaml'
import { z } from 'zod'
import { SandboxError } from '../error.ts'
import { ERRNO, type ErrnoName } from './errno.ts'
import { PROFILE_NAMES, type SeccompRules } from './rules.ts'
import { SYSCALL_NAMES } from './syscalls.ts'

/** Completes a message: ` Did you mean "mount"?` or nothing. The policy's own, which this floor may not import. */
export type DidYouMean = (word: string, known: readonly string[]) => string

const ERRNO_NAMES = Object.keys(ERRNO) as ErrnoName[]

/** Words a key may have, for the schema and for the near miss. */
const word = <T extends string>(known: readonly T[], what: string) =>
  z.custom<T>((value) => (known as readonly unknown[]).includes(value), { params: { known, what } })

const systemCall = word(SYSCALL_NAMES, 'a system call of Linux on x86_64 or aarch64')

export const seccompFileSchema = z.strictObject({
  extends: word(PROFILE_NAMES, `one of ${PROFILE_NAMES.join(', ')}`)
    .default('default')
    .describe('The profile to start from.'),
  allow: z.array(systemCall).default([]).describe('System calls that the profile refuses and this file does not.'),
  deny: z
    .array(
      z.strictObject({
        names: z.array(systemCall).min(1).describe('System calls that are refused whatever their arguments.'),
        errno: word(ERRNO_NAMES, `one of ${ERRNO_NAMES.join(', ')}`)
          .default('EPERM')
          .describe('The error that the program sees.'),
      }),
    )
    .default([])
    .describe('More refusals; deny wins over allow.'),
})

/** Keys at each level, for the near miss of an unknown one. */
const KEYS = { top: ['extends', 'allow', 'deny'], deny: ['names', 'errno'] } as const

const show = (value: unknown): string =>
  `${JSON.stringify(value) ?? 'nothing'} (${value === null ? 'null' : typeof value})`

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], value)
}

function explain(issue: z.core.$ZodIssue, document: unknown, didYouMean: DidYouMean): string {
  const key = issue.path.length === 0 ? 'the file' : issue.path.join('.')
  const got = valueAt(document, issue.path)
  if (issue.code === 'unrecognized_keys') {
    const known = issue.path.length === 0 ? KEYS.top : KEYS.deny
    return `${key}: expected the keys ${known.join(', ')}, got ${issue.keys.map((name) => `"${name}".${didYouMean(name, known)}`).join(' ')}`
  }
  if (issue.code === 'custom') {
    const { known, what } = issue.params as { known: readonly string[]; what: string }
    return `${key}: expected ${what}, got ${show(got)}.${typeof got === 'string' ? didYouMean(got, known) : ''}`
  }
  if (issue.code === 'invalid_type') return `${key}: expected ${issue.expected}, got ${show(got)}`
  return `${key}: ${issue.message}, got ${show(got)}`
}

/**
 * Reads the text of a filter file: `{extends, allow, deny: [{names, errno}]}`.
 * @param from.source how messages name the file
 * @throws SandboxError PROFILE_UNREADABLE for text that is no YAML, POLICY_INVALID with every problem for the rest
 */
export function parseSeccompFile(from: {
  readonly text: string
  readonly source: string
  readonly didYouMean: DidYouMean
}): SeccompRules {
  const yaml = parseDocument(from.text, { prettyErrors: true })
  const syntax = yaml.errors[0]
  if (syntax !== undefined)
    throw new SandboxError('PROFILE_UNREADABLE', `${from.source}: expected YAML or JSON, got ${syntax.message}`, {
      hint: 'An empty filter file is `extends: default`.',
      cause: syntax,
    })
  const document: unknown = yaml.toJS()
  const parsed = seccompFileSchema.safeParse(document)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => `${from.source}: ${explain(issue, document, from.didYouMean)}`)
  throw new SandboxError('POLICY_INVALID', problems.join('\n'), {
    hint: 'The keys and the shipped profiles are described in docs/seccomp.md.',
    problems,
  })
}
