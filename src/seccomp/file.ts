/** A user's filter file: YAML or JSON to rules. Pure; the caller reads the file and passes its text. */
import { z } from 'zod'
import { keysOfSchema, schemaProblems, sentenceOf } from '../config/schema-problems.ts'
import { readYaml } from '../config/yaml.ts'
import { SandboxError } from '../error.ts'
import { nearest } from '../text/did-you-mean.ts'
import { quoteValue } from '../text/units.ts'
import { ERRNO, type ErrnoName } from './errno.ts'
import { PROFILE_NAMES, type SeccompRules } from './rules.ts'
import { SYSCALL_NAMES } from './syscalls.ts'

const ERRNO_NAMES = Object.keys(ERRNO) as ErrnoName[]

/** One of the known words. @param expected completes "expected ..." */
const word = <T extends string>(known: readonly T[], expected: string) =>
  z.custom<T>().superRefine((value: unknown, context) => {
    if ((known as readonly unknown[]).includes(value)) return
    const near = typeof value === 'string' ? nearest(value, known) : undefined
    const params = { expected, got: quoteValue(value), ...(near === undefined ? {} : { near }) }
    context.addIssue({ code: 'custom', message: expected, params })
  })

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

/**
 * Reads the text of a filter file: `{extends, allow, deny: [{names, errno}]}`.
 * @param from.source how messages name the file
 * @throws SandboxError PROFILE_UNREADABLE for text other than YAML, POLICY_INVALID with every problem for the rest
 */
export function parseSeccompFile({ text, source }: { readonly text: string; readonly source: string }): SeccompRules {
  const reading = readYaml(text)
  if (!reading.ok) {
    const location = [source, reading.line, ...(reading.column === undefined ? [] : [reading.column])].join(':')
    const hint = 'An empty filter file is `extends: default`.'
    throw new SandboxError('PROFILE_UNREADABLE', `${location}: ${reading.reason.replace(/\.$/, '')}.`, { hint })
  }
  const parsed = seccompFileSchema.safeParse(reading.value)
  if (parsed.success) return parsed.data
  const keysAt = (path: readonly PropertyKey[]) => keysOfSchema(seccompFileSchema, path)
  const problems = schemaProblems(parsed.error.issues, { value: reading.value, keysAt }).map(
    (problem) => `${source}: ${problem.key === '' ? 'the file' : problem.key}: ${sentenceOf(problem)}`,
  )
  throw new SandboxError('POLICY_INVALID', problems.join('\n'), {
    hint: 'The keys and the shipped profiles are described in docs/reference/seccomp.md.',
    problems,
  })
}
