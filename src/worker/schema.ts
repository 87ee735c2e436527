/**
 * Workers and workshops in normal form, declared once: the checks and the JSON schemas for editors come from here. The keys of a
 * policy are declared in policy/keys/; other spellings are in spellings/. Pure.
 */
import { z } from 'zod'
import { oneOf, readBoolean, readHostPath, readLine, readTarget, readZoneName } from '../policy/readers.ts'
import { readBy, sandboxSchema, sectionNamed } from '../policy/schema.ts'
import { misunderstood, type Reader, understood } from '../text/units.ts'
import { codePointName, hiddenCharacter } from './shell-words.ts'
import type { Decision } from './worker.ts'

/** `type` and `description` are for the JSON schema. */
function word<Output>(reader: Reader<Output>, description: string, type: string | readonly string[] = 'string') {
  return readBy(reader, { type, description })
}
const anything = (description: string) => z.unknown().optional().meta({ description })

const NAME = /^[A-Za-z0-9_][A-Za-z0-9 ._-]{0,63}$/
/** The name of a worker or workshop: ASCII, so that no two look alike, and never a path. */
export const readName: Reader<string> = (value) =>
  withUnusual(
    value,
    typeof value === 'string' && NAME.test(value)
      ? understood(value)
      : misunderstood('a name of 1 to 64 ASCII letters, digits, spaces, "-", "_" or "."', value),
  )
const readRequestedZone: Reader<string> = (value) => withUnusual(value, readZoneName(value))

/** A refusal names the character that does not belong: it may look like one that does. */
function withUnusual(value: unknown, reading: ReturnType<Reader<string>>): ReturnType<Reader<string>> {
  const unusual = [...String(value)].find((character) => character > '~' || hiddenCharacter(character) !== undefined)
  const isNamed = !reading.ok && typeof value === 'string' && unusual !== undefined
  return isNamed ? { ...reading, got: `${reading.got} with ${codePointName(unusual)}` } : reading
}

const text: Reader<string> = (value) => (typeof value === 'string' ? understood(value) : misunderstood('text', value))
const textOrNull: Reader<string | null> = (value) => (value === null ? understood(null) : text(value))
const description = word(textOrNull, 'What it is for, in one line.', ['string', 'null']).optional()

/** Null means none. */
const readNames: Reader<unknown> = (value) => {
  const isList = Array.isArray(value) && value.every((element) => typeof element === 'string')
  return isList || typeof value === 'string' || value === null
    ? understood(value)
    : misunderstood('a list of names, or names separated by commas', value)
}
const names = (description: string) => word(readNames, description, ['string', 'array', 'null']).optional()

/** Rules that other programs enforce inside a zone; a mount cannot. */
export const ADVISORY_KEYS = [
  'suffixes',
  'allowed_suffixes',
  'max_bytes',
  'max_file_bytes',
  'write_approval',
  'approval',
] as const
const advisory = Object.fromEntries(ADVISORY_KEYS.map((key) => [key, anything('Advisory: a mount cannot enforce it.')]))

const hostPath = word(readHostPath, 'Directory on the host, relative to this file. Without it the zone is a request.')
const target = word(readTarget, 'Mount point inside.')
const readonly = word(readBoolean, 'true: read-only.', 'boolean').optional()
const zone = z.strictObject({
  ...sectionNamed('zones').shape,
  name: word(readRequestedZone, 'Its name; it appears at /NAME.'),
  hostPath: hostPath.optional(),
  target: target.optional(),
  description: anything('For people.'),
  ...advisory,
})

/** A mount that is not text. */
export const mountShape = z.strictObject({
  type: word(oneOf(['bind']), 'Only bind mounts.').optional(),
  source: hostPath.optional(),
  host_path: hostPath.optional(),
  hostPath: hostPath.optional(),
  target: target.optional(),
  mount_point: target.optional(),
  mode: word(oneOf(['ro', 'rw']), 'ro (default) or rw.').optional(),
  readonly,
})

const { extends: _extends, zones: _zones, ...policyKeys } = sandboxSchema.shape

export const sandboxShape = z.strictObject({
  ...policyKeys,
  zones: z.array(zone).meta({ description: 'Zones.' }),
  restrict: word(readTarget, 'Only this subtree of the directories inside.').optional(),
  readonly,
})

export const ISOLATIONS = ['docker', 'process', 'namespace', 'auto'] as const
/** Keys of a section that become zones, the backend or the directory of host paths. */
const SANDBOX_SPELLINGS = {
  zones: z
    .union([z.array(z.looseObject(zone.shape)), z.record(z.string(), z.unknown())])
    .optional()
    .meta({ description: 'Zones, as a list or by name.' }),
  paths: anything('Zones by name.'),
  mounts: z
    .array(z.union([word(text, 'SOURCE:TARGET[:ro|rw]'), mountShape]))
    .optional()
    .meta({ description: 'Zones in the words of Docker; without a mode they are read-only.' }),
  root: word(
    readHostPath,
    'Directory that host paths are relative to; without zones, the one at /workspace.',
  ).optional(),
  mode: word(oneOf(['direct', 'sandboxed']), 'sandboxed: the default of root is .sandbox.').optional(),
  isolation: z.unknown().optional().meta({ type: 'string', description: 'Backend.', enum: ISOLATIONS }),
} as const
/** The section with every spelling, for editors. */
const writtenSandbox = sandboxShape.extend(SANDBOX_SPELLINGS).nullable().optional()
const anySandbox = z.record(z.string(), z.unknown()).nullable().optional()

/** Meaning of the words of `approval`. */
export const APPROVAL_WORDS = {
  preApproved: 'run',
  pre_approved: 'run',
  allowed: 'run',
  allow: 'run',
  ask: 'ask',
  approval: 'ask',
  blocked: 'block',
  block: 'block',
  deny: 'block',
} as const satisfies Readonly<Record<string, Decision>>
export type ApprovalWord = keyof typeof APPROVAL_WORDS
const approval = word(oneOf(Object.keys(APPROVAL_WORDS) as ApprovalWord[]), 'preApproved: run; ask; blocked.')

const ruleFields = {
  approval_required: word(readBoolean, 'true: ask; false: run.', 'boolean').optional(),
  approval: approval.optional(),
  allowed: word(readBoolean, 'false: blocked.', 'boolean').optional(),
  description: anything('For people.'),
} as const
const rules = z
  .array(
    z.strictObject({ pattern: word(readLine, 'First words of a command; a final * means anything.'), ...ruleFields }),
  )
  .meta({ description: 'The first that matches counts.' })
  .optional()
const fallback = z
  .union([approval, z.strictObject(ruleFields)])
  .optional()
  .meta({ description: 'For commands that no rule matches.' })

/** The options of a shell toolset. */
export const shellShape = z
  .strictObject({ rules, default: fallback, _approval_config: anything('Of other programs.') })
  .nullable()

export const IO_KEYS = [
  'result_type',
  'output_schema_ref',
  'schema_in_ref',
  'schema_out_ref',
  'input_model_ref',
] as const

const anyToolset = z.record(z.string(), z.unknown())
const workerFields = {
  name: word(readName, 'Name of the worker.').optional(),
  description,
  model: word(textOrNull, 'Model; not used by exec.', ['string', 'null']).optional(),
  tools: names('Tools, e.g. Read, Bash(git diff:*). An empty list means none, no list at all means any.'),
  'allowed-tools': names('The same.'),
  allowed_tools: names('The same.'),
  'disallowed-tools': names('Tools that it may not use.'),
  disallowedTools: names('The same.'),
  toolsets: z
    .union([z.array(z.union([word(text, 'Name of a toolset.'), anyToolset])), anyToolset])
    .nullable()
    .optional()
    .meta({ description: 'Sets of tools, and no others. Without a shell toolset no command can be run.' }),
  tool_rules: anyToolset.nullable().optional().meta({ description: 'Approval by tool; only `shell` has an effect.' }),
  shell_rules: rules,
  shell_default: fallback,
  'delegates-to': names('Workers it may call.'),
  delegates_to: names('The same.'),
  allow_workers: names('The same.'),
  sandbox: anySandbox,
  sandboxes: anySandbox.unwrap().unwrap().optional().meta({ description: 'Zones by name.' }),
  ...Object.fromEntries(IO_KEYS.map((key) => [key, anything('Opaque reference to a schema.')])),
} as const

/** Front matter of a worker, agent or skill. Other programs have their own keys in it, so unknown ones are no error. */
export const workerShape = z.looseObject(workerFields)
export const writtenWorkerShape = workerShape.extend({
  sandbox: writtenSandbox.meta({ description: 'Requested files and limits; it gets at most what is granted.' }),
})

/** Every top-level key of front matter that needs no warning: ours, and those of other programs that change nothing here. */
export const KNOWN_WORKER_KEYS: readonly string[] = [
  ...Object.keys(workerFields),
  'entry',
  'license',
  'version',
  'metadata',
  'color',
  'context',
  'user-invocable',
  'argument-hint',
  'compatible_models',
  'attachment_policy',
  'server_side_tools',
  'max_depth',
  'locked',
]

const workshopFields = {
  name: word(readName, 'Name of the workshop.'),
  description,
  isolation: SANDBOX_SPELLINGS.isolation,
  container: anySandbox,
  sandbox: anySandbox,
  workers: z
    .union([z.array(z.unknown()), z.record(z.string(), anySandbox)])
    .nullable()
    .optional(),
  allow_worker_zones: word(readBoolean, 'Workers may add zones inside the project directory.', 'boolean').optional(),
} as const
/** A workshop without its outer key. */
export const workshopShape = z.strictObject(workshopFields)

const workerName = word(readName, 'A worker that may run here.')
export const writtenWorkshopShape = workshopShape.extend({
  container: writtenSandbox,
  sandbox: writtenSandbox,
  workers: z
    .union([
      z.array(z.union([workerName, sandboxShape.extend({ ...SANDBOX_SPELLINGS, name: workerName })])),
      z.record(z.string(), writtenSandbox),
    ])
    .nullable()
    .optional()
    .meta({ description: 'Workers that may run here, each with its restrictions. Without this key: any.' }),
})
