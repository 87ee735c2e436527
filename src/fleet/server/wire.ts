/** Schemas of the messages of agents and the page: every text bounded, unknown fields ignored, since other agents send more. Pure. */
import { z } from 'zod'
import { NEEDS } from '../../core.ts'

const name = z.string().min(1).max(256)
const amount = z.number().nonnegative().max(Number.MAX_SAFE_INTEGER)

/** Characters of what an agent says of itself, and of the details of a report: the page gets those of all agents and tasks at once. */
const MOST_FACTS = 65_536
const MOST_DETAILS = 262_144
const lengthOf = (value: unknown): number => JSON.stringify(value).length
const isShort = (facts: object): boolean => lengthOf(facts) <= MOST_FACTS
const TOO_LONG = `expected at most ${MOST_FACTS} characters`

const load = {
  cpuUsage: amount,
  ramTotalMb: amount,
  ramFreeMb: amount,
  dockerContainers: amount,
  dockerCpuUsage: amount,
  dockerMemoryMb: amount,
}

const FACTS = z.object({
  workerId: name,
  hostname: name,
  os: z.string().max(256).default(''),
  cpuCount: amount.default(0),
  version: z.string().max(256).default(''),
  status: z.string().max(32).optional(),
  slots: amount.optional(),
  /** Of our agents: the parts of a sandbox that this machine holds only in part. */
  isolation: z
    .object({
      backend: z.string().max(64),
      weak: z.array(z.string().max(64)).max(64),
      /** Needs that the kernel holds for every task there. */
      holds: z.array(z.string().max(64)).max(64).default([]),
      /** The holder of each need: the kernel, or a weaker rung. */
      heldBy: z.record(z.string().max(64), z.string().max(64)).default({}),
      /** Of the operator's policy, and of the plan of its trial run. */
      policyHash: z.string().max(256).optional(),
      planHash: z.string().max(256).optional(),
    })
    .optional(),
  ...z.object(load).partial().shape,
})

export const REGISTER = FACTS.refine(isShort, TOO_LONG)

const SIGN_OF_LIFE = z.object({
  workerId: name,
  status: z.enum(['IDLE', 'BUSY', 'UNHEALTHY', 'OFFLINE']).optional(),
  /** Of our agents: the tasks that are under way there. */
  jobs: z.array(name).max(1024).optional(),
  ...z.object(load).partial().shape,
})

export const HEARTBEAT = SIGN_OF_LIFE.refine(isShort, TOO_LONG)

export const STREAM_OUTPUT = z.object({
  jobId: name,
  data: z.string().min(1),
  type: z.enum(['stdout', 'stderr']),
})

/** Fields of our agents beyond the protocol; shown on the page, and stored as they are. */
const FURTHER = z.object({
  reason: z.string().max(64).optional(),
  message: z.string().max(4096).optional(),
  planHash: z.string().max(256).optional(),
  backend: z.string().max(64).nullish(),
  durationMs: amount.optional(),
  truncated: z.object({ stdout: amount, stderr: amount }).optional(),
  isolation: z.record(z.string().max(64), z.json()).optional(),
  limits: z.record(z.string().max(64), z.json()).optional(),
  warnings: z.array(z.string().max(4096)).max(1000).optional(),
  cause: z.string().max(64).optional(),
  code: z.string().max(64).optional(),
  denials: z.array(z.json()).max(1000).optional(),
})

export const RESULT = z.object({
  jobId: name,
  workerId: name,
  stdout: z.string().default(''),
  stderr: z.string().default(''),
  exitCode: z.number().int(),
  resultZipBase64: z.base64().nullish(),
  ...FURTHER.shape,
})

export const FAILURE = z.object({
  jobId: name,
  workerId: name,
  errorMessage: z.string().max(16_384).default(''),
  /** Another machine may succeed: the task is queued again. */
  elsewhere: z.boolean().default(false),
  ...FURTHER.shape,
})

const COMMAND = z
  .string()
  .max(65_536)
  .refine((text) => text.trim() !== '' && !text.includes('\0'), 'expected a command')

const submission = { command: COMMAND, filename: z.string().max(256).default('files.zip') }
const require = z.array(z.enum(NEEDS)).max(NEEDS.length)
const timeoutMs = z.number().int().positive().max(86_400_000)

/** A task without files, as JSON. */
export const SUBMISSION = z.object({
  ...submission,
  timeoutMs: timeoutMs.optional(),
  require: require.default([]),
})

/** A task with files: they are the body, the rest is the query; needs are words with commas between them. */
export const SUBMISSION_QUERY = z.object({
  ...submission,
  timeoutMs: z.coerce.number().pipe(timeoutMs).optional(),
  require: z
    .string()
    .transform((words) => words.split(',').filter((word) => word !== ''))
    .pipe(require)
    .default([]),
})

export type Registration = z.infer<typeof REGISTER>
export type Heartbeat = z.infer<typeof HEARTBEAT>
export type Submission = z.infer<typeof SUBMISSION>
export type Details = z.infer<typeof FURTHER>

/** Only what belongs to the details of an end. Lists that are too long are left out: the task has ended all the same. */
export function detailsOf(report: Details): Details {
  const details = FURTHER.parse(report)
  if (lengthOf(details) <= MOST_DETAILS) return details
  const { isolation: _, limits: __, denials: ___, ...short } = details
  return { ...short, warnings: [`details of more than ${MOST_DETAILS} characters were left out`] }
}
