/**
 * Every key of a policy, declared once: what it takes, in which unit, its default and one line of meaning.
 * Validation, the option help, the JSON schema and the table of docs/profiles.md all come from here.
 * Unknown keys are refused. Values are read into plain numbers and words (bytes, milliseconds).
 */
import { z } from 'zod'
import {
  misunderstood,
  orNone,
  parseCount,
  parseCpus,
  parseDuration,
  parseSize,
  type Reader,
  type Reading,
  understood,
  within,
} from '../unit.ts'
import { type BackendChoice, type EngineChoice, NEEDS, type NetworkMode } from './policy.ts'
import { OPENABLE_NAMES } from './protected.ts'
import * as read from './value.ts'

/** What is declared beside the type of a key. The names are those of JSON schema, so that it can be generated. */
export interface KeyMeaning {
  /** One line. */
  readonly description: string
  /** What a value looks like, in words, e.g. `size`, `time`, `cores`. */
  readonly unit: string
  /** The value of the built-in layer as a person would write it; absent when there is none. */
  readonly standard?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly (string | boolean)[]
}

/** A key whose value is understood by a reader of ours: our words for what was expected, one way to say it. */
function key<Input, Output>(reader: Reader<Output>, meaning: KeyMeaning): z.ZodOptional<z.ZodType<Output, Input>> {
  return element<Input, Output>(reader)
    .optional()
    .meta({ ...meaning }) as z.ZodOptional<z.ZodType<Output, Input>>
}

function element<Input, Output>(
  reader: Reader<Output>,
  type: string | readonly string[] = 'string',
): z.ZodType<Output, Input> {
  const schema = z.unknown().transform((value, context) => {
    const reading = reader(value)
    if (reading.ok) return reading.value
    context.addIssue({ code: 'custom', message: reading.expected, params: { ...reading } })
    return z.NEVER
  })
  return schema.meta({ type }) as unknown as z.ZodType<Output, Input>
}

/** More than anybody writes by hand, few enough to compare each with each. */
const LONGEST_LIST = 1000
/** Every zone is several mounts. */
const MOST_ZONES = 256

function list<Output>(reader: Reader<Output>, meaning: KeyMeaning) {
  return z
    .array(element<string, Output>(reader))
    .max(LONGEST_LIST)
    .optional()
    .meta({ ...meaning })
}

const MEASURED = ['string', 'number'] as const
type Measured = string | number

/** One page: a tmpfs of size 0 would have no bound at all (tmpfs(5), "size"). */
const PAGE = 4096
const scratchSize = within(parseSize, {
  least: PAGE,
  most: Number.MAX_SAFE_INTEGER,
  expected: 'a size of at least 4k, such as 50m',
})
/** Below this the helpers themselves could not start. */
const LEAST_MEMORY = 4 * 1024 ** 2
const memory = within(orNone(parseSize), {
  least: LEAST_MEMORY,
  most: Number.MAX_SAFE_INTEGER,
  expected: 'a size of at least 4m, such as 512m, or none',
})
/** The engine, our init and the command. The largest is PID_MAX_LIMIT of linux/threads.h. */
const pids = within(orNone(parseCount), {
  least: 3,
  most: 4_194_304,
  expected: 'a number of processes from 3 to 4194304, or none',
})
/** 24 days: the largest delay of a 32-bit millisecond timer. */
const time = within(orNone(parseDuration), {
  least: 1,
  most: 2 ** 31 - 1,
  expected: 'a time from 1ms to 24d, such as 30s, or none',
})
/** One page a second: below that a single operation would block for longer than any deadline. */
const bytesPerSecond = within(orNone(parseSize), {
  least: PAGE,
  most: Number.MAX_SAFE_INTEGER,
  expected: 'a size of at least 4k, such as 20m, or none',
})
/** The kernel counts operations in 32 bits (UINT_MAX is "no limit", block/blk-throttle.c). */
const operationsPerSecond = within(orNone(parseCount), {
  least: 1,
  most: 2 ** 32 - 2,
  expected: 'a number of operations from 1 to 4294967294, or none',
})

const zoneSchema = z.strictObject({
  name: key<string, string>(read.readZoneName, {
    description:
      'Name, by which later layers change the zone; it appears at /NAME. Without one it appears at its own host path.',
    unit: 'name',
    type: 'string',
  }),
  mode: key<'ro' | 'rw' | 'tmpfs', 'ro' | 'rw' | 'tmpfs'>(read.oneOf(['ro', 'rw', 'tmpfs']), {
    description: 'ro: can be read; rw: can be changed; tmpfs: empty, in memory, gone at the end.',
    unit: 'word',
    standard: 'ro',
    type: 'string',
    enum: ['ro', 'rw', 'tmpfs'],
  }),
  hostPath: key<string, string>(read.readHostPath, {
    description: 'What is shown: relative to the file that says so (a flag: to the caller), ~/ is the home directory.',
    unit: 'path',
    type: 'string',
  }),
  target: key<string, string>(read.readTarget, {
    description: 'Where it appears inside.',
    unit: 'absolute path',
    standard: '/NAME',
    type: 'string',
  }),
  size: key<Measured, number>(scratchSize, {
    description: 'Most bytes of a tmpfs zone.',
    unit: 'size',
    standard: '50m',
    type: MEASURED,
  }),
  create: key<boolean, boolean>(read.readBoolean, {
    description: 'Make the host directory when it is missing.',
    unit: 'true or false',
    standard: 'false',
    type: 'boolean',
  }),
  optional: key<boolean, boolean>(read.readBoolean, {
    description: 'Leave the zone out when its source is missing.',
    unit: 'true or false',
    standard: 'false',
    type: 'boolean',
  }),
  sockets: key<boolean, boolean>(read.readBoolean, {
    description: 'Sockets and FIFOs in the zone may be used and made: a way out to whoever listens there.',
    unit: 'true or false',
    standard: 'false',
    type: 'boolean',
  }),
})

/** What a layer says about the network. `mode` is absent when only a deny list is given. */
export interface NetworkSaid {
  readonly mode?: NetworkMode
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}

const NETWORK_WORDS: Readonly<Record<string, NetworkMode>> = {
  none: 'none',
  no: 'none',
  off: 'none',
  false: 'none',
  restricted: 'restricted',
  host: 'host',
  true: 'host',
}
const EXPECTED_NETWORK = 'none, restricted or host'
const readNetworkMode: Reader<NetworkMode> = (value) => {
  if (value === 'on' || value === 'yes')
    return misunderstood(`${EXPECTED_NETWORK} (${value} could mean either of the last two)`, value)
  const isWord = typeof value === 'boolean' || (typeof value === 'string' && Object.hasOwn(NETWORK_WORDS, value))
  const mode = isWord ? NETWORK_WORDS[String(value)] : undefined
  return mode === undefined ? withNear(read.oneOf(['none', 'restricted', 'host'])(value)) : understood(mode)
}
const withNear = (reading: Reading<NetworkMode>): Reading<NetworkMode> =>
  reading.ok ? reading : { ...reading, expected: EXPECTED_NETWORK }

const networkTable = z.strictObject({
  mode: key<NetworkMode | boolean, NetworkMode>(readNetworkMode, {
    description:
      'none: only a loopback of its own; restricted: the hosts of allow; host: no wall. Naming a host means restricted.',
    unit: 'word',
    standard: 'none',
    type: ['string', 'boolean'],
    enum: ['none', 'restricted', 'host', 'no', 'off', true, false],
  }),
  allow: list(read.readHost, {
    description: 'Hosts that may be reached: host, *.host, host:port.',
    unit: 'list of hosts',
    standard: '[]',
  }),
  deny: list(read.readHost, {
    description: 'Hosts that may not, whatever allow says.',
    unit: 'list of hosts',
    standard: '[]',
  }),
})

const networkSchema = z
  .unknown()
  .transform((value, context): NetworkSaid => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      const table = networkTable.safeParse(value)
      if (table.success) return networkSaid(table.data)
      for (const issue of table.error.issues) context.addIssue({ ...issue, path: [...issue.path] } as never)
      return z.NEVER
    }
    const reading = readNetworkMode(value)
    if (reading.ok) return { mode: reading.value, allow: [], deny: [] }
    context.addIssue({ code: 'custom', message: reading.expected, params: { ...reading } })
    return z.NEVER
  })
  .optional()
  .meta({ description: 'One of the words of mode, or a mapping.', unit: 'word or mapping', standard: 'none' })

function networkSaid(table: z.output<typeof networkTable>): NetworkSaid {
  const { mode = table.allow === undefined ? undefined : 'restricted', allow = [], deny = [] } = table
  return { ...(mode === undefined ? {} : { mode }), allow, deny }
}

/** What a layer says with `backend`: an alias of an engine names the engine too. */
export interface BackendSaid {
  readonly backend: BackendChoice
  readonly engine?: EngineChoice
}

const BACKEND_WORDS: Readonly<Record<string, BackendSaid>> = {
  auto: { backend: 'auto' },
  namespace: { backend: 'namespace' },
  bubblewrap: { backend: 'namespace', engine: 'bwrap' },
  bwrap: { backend: 'namespace', engine: 'bwrap' },
  unshare: { backend: 'namespace', engine: 'unshare' },
  docker: { backend: 'docker' },
  wasm: { backend: 'wasm' },
  process: { backend: 'process' },
}
export type BackendWord = 'auto' | 'namespace' | 'bubblewrap' | 'bwrap' | 'unshare' | 'docker' | 'wasm' | 'process'
const readBackend: Reader<BackendSaid> = (value) => {
  const reading = read.oneOf(Object.keys(BACKEND_WORDS))(value)
  return reading.ok ? understood(BACKEND_WORDS[reading.value] ?? { backend: 'auto' }) : reading
}

/** A word of the built-in filters, or the path of a filter file (recognised by its slash or `.json`). */
export type SeccompSaid = 'default' | 'strict' | 'nested' | 'off' | { readonly file: string }
const readSeccomp: Reader<SeccompSaid> = (value) => {
  const isFile = typeof value === 'string' && (value.includes('/') || value.endsWith('.json'))
  if (isFile) {
    const reading = read.readHostPath(value)
    return reading.ok ? understood({ file: reading.value }) : reading
  }
  const reading = read.oneOf(['default', 'strict', 'nested', 'off'])(value)
  return reading.ok ? reading : { ...reading, expected: `${reading.expected}, or the path of a filter file` }
}

/** A name of the built-in list; the slash at the end of a directory is taken away. */
const readOpenable: Reader<string> = (value) => {
  const name = typeof value === 'string' && value.length > 1 ? value.replace(/^\.\//, '').replace(/\/$/, '') : value
  const reading = read.oneOf(OPENABLE_NAMES)(name)
  return reading.ok ? reading : { ...reading, expected: 'a name of the built-in list of protected names, .git or *' }
}

/** Runtimes with a default image, and the one that the wasm backend uses only when it is named. */
export const RUNTIMES = ['node', 'python', 'cpp', 'java', 'dotnet', 'bash', 'wasmtime'] as const

const scratch = (description: string, standard: string) =>
  key<Measured, number>(scratchSize, { description, unit: 'size', standard, type: MEASURED })

const rate = (reader: Reader<number | null>, unit: string, description: string) =>
  key<Measured, number | null>(reader, { description, unit, standard: 'none', type: MEASURED })

const resourcesSchema = z.strictObject({
  memory: key<Measured, number | null>(memory, {
    description: 'Most memory of the whole run, files in its scratch directories included.',
    unit: 'size or none',
    standard: '512m',
    type: MEASURED,
  }),
  swap: key<Measured, number>(parseSize, {
    description: 'Most swap space on top of the memory.',
    unit: 'size',
    standard: '0',
    type: MEASURED,
  }),
  cpu: key<Measured, number | null>(orNone(parseCpus, ['all', 'none', 'unlimited']), {
    description: 'How many cores the run may keep busy.',
    unit: 'cores or all',
    standard: '2',
    type: MEASURED,
  }),
  pids: key<Measured, number | null>(pids, {
    description: 'Most processes and threads at once.',
    unit: 'number or none',
    standard: '256',
    type: MEASURED,
  }),
  timeout: key<string, number | null>(time, {
    description: 'Wall time before the command is stopped.',
    unit: 'time or none',
    standard: '30s',
    type: 'string',
  }),
  cpuTime: key<string, number | null>(time, {
    description: 'Processor time before the command is stopped.',
    unit: 'time or none',
    standard: 'none',
    type: 'string',
  }),
  readBps: rate(bytesPerSecond, 'size or none', 'Most bytes a second that the run reads from each disk.'),
  writeBps: rate(bytesPerSecond, 'size or none', 'Most bytes a second that the run writes to each disk.'),
  readIops: rate(operationsPerSecond, 'number or none', 'Most reads a second from each disk.'),
  writeIops: rate(operationsPerSecond, 'number or none', 'Most writes a second to each disk.'),
  tmp: scratch('Size of /tmp.', '50m'),
  run: scratch('Size of /run.', '10m'),
  shm: scratch('Size of /dev/shm.', '64m'),
  home: scratch('Size of the home directory.', '50m'),
  output: key<Measured, number | null>(orNone(parseSize), {
    description: 'Bytes kept of stdout and of stderr when they are captured; the middle is dropped.',
    unit: 'size or none',
    standard: '1m',
    type: MEASURED,
  }),
})

const environmentSchema = z.strictObject({
  inherit: list(read.readInherited, {
    description: 'Variables taken over from the caller; a name that ends in * is a prefix.',
    unit: 'list of names',
    standard: '[]',
  }),
  set: key<Readonly<Record<string, string>>, Readonly<Record<string, string>>>(read.readVariables, {
    description: 'Variables with their values. Values never reach a plan, a log or an argument list.',
    unit: 'mapping',
    standard: '{}',
    type: 'object',
  }),
})

const credentialSchema = z.strictObject({
  file: element<string, string>(read.readHostPath).meta({
    description: 'The file on the host.',
    unit: 'path',
    type: 'string',
  }),
  target: key<string, string>(read.readCredentialTarget, {
    description: 'Where it appears, ~/ being the home inside.',
    unit: 'absolute path',
    standard: 'the same place below the home',
    type: 'string',
  }),
})

/** The keys below `sandbox:`. */
export const sandboxSchema = z.strictObject({
  extends: key<string, string>(read.readProfileName, {
    description: 'The profile that this one starts from: a name, or a path relative to this file.',
    unit: 'name or path',
    type: 'string',
  }),
  description: key<string, string>(read.readLine, {
    description: 'One line for people.',
    unit: 'text',
    type: 'string',
  }),
  backend: key<BackendWord, BackendSaid>(readBackend, {
    description: 'Where it runs; bubblewrap, bwrap and unshare are the namespace backend with that engine.',
    unit: 'word',
    standard: 'auto',
    type: 'string',
    enum: Object.keys(BACKEND_WORDS),
  }),
  engine: key<EngineChoice, EngineChoice>(read.oneOf(['auto', 'bwrap', 'unshare']), {
    description: 'What builds the walls of the namespace backend.',
    unit: 'word',
    standard: 'auto',
    type: 'string',
    enum: ['auto', 'bwrap', 'unshare'],
  }),
  image: key<string, string>(read.readImage, {
    description: 'Container image.',
    unit: 'image',
    standard: 'from runtime',
    type: 'string',
  }),
  runtime: key<(typeof RUNTIMES)[number], (typeof RUNTIMES)[number]>(read.oneOf(RUNTIMES), {
    description: 'Kind of program, which chooses the default image; wasmtime: runs WASI modules instead of node.',
    unit: 'word',
    type: 'string',
    enum: RUNTIMES,
  }),
  docker: z
    .strictObject({
      reuse: key<'off' | 'session', 'off' | 'session'>(read.oneOf(['off', 'session']), {
        description: 'session keeps one container per plan: quicker, and runs can see what earlier ones left.',
        unit: 'word',
        standard: 'off',
        type: 'string',
        enum: ['off', 'session'],
      }),
    })
    .optional(),
  zones: z.array(zoneSchema).max(MOST_ZONES).optional().meta({
    description: 'What is visible of the host, and fresh tmpfs. Merged by name.',
    unit: 'list of mappings',
    standard: '[]',
  }),
  workspace: key<'ro' | 'rw' | 'none', 'ro' | 'rw' | 'none'>(read.oneOf(['ro', 'rw', 'none']), {
    description: "How the caller's directory appears at /workspace when no zone is given.",
    unit: 'word',
    standard: 'ro',
    type: 'string',
    enum: ['ro', 'rw', 'none'],
  }),
  samePath: key<boolean, boolean>(read.readBoolean, {
    description: 'The workspace keeps its host path inside.',
    unit: 'true or false',
    standard: 'false',
    type: 'boolean',
  }),
  network: networkSchema,
  resources: resourcesSchema.optional(),
  env: environmentSchema.optional(),
  credentials: z
    .array(credentialSchema)
    .max(MOST_ZONES)
    .optional()
    .meta({ description: 'Files shown read-only at a fixed place.', unit: 'list of mappings', standard: '[]' }),
  sshAgent: key<boolean, boolean>(read.readBoolean, {
    description: "The caller's SSH agent can be asked to sign; only its socket is shown.",
    unit: 'true or false',
    standard: 'false',
    type: 'boolean',
  }),
  seccomp: key<string, SeccompSaid>(readSeccomp, {
    description: 'System call filter: default, strict, nested (allows sandboxes inside), off, or a file.',
    unit: 'word or path',
    standard: 'default',
    type: 'string',
  }),
  toolchains: key<'auto' | 'off', 'auto' | 'off'>(read.oneOf(['auto', 'off']), {
    description:
      'auto shows the installation of a tool outside /usr (nvm, pyenv, cargo...) read-only when the command needs it.',
    unit: 'word',
    standard: 'auto',
    type: 'string',
    enum: ['auto', 'off'],
  }),
  workdir: key<string, string>(read.readTarget, {
    description: 'Directory inside in which the command starts.',
    unit: 'absolute path',
    standard: 'where the caller stands',
    type: 'string',
  }),
  protect: list(read.readRelativePath, {
    description: 'More paths that stay read-only inside rw zones, in addition to the built-in names.',
    unit: 'list of paths',
    standard: '[]',
  }),
  protectNot: list(readOpenable, {
    description: 'Built-in protected names that may be written all the same; .git: git directories, *: every name.',
    unit: 'list of names',
    standard: '[]',
  }),
  require: list(read.oneOf(NEEDS), {
    description: 'Needs that the kernel itself must enforce, or the run is refused.',
    unit: 'list of words',
    standard: '[]',
  }),
  bestEffort: key<boolean, boolean>(read.readBoolean, {
    description: 'Run although a limit cannot be held at all; the result says which.',
    unit: 'true or false',
    standard: 'false',
    type: 'boolean',
  }),
  tty: key<boolean, boolean>(read.readBoolean, {
    description: 'The command gets a terminal of its own.',
    unit: 'true or false',
    standard: 'false',
    type: 'boolean',
  }),
  cgroupParent: key<string, string>(read.readAbsoluteHostPath, {
    description: 'Cgroup directory below which the run gets its own.',
    unit: 'absolute path',
    standard: 'found by itself',
    type: 'string',
  }),
  pool: key<'auto' | 'off', 'auto' | 'off'>(read.oneOf(['auto', 'off']), {
    description: 'Whether a warm sandbox may be used.',
    unit: 'word',
    standard: 'auto',
    type: 'string',
    enum: ['auto', 'off'],
  }),
})

/** A profile file: everything below one key, so that other programs can have theirs beside it. */
export const profileSchema = z.strictObject({ sandbox: sandboxSchema })

export type NetworkInput =
  | NetworkMode
  | 'no'
  | 'off'
  | boolean
  | { readonly mode?: NetworkMode | boolean; readonly allow?: readonly string[]; readonly deny?: readonly string[] }

/** The keys of a policy as a person writes them; nothing is checked yet. */
export type SandboxInput = Omit<z.input<typeof sandboxSchema>, 'network'> & { network?: NetworkInput | undefined }
export type ZoneInput = z.input<typeof zoneSchema>
/** The same after reading: bytes, milliseconds, canonical words. */
export type SandboxSaid = z.output<typeof sandboxSchema>
export type ZoneSaid = z.output<typeof zoneSchema>

/** Object schemas that a message about an unknown key, the JSON schema and the manual must see through. */
export const SECTIONS = {
  '': sandboxSchema,
  docker: sandboxSchema.shape.docker.unwrap(),
  zones: zoneSchema,
  network: networkTable,
  resources: resourcesSchema,
  env: environmentSchema,
  credentials: credentialSchema,
} as const
