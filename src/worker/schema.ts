/**
 * Every shape in which a worker or workshop may be written, declared once: validation, the unknown-key warnings and the JSON
 * schemas for editors come from here. What a policy key takes is in policy/keys/; here are the other spellings around it.
 * Pure.
 */
import { z } from 'zod'
import { oneOf, readBoolean, readHostPath, readLine, readTarget, readZoneName } from '../policy/readers.ts'
import { readBy, sandboxSchema, sectionNamed } from '../policy/schema.ts'
import { listWords } from '../text/choices.ts'
import { misunderstood, type Reader, understood } from '../text/units.ts'
import { codePointName, hiddenCharacter } from './shell-words.ts'

/** A value understood by a reader of ours, with the words it expects. `type` and `description` are for the JSON schema. */
function word<Output>(reader: Reader<Output>, description: string, type: string | readonly string[] = 'string') {
  return readBy(reader, { type, description })
}

const orNull =
  <Output>(reader: Reader<Output>): Reader<Output | null> =>
  (value) =>
    value === null ? understood(null) : reader(value)

const NAME = /^[A-Za-z0-9_][A-Za-z0-9 ._-]{0,63}$/
const EXPECTED_NAME = 'a name of 1 to 64 ASCII letters, digits, spaces, "-", "_" or "."'
/** The name of a worker or workshop: ASCII, so that no two look alike, and never a path. */
export const readName: Reader<string> = (value) => {
  if (typeof value === 'string' && NAME.test(value)) return understood(value)
  return { ...misunderstood(EXPECTED_NAME, value), got: `${misunderstood('', value).got}${unusualCharacter(value)}` }
}

/** The zone's name as policies read it, with the character that does not belong named: it may look as if it did. */
const readRequestedZone: Reader<string> = (value) => {
  const reading = readZoneName(value)
  return reading.ok ? reading : { ...reading, got: `${reading.got}${unusualCharacter(value)}` }
}

function unusualCharacter(value: unknown): string {
  if (typeof value !== 'string') return ''
  const unusual = [...value].find((character) => character > '~' || hiddenCharacter(character) !== undefined)
  return unusual === undefined ? '' : ` with ${codePointName(unusual)}`
}

const text: Reader<string> = (value) => (typeof value === 'string' ? understood(value) : misunderstood('text', value))

/** A comma-separated text or a list of texts; null stands for none. */
const readNames: Reader<unknown> = (value) => {
  const isList = Array.isArray(value) && value.every((element) => typeof element === 'string')
  return isList || typeof value === 'string' || value === null
    ? understood(value)
    : misunderstood('a list of names, or names separated by commas', value)
}
const names = (description: string) => word(readNames, description, ['string', 'array', 'null']).optional()

const anything = (description: string) => z.unknown().optional().meta({ description })

/** Rules that other programs keep inside a zone; a mount cannot. */
const ADVISORY = {
  suffixes: anything('Advisory: file name endings that tools should keep to.'),
  allowed_suffixes: anything('Advisory: the same.'),
  max_bytes: anything('Advisory: largest file in bytes.'),
  max_file_bytes: anything('Advisory: the same.'),
  write_approval: anything('Advisory: tools should ask before they write.'),
  approval: anything('Advisory: tools should ask, by operation.'),
  description: anything('For people.'),
} as const
export const ADVISORY_KEYS: readonly string[] = Object.keys(ADVISORY).filter((key) => key !== 'description')

const hostPath = word(readHostPath, 'Directory on the host, relative to this file. Without one the zone is a request.')
const target = word(readTarget, 'Where it appears inside.')
const readonly = word(readBoolean, 'true: read-only.', 'boolean')
const { name: _name, hostPath: _path, target: _target, ...zoneKeys } = sectionNamed('zones').shape

const zoneFields = {
  ...zoneKeys,
  hostPath: hostPath.optional(),
  path: hostPath.optional(),
  root: hostPath.optional(),
  host_path: hostPath.optional(),
  target: target.optional(),
  mount_point: target.optional(),
  readonly: readonly.optional(),
  ...ADVISORY,
} as const

const zoneName = word(readRequestedZone, 'Its name; it appears at /NAME.')
const listedZone = z.strictObject({ name: zoneName, ...zoneFields })
const mappedZone = z.strictObject(zoneFields)
const zoneMap = z
  .record(z.string(), mappedZone)
  .superRefine((zones, context) => {
    for (const name of Object.keys(zones)) {
      const reading = readRequestedZone(name)
      if (!reading.ok)
        context.addIssue({ code: 'custom', path: [name], message: reading.expected, params: { ...reading } })
    }
  })
  .meta({ description: 'Zones by name.' })

const readMount: Reader<string> = (value) =>
  typeof value === 'string' && parseMount(value) !== undefined
    ? understood(value)
    : misunderstood('SOURCE:TARGET, SOURCE:TARGET:ro or SOURCE:TARGET:rw with an absolute TARGET', value)

export interface MountText {
  readonly source: string
  readonly target: string
  readonly mode?: 'ro' | 'rw'
}

/** `./src:/workspace/src:ro`; undefined for anything else. */
export function parseMount(value: string): MountText | undefined {
  const match = /^([^:]+):(\/[^:]*)(?::(ro|rw))?$/.exec(value)
  if (match === null) return undefined
  const [, source = '', where = '', mode] = match
  return { source, target: where, ...(mode === undefined ? {} : { mode: mode as 'ro' | 'rw' }) }
}

const mount = z.strictObject({
  type: word(oneOf(['bind']), 'Only bind mounts.').optional(),
  source: hostPath.optional(),
  host_path: hostPath.optional(),
  hostPath: hostPath.optional(),
  target: target.optional(),
  mount_point: target.optional(),
  mode: word(oneOf(['ro', 'rw']), 'ro or rw; ro when it is left out.').optional(),
  readonly: readonly.optional(),
})

const ISOLATIONS = ['docker', 'process', 'namespace', 'auto'] as const
const isolation = word(oneOf(ISOLATIONS), `Backend: ${listWords(ISOLATIONS)}.`)

const { extends: _extends, zones: _zones, ...policyKeys } = sandboxSchema.shape

const sandboxFields = {
  ...policyKeys,
  zones: z
    .union([z.array(listedZone), zoneMap])
    .optional()
    .meta({ description: 'Zones, as a list or by name.' }),
  paths: zoneMap.optional(),
  mounts: z
    .array(z.union([word(readMount, 'SOURCE:TARGET[:ro|rw]'), mount]))
    .optional()
    .meta({ description: 'Zones in the words of docker; without a mode they are read-only.' }),
  root: word(readHostPath, 'What host paths are relative to; without zones, the directory at /workspace.').optional(),
  mode: word(
    oneOf(['direct', 'sandboxed']),
    'sandboxed: paths are relative to .sandbox unless root says otherwise.',
  ).optional(),
  restrict: word(readTarget, 'Only this subtree of what is visible inside.').optional(),
  readonly: readonly.optional(),
  isolation: isolation.optional(),
} as const

/** The section `sandbox` of a worker. */
export const sandboxShape = z.strictObject(sandboxFields)

const APPROVALS = {
  preApproved: 'run',
  pre_approved: 'run',
  allowed: 'run',
  allow: 'run',
  ask: 'ask',
  approval: 'ask',
  blocked: 'block',
  block: 'block',
  deny: 'block',
} as const
/** What the words of `approval` mean. */
export const APPROVAL_WORDS: Readonly<Record<string, 'run' | 'ask' | 'block'>> = APPROVALS
const approval = word(oneOf(Object.keys(APPROVALS)), 'preApproved: run; ask; blocked.')

const ruleFields = {
  approval_required: word(readBoolean, 'true: ask; false: run.', 'boolean').optional(),
  approval: approval.optional(),
  allowed: word(readBoolean, 'false: blocked.', 'boolean').optional(),
  description: anything('For people.'),
} as const
const ruleShape = z.strictObject({
  pattern: word(readLine, 'Words a command begins with; a final * stands for anything.'),
  ...ruleFields,
})
const defaultShape = z.union([approval, z.strictObject(ruleFields)])
const rules = z.array(ruleShape).meta({ description: 'The first that matches counts.' })

/** What may stand under a shell toolset. */
export const shellShape = z
  .strictObject({
    rules: rules.optional(),
    default: defaultShape.optional(),
    _approval_config: anything('Of other programs.'),
  })
  .nullable()

const toolsets = z
  .union([
    z.array(z.union([word(text, 'Name of a toolset.'), z.record(z.string(), z.unknown())])),
    z.record(z.string(), z.unknown()),
  ])
  .nullable()
  .optional()
  .meta({
    description: 'Sets of tools; what is not named is not there. Without a shell toolset no command can be run.',
  })

const workerFields = {
  name: word(readName, 'How the worker is called.').optional(),
  description: word(orNull(text), 'What it is for, in one line.', ['string', 'null']).optional(),
  model: word(orNull(text), 'Model; not used by exec.', ['string', 'null']).optional(),
  tools: names('Tools, e.g. Read, Bash(git diff:*). An empty list means none, no list at all means any.'),
  'allowed-tools': names('The same.'),
  allowed_tools: names('The same.'),
  'disallowed-tools': names('Tools that are taken away.'),
  disallowedTools: names('The same.'),
  toolsets,
  tool_rules: z
    .record(z.string(), z.unknown())
    .nullable()
    .optional()
    .meta({ description: 'Approval by tool; `shell` counts.' }),
  shell_rules: rules.optional(),
  shell_default: defaultShape.optional().meta({ description: 'What holds when no rule of shell_rules matches.' }),
  'delegates-to': names('Workers it may call.'),
  delegates_to: names('The same.'),
  allow_workers: names('The same.'),
  sandbox: sandboxShape
    .nullable()
    .optional()
    .meta({ description: 'What it wishes to see and use; it gets at most what is granted.' }),
  sandboxes: zoneMap.optional().meta({ description: 'Zones by name, as old workers have them.' }),
  result_type: anything('Opaque reference to a schema.'),
  output_schema_ref: anything('Opaque reference to a schema.'),
  schema_in_ref: anything('Opaque reference to a schema.'),
  schema_out_ref: anything('Opaque reference to a schema.'),
  input_model_ref: anything('Opaque reference to a schema.'),
} as const
export const IO_KEYS = [
  'result_type',
  'output_schema_ref',
  'schema_in_ref',
  'schema_out_ref',
  'input_model_ref',
] as const

/** Front matter of a worker, agent or skill. Other programs have keys of their own in it, so unknown ones are let through. */
export const workerShape = z.looseObject(workerFields)

/** Keys that other programs understand and that change nothing here: no warning. */
const FOREIGN_KEYS = [
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
] as const
/** Every top-level key of front matter that needs no warning. */
export const KNOWN_WORKER_KEYS: readonly string[] = [...Object.keys(workerFields), ...FOREIGN_KEYS]

const narrowingFields = { name: word(readName, 'A worker that may run here.'), ...sandboxFields } as const
const narrowing = z.strictObject(narrowingFields)
const workshopFields = {
  name: word(readName, 'How the workshop is called.'),
  description: word(orNull(text), 'What it is for, in one line.', ['string', 'null']).optional(),
  isolation: isolation.optional(),
  container: sandboxShape.nullable().optional(),
  sandbox: sandboxShape.nullable().optional(),
  workers: z
    .union([
      z.array(z.union([word(readName, 'A worker that may run here.'), narrowing])),
      z.record(z.string(), sandboxShape.nullable()),
    ])
    .nullable()
    .optional()
    .meta({
      description: 'The workers that may run here, each with what this workshop takes away from it. Left out: any.',
    }),
  allow_worker_zones: word(readBoolean, 'Workers may add zones inside the project directory.', 'boolean').optional(),
} as const

/** A workshop without its outer key. */
export const workshopShape = z.strictObject(workshopFields)
/** A workshop below the key `workshop`. */
export const nestedWorkshopShape = z.strictObject({ workshop: workshopShape })
export const WORKSHOP_KEYS: readonly string[] = Object.keys(workshopFields)
