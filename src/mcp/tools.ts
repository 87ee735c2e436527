/**
 * The tools as a client sees them: names, arguments, results. Unknown arguments are refused, because they would have no effect.
 * Pure.
 */
import { z } from 'zod'
import { jsonSchemaOf } from '../config/json-schema.ts'
import { keysOfSchema, schemaProblems, sentenceOf } from '../config/schema-problems.ts'

export const STREAMS = ['stdout', 'stderr'] as const
export type StreamName = (typeof STREAMS)[number]

/* ---- arguments ---- */

/** Bytes that one piece of an output has at most, and where nothing is said. */
const LONGEST_PIECE = 65_536
const USUAL_PIECE = 16_384

const paths = z
  .array(z.string().min(1))
  .default([])
  .describe('Only these, relative to the directory; one of a directory means all that is in it. Default: everything.')

const isBelow = (path: string): boolean =>
  path !== '' && !path.startsWith('/') && !path.includes('\0') && !path.split('/').includes('..')

const SESSIONS = ['none', 'keep', 'new'] as const

const ARGUMENTS = {
  run_command: z.strictObject({
    command: z
      .string()
      .min(1)
      .describe('A line of shell, run by `sh -c`. With `args`: the name or path of a program, run without a shell.'),
    args: z.array(z.string()).optional().describe('The words of the program, each exactly as it is here.'),
    cwd: z
      .string()
      .refine(isBelow, 'a relative path without ".."')
      .optional()
      .describe('Directory to start in, relative to the one where commands start, without "..".'),
    session: z
      .enum(SESSIONS)
      .default('none')
      .describe(
        'keep: run it in a sandbox that stays, with the directory, exported variables and functions that the last such command left. new: the same, from the beginning. none: in a fresh sandbox.',
      ),
    stdin: z.string().default('').describe('What the command reads on its standard input.'),
    timeout_ms: z
      .int()
      .min(1)
      .max(2 ** 31 - 1)
      .optional()
      .describe('Ends the command earlier than the policy of the server does; never later.'),
  }),
  read_output: z.strictObject({
    id: z.string().describe('`output` of a result.'),
    stream: z.enum(STREAMS).default('stdout'),
    offset: z.int().min(0).default(0).describe('The first byte.'),
    length: z.int().min(1).max(LONGEST_PIECE).default(USUAL_PIECE).describe('Bytes, at most.'),
  }),
  diff: z.strictObject({
    paths,
    stat: z.boolean().default(false).describe('How many lines of each file, instead of the lines.'),
  }),
  apply: z.strictObject({ paths }),
  discard: z.strictObject({}),
}

export type ToolName = keyof typeof ARGUMENTS
export type ArgumentsOf<Name extends ToolName> = z.output<(typeof ARGUMENTS)[Name]>
export type ReadArguments =
  | { readonly values: { readonly [Name in ToolName]: ArgumentsOf<Name> }[ToolName] }
  | { readonly problem: string }

export const isToolName = (name: string): name is ToolName => Object.hasOwn(ARGUMENTS, name)

/** @returns the values with their defaults, or what is wrong in one line */
export function readArguments(name: ToolName, given: unknown = {}): ReadArguments {
  const schema = ARGUMENTS[name]
  const read = schema.safeParse(given)
  if (read.success) return { values: read.data }
  const problems = schemaProblems(read.error.issues, { value: given, keysAt: (path) => keysOfSchema(schema, path) })
  return { problem: problems.map((problem) => `${problem.key || name}: ${sentenceOf(problem)}`).join(' ') }
}

/* ---- results ---- */

const stream = z.object({
  text: z.string().describe('Head and tail, where it is long.'),
  bytes: z.int().describe('All that was printed.'),
  isLossy: z.boolean().describe('Some bytes are not UTF-8, and stand as U+FFFD.'),
  gap: z
    .object({ from: z.int(), to: z.int() })
    .optional()
    .describe('The bytes that the text leaves out; `to` is the first one after.'),
})

const change = z.object({
  path: z.string(),
  kind: z.string().describe('added, modified, deleted, renamed, mode, symlink or type.'),
  type: z.string(),
  from: z.string().optional().describe('The path before it was renamed.'),
  protected: z.boolean().optional().describe('A program of the host would run or obey it: only a person can apply it.'),
  conflict: z.boolean().optional().describe('The host has changed it, too: nothing is applied with it.'),
})

const changes = z.object({
  id: z.string().describe('For a person: llm-do diff ID.'),
  list: z.array(change),
  omitted: z.int().describe('Changes that are not in the list.'),
})

const error = z.object({ code: z.string(), message: z.string(), hint: z.string() })

const RESULTS = {
  run_command: z.object({
    ok: z.boolean().describe('It exited with 0.'),
    exitCode: z.int().nullable(),
    signal: z.string().nullable(),
    reason: z
      .string()
      .describe(
        'exit, signal, timeout, memory, cpu-time, disk, pids, seccomp, denied, setup, cancelled, lost or protected.',
      ),
    message: z.string().describe('What stopped it and who set that limit; empty when nothing is off.'),
    durationMs: z.number(),
    stdout: stream,
    stderr: stream,
    output: z.string().optional().describe('For read_output, where a stream has a gap.'),
    denials: z
      .array(
        z.object({
          layer: z.string(),
          operation: z.string(),
          target: z.string(),
          count: z.int(),
          fix: z.string().describe('The option of `llm-do mcp` that allows it, for the person who starts the server.'),
          key: z.string().describe('The key of a profile for the same.'),
          evidence: z.string(),
        }),
      )
      .describe('What the sandbox refused.'),
    changes: changes.optional().describe('Copy-on-write: all that waits to be applied.'),
    limits: z.record(z.string(), z.unknown()),
    usage: z.record(z.string(), z.unknown()),
    warnings: z.array(z.string()),
    hints: z.array(z.string()),
    error: error.optional().describe('The sandbox itself refused or failed.'),
  }),
  read_output: z.object({
    text: z.string(),
    isLossy: z.boolean(),
    bytes: z.int().describe('All that was printed.'),
    kept: z.int().describe('So many of them can be read.'),
    next: z.int().optional().describe('`offset` of the next piece; absent at the end.'),
  }),
  diff: z.object({
    patch: stream,
    output: z.string().optional().describe('For read_output, where the patch has a gap.'),
    changes: changes.optional().describe('Absent where nothing waits.'),
    inGit: z.array(z.string()).describe('Changes inside .git, which no patch can hold.'),
  }),
  apply: z.object({
    applied: z.int(),
    conflicts: z.array(z.string()).describe('Changed on the host since, too: then nothing was applied.'),
    protected: z.array(z.string()).describe('Left to a person: a program of the host would run or obey them.'),
    special: z.array(z.string()).describe('Never applied: devices, FIFOs, sockets.'),
  }),
  discard: z.object({ discarded: z.boolean().describe('Changes did wait.') }),
} satisfies Record<ToolName, z.ZodType>

export type ResultOf<Name extends ToolName> = z.input<(typeof RESULTS)[Name]>

/* ---- what a client lists ---- */

interface ToolText {
  readonly title: string
  readonly description: string
  readonly isReadOnly?: true
  readonly isDestructive?: true
  readonly isIdempotent?: true
  readonly isOpenWorld?: true
}

const TEXTS: Readonly<Record<ToolName, ToolText>> = {
  run_command: {
    title: 'Run a command in the sandbox',
    description:
      'Runs one command in a sandbox and returns its output and how it ended. The sandbox is new, unless `session` is set. The person who started the server decided what it may read, write and reach; `denials` lists what was refused. All its processes end with it. A failed command is a result, not an error of the tool.',
    isDestructive: true,
    isOpenWorld: true,
  },
  read_output: {
    title: 'Read more of a long output',
    description: 'Returns a piece of an output that run_command or diff has shown with a gap.',
    isReadOnly: true,
    isIdempotent: true,
  },
  diff: {
    title: 'Show what commands have changed',
    description:
      'Returns what the commands of this session have changed, as a patch. The host has none of it until it is applied.',
    isReadOnly: true,
    isIdempotent: true,
  },
  apply: {
    title: 'Apply changes to the host',
    description:
      'Makes the changes of this session on the host, wholly or not at all. Files that programs of the host would run or obey are left to a person.',
    isDestructive: true,
  },
  discard: {
    title: 'Forget changes',
    description:
      'Forgets all changes of this session that were not applied. The next command starts from what the host has.',
    isDestructive: true,
    isIdempotent: true,
  },
}

const OF_COPY_ON_WRITE: readonly ToolName[] = ['diff', 'apply', 'discard']

export const toolNames = (isCopyOnWrite: boolean): readonly ToolName[] =>
  Object.keys(ARGUMENTS).filter(
    (name): name is ToolName => isToolName(name) && (isCopyOnWrite || !OF_COPY_ON_WRITE.includes(name)),
  )

export interface Offered {
  readonly isCopyOnWrite: boolean
  /** The command reaches something beyond this machine. */
  readonly isOpenWorld: boolean
}

export function listTools({ isCopyOnWrite, isOpenWorld }: Offered) {
  return toolNames(isCopyOnWrite).map((name) => {
    const { title, description, ...is } = TEXTS[name]
    return {
      name,
      title,
      description,
      inputSchema: { ...jsonSchemaOf(ARGUMENTS[name]), type: 'object' as const },
      outputSchema: { ...jsonSchemaOf(RESULTS[name]), type: 'object' as const },
      annotations: {
        readOnlyHint: is.isReadOnly === true,
        destructiveHint: is.isDestructive === true && !(isCopyOnWrite && name === 'run_command'),
        idempotentHint: is.isIdempotent === true,
        openWorldHint: is.isOpenWorld === true && isOpenWorld,
      },
    }
  })
}
