/**
 * Text of a worker or workshop file -> its normal form. Pure: looks at nothing but the text.
 * In front matter of workers an unknown key is a warning, because other programs keep theirs there; in everything that grants
 * or bounds (`sandbox`, rules, workshops) it is an error.
 */
import { quoteText } from '../text/units.ts'
import type { FrontMatter } from './frontmatter.ts'
import { readFrontMatter, readYamlFile } from './frontmatter.ts'
import { invalidWorker, type Problem } from './problem.ts'
import { readSandbox, type Section, type Surroundings } from './sandbox.ts'
import {
  IO_KEYS,
  KNOWN_WORKER_KEYS,
  nestedWorkshopShape,
  readName,
  sandboxShape,
  workerShape,
  workshopShape,
} from './schema.ts'
import { lineOf, problemsOf } from './schema-problems.ts'
import { readDelegates, readShell, readTools } from './tools.ts'
import type { Warning, Worker, Workshop, WorkshopWorker } from './worker.ts'

export interface FileText {
  /** As messages show it. */
  readonly file: string
  /** Absolute directory that its host paths are relative to. */
  readonly directory: string
  /** What `~/` stands for, absolute; empty when there is none. */
  readonly home: string
  readonly text: string
}

export type FileKind = 'worker' | 'workshop' | 'profile'
type Mapping = Readonly<Record<string, unknown>>

const isYaml = (file: string) => /\.ya?ml$/.test(file)
const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function frontMatterOf({ file, text }: FileText): FrontMatter & { readonly value: Mapping } {
  const frontMatter = isYaml(file)
    ? readYamlFile({ file, text })
    : readFrontMatter({ file, text, knownKeys: KNOWN_WORKER_KEYS })
  if (isMapping(frontMatter.value)) return { ...frontMatter, value: frontMatter.value }
  throw invalidWorker([
    { file, line: isYaml(file) ? 1 : 2, key: '', expected: 'a mapping of keys', got: 'something else' },
  ])
}

/**
 * What a file is by its keys: a workshop has `workshop`, `workers`, `container` or `isolation`; a profile nothing but `sandbox`.
 * @throws SandboxError WORKER_INVALID when it cannot be parsed
 */
export function kindOf(source: FileText): FileKind {
  const keys = Object.keys(frontMatterOf(source).value)
  if (keys.some((key) => ['workshop', 'workers', 'container', 'isolation', 'allow_worker_zones'].includes(key)))
    return 'workshop'
  return isYaml(source.file) && keys.length === 1 && keys[0] === 'sandbox' ? 'profile' : 'worker'
}

/**
 * Reads a worker, agent, sub-agent, command or skill.
 * @param fallbackName lets a file without `name` pass under this one; without it, a file without name is no worker
 * @throws SandboxError WORKER_INVALID with every problem of the file
 */
export function readWorker({ fallbackName, ...source }: FileText & { readonly fallbackName?: string }): Worker {
  const frontMatter = frontMatterOf(source)
  const { value, lines } = frontMatter
  const { file } = source
  const around: Surroundings = { ...source, lines }
  const shapeProblems = [
    ...nameProblems({ file, value, fallbackName }),
    ...problemsOf({ file, lines, value, shape: workerShape }),
  ]
  if (shapeProblems.length > 0) throw invalidWorker(shapeProblems)
  const sandbox = workerSandbox(around, value)
  const tools = readTools(around, value)
  const shell = readShell({ around, value, tools })
  const delegates = readDelegates({ around, value, tools })
  const problems = [...(sandbox?.problems ?? []), ...tools.problems, ...shell.problems, ...delegates.problems]
  if (problems.length > 0) throw invalidWorker(problems)
  const { description, model } = value as { readonly description?: string | null; readonly model?: string | null }
  return {
    name: typeof value['name'] === 'string' ? value['name'] : (fallbackName ?? ''),
    file,
    ...(typeof description === 'string' ? { description: description.trim() } : {}),
    ...(typeof model === 'string' ? { model } : {}),
    instructions: frontMatter.body,
    ...(tools.listed === undefined ? {} : { tools: tools.listed }),
    toolModel: tools.model,
    toolsets: tools.toolsets,
    delegates: delegates.delegates,
    ...(sandbox === undefined ? {} : { sandbox: sandbox.request }),
    shell: shell.shell,
    io: Object.fromEntries(IO_KEYS.filter((key) => value[key] !== undefined).map((key) => [key, value[key]])),
    warnings: [
      ...frontMatter.warnings,
      ...nameWarning({ file, value, fallbackName }),
      ...(isYaml(file) ? [legacy(file)] : []),
      ...unknownKeys(around, value),
      ...(sandbox?.warnings ?? []),
      ...tools.warnings,
      ...shell.warnings,
    ],
  }
}

interface Named {
  readonly file: string
  readonly value: Mapping
  readonly fallbackName: string | undefined
}

function nameProblems({ file, value, fallbackName }: Named): readonly Problem[] {
  if (value['name'] !== undefined && value['name'] !== null) return []
  if (fallbackName === undefined) return [{ file, key: 'name', expected: 'the name of the worker', got: 'nothing' }]
  const reading = readName(fallbackName)
  return reading.ok ? [] : [{ file, key: 'name', expected: reading.expected, got: reading.got }]
}

function nameWarning({ file, value, fallbackName }: Named): readonly Warning[] {
  if (typeof value['name'] === 'string' || fallbackName === undefined) return []
  return [
    {
      code: 'W_NAME',
      file,
      key: 'name',
      message: `it is called ${fallbackName} by its file; say name: ${fallbackName}.`,
    },
  ]
}

function legacy(file: string): Warning {
  return { code: 'W_LEGACY', file, key: '', message: 'a worker in pure YAML is an old form; it has no instructions.' }
}

function unknownKeys({ file, lines }: Surroundings, value: Mapping): readonly Warning[] {
  const sandboxKeys = Object.keys(sandboxShape.shape)
  return Object.keys(value)
    .filter((key) => !KNOWN_WORKER_KEYS.includes(key))
    .map((key) => {
      const home = sandboxKeys.includes(key) ? ` Did you mean sandbox.${key}?` : ''
      const message = `the key ${quoteText(key)} means nothing here and was passed over.${home}`
      return { code: 'W_UNKNOWN_KEY', file, line: lines[key], key: '', message }
    })
}

function workerSandbox(around: Surroundings, value: Mapping) {
  const { sandbox, sandboxes } = value
  if (!isMapping(sandbox) && !isMapping(sandboxes)) return undefined
  return readSandbox({
    around,
    layer: 'worker',
    sections: isMapping(sandbox) ? [{ key: 'sandbox', value: sandbox }] : [{ key: 'sandboxes', value: {} }],
    ...(isMapping(sandboxes) ? { zones: { key: 'sandboxes', value: sandboxes } } : {}),
  })
}

/**
 * Reads a workshop, nested below `workshop` or not.
 * @throws SandboxError WORKER_INVALID with every problem of the file
 */
export function readWorkshop(source: FileText): Workshop {
  const frontMatter = frontMatterOf(source)
  const { file } = source
  const isNested = Object.hasOwn(frontMatter.value, 'workshop')
  const shape = isNested ? nestedWorkshopShape : workshopShape
  const wrong = problemsOf({ file, lines: frontMatter.lines, value: frontMatter.value, shape })
  if (wrong.length > 0) throw invalidWorker(wrong)
  const value = (isNested ? frontMatter.value['workshop'] : frontMatter.value) as Mapping & { readonly name: string }
  return workshopOf({ around: { ...source, lines: frontMatter.lines }, value, prefix: isNested ? 'workshop.' : '' })
}

/** Reads a file that has only a `sandbox` section, as a workshop without workers. */
export function readProfileZones({ name, ...source }: FileText & { readonly name: string }): Workshop {
  const { value, lines } = frontMatterOf(source)
  const wrong = problemsOf({ file: source.file, lines, value: value['sandbox'], shape: sandboxShape, key: 'sandbox' })
  if (wrong.length > 0) throw invalidWorker(wrong)
  return workshopOf({ around: { ...source, lines }, value: { ...value, name }, prefix: '' })
}

interface WorkshopValue {
  readonly around: Surroundings
  readonly value: Mapping & { readonly name: string }
  /** Of its keys. */
  readonly prefix: string
}

function workshopOf({ around, value, prefix }: WorkshopValue): Workshop {
  const { name, description, isolation, container, sandbox, allow_worker_zones } = value
  const outer: Section[] = isolation === undefined ? [] : [{ key: prefix.slice(0, -1), value: { isolation } }]
  const inner = [
    ...(isMapping(container) ? [{ key: `${prefix}container`, value: container }] : []),
    ...(isMapping(sandbox) ? [{ key: `${prefix}sandbox`, value: sandbox }] : []),
  ]
  const sections = [...inner, ...outer]
  const own = sections.length === 0 ? undefined : readSandbox({ around, layer: 'workshop', sections })
  const workers = workersOf({ around, value, prefix })
  const problems = [
    ...(own?.problems ?? []),
    ...(workers ?? []).flatMap((worker) => worker.problems),
    ...twiceNamed(around, workers ?? []),
  ]
  if (problems.length > 0) throw invalidWorker(problems)
  return {
    name,
    file: around.file,
    ...(typeof description === 'string' ? { description } : {}),
    ...(workers === undefined ? {} : { workers: workers.map(({ worker }) => worker) }),
    ...(own === undefined ? {} : { sandbox: own.request }),
    allowWorkerZones: allow_worker_zones === true,
    warnings: [...(own?.warnings ?? []), ...(workers ?? []).flatMap(({ warnings }) => warnings)],
  }
}

interface ReadEntry {
  readonly worker: WorkshopWorker
  readonly warnings: readonly Warning[]
  readonly problems: readonly Problem[]
}

function workersOf({ around, value, prefix }: WorkshopValue): readonly ReadEntry[] | undefined {
  const { workers } = value
  if (workers === undefined || workers === null) return undefined
  if (Array.isArray(workers)) {
    return workers.map((entry: string | (Mapping & { readonly name: string }), index) => {
      const { name, ...narrowing } = typeof entry === 'string' ? { name: entry } : entry
      return entryOf({ around, name, narrowing, key: `${prefix}workers.${index}` })
    })
  }
  return Object.entries(workers as Readonly<Record<string, Mapping | null>>).map(([name, narrowing]) =>
    entryOf({ around, name, narrowing: narrowing ?? {}, key: `${prefix}workers.${name}` }),
  )
}

function entryOf(input: {
  readonly around: Surroundings
  readonly name: string
  readonly narrowing: Mapping
  readonly key: string
}): ReadEntry {
  const { around, name, narrowing, key } = input
  const from = { file: around.file, line: lineOf(around.lines, key), key }
  const reading = readName(name)
  const problems = reading.ok ? [] : [{ ...from, expected: reading.expected, got: reading.got }]
  if (Object.keys(narrowing).length === 0) return { worker: { name, from }, warnings: [], problems }
  const read = readSandbox({ around, layer: 'workshop', sections: [{ key, value: narrowing }] })
  return {
    worker: { name, narrowing: read.request, from },
    warnings: read.warnings,
    problems: [...problems, ...read.problems],
  }
}

function twiceNamed({ file, lines }: Surroundings, entries: readonly ReadEntry[]): readonly Problem[] {
  const names = entries.map(({ worker }) => worker.name)
  return entries.flatMap(({ worker }, index) =>
    names.indexOf(worker.name) === index
      ? []
      : [
          {
            file,
            line: lineOf(lines, worker.from.key),
            key: worker.from.key,
            expected: 'every worker once',
            got: `${worker.name} again`,
          },
        ],
  )
}
