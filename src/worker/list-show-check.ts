/**
 * `llm-do workers list | show | check`: each answers with data, and with the lines that people read.
 * Edge: looks at the files of the project.
 */
import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { SandboxError } from '../error.ts'
import type { Policy } from '../policy/policy.ts'
import { neutralise } from '../report/text.ts'
import { quoteText } from '../text/units.ts'
import { loadFiles, narrowPolicy, policyUnder, type WorkerRequest, warningLine } from './authorize.ts'
import { LARGEST_FILE } from './frontmatter.ts'
import {
  type CheckedFile,
  type CheckFinding,
  checkTogether,
  finding,
  summaryOf,
  warningFinding,
  workshopSummary,
} from './lint.ts'
import { type Finding, filesOfTree, findWorker, type ListedFile, listFiles } from './load.ts'
import { type FileText, kindOf, readProfileZones, readWorker, readWorkshop } from './read.ts'
import type { Escalation, SourceLocation, Worker, Workshop } from './worker.ts'

export interface Report<Data> {
  /** For `--json`. */
  readonly data: Data
  /** For people; without control characters. */
  readonly lines: readonly string[]
  /** False: exit status 1. */
  readonly ok: boolean
}

export interface ListedWorker extends ListedFile {
  readonly description: string
  /** Why it cannot be used. */
  readonly problem?: string
}

/** Every worker that a name can mean here. */
export async function listWorkers(finding: Finding): Promise<Report<readonly ListedWorker[]>> {
  const files = await listFiles(finding)
  const data = await Promise.all(files.map((listed) => describe(listed, finding)))
  const width = Math.max(0, ...data.map(({ name }) => name.length))
  const lines = data.map(({ name, file, description, problem }) =>
    neutralise(`${name.padEnd(width)}  ${file}  ${problem === undefined ? description : `(${problem})`}`.trimEnd()),
  )
  return { data, lines: lines.length === 0 ? ['no workers here; llm-do init writes a first one'] : lines, ok: true }
}

async function describe(listed: ListedFile, finding: Finding): Promise<ListedWorker> {
  try {
    const worker = readWorker(await findWorker(path.resolve(finding.cwd, listed.file), finding))
    return { ...listed, description: worker.description?.split('\n')[0] ?? '' }
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    return { ...listed, description: '', problem: error.message }
  }
}

export type ShowRequest = Omit<WorkerRequest, 'command' | 'script' | 'allowShellSyntax'>

export interface ShownWorker {
  readonly worker: Worker
  readonly workshop?: string
  readonly warnings: readonly string[]
}

/**
 * A worker with its rules, and the policy of its commands.
 * @throws SandboxError WORKER_NOT_FOUND, WORKER_INVALID, POLICY_ESCALATION
 */
export async function showWorker(request: ShowRequest): Promise<Report<ShownWorker> & { readonly policy: Policy }> {
  const loaded = await loadFiles(request)
  const { policy, warnings } = await policyUnder(loaded, request)
  const { worker, workshop } = loaded
  const messages = [...worker.warnings, ...(workshop?.warnings ?? []), ...warnings].map(warningLine)
  return {
    data: { worker, ...(workshop !== undefined && { workshop: workshop.name }), warnings: messages },
    lines: [...workerLines(worker, workshop), ...messages.map((message) => `warning    ${message}`)].map(neutralise),
    ok: true,
    policy,
  }
}

function workerLines(worker: Worker, workshop: Workshop | undefined): readonly string[] {
  const { name, file, description, model, tools, toolModel, toolsets, delegates, shell, io } = worker
  const row = (key: string, text: string | undefined) =>
    text === undefined || text === '' ? [] : [`${key.padEnd(11)}${text}`]
  return [
    ...row('worker', `${name} (${file})`),
    ...row('workshop', workshop === undefined ? undefined : `${workshop.name} (${workshop.file})`),
    ...row('does', description?.split('\n')[0]),
    ...row('model', model),
    ...row('tools', `${toolModel}${tools === undefined ? '' : `: ${tools.join(', ')}`}`),
    ...row('toolsets', toolsets.join(', ')),
    ...(shell === null ? row('shell', 'none: no command can be run for it') : []),
    ...(shell?.rules ?? []).flatMap(({ pattern, decision, from }) =>
      row('rule', `${decision.padEnd(5)} ${pattern}   ${at(from)}`),
    ),
    ...(shell === null
      ? []
      : row('rule', `${(shell.default?.value ?? 'block').padEnd(5)} everything else   ${at(shell.default?.from)}`)),
    ...row('delegates', delegates.map(({ value }) => value).join(', ')),
    ...Object.entries(io).flatMap(([key, value]) =>
      row('io', `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`),
    ),
  ]
}

const at = (location: SourceLocation | undefined) =>
  location === undefined
    ? '(no default is written)'
    : `(${location.file}${location.line === undefined ? '' : `:${location.line}`})`

/** Workshops and workers are held against `grant`. */
export interface CheckRequest extends Pick<WorkerRequest, 'home' | 'grant' | 'isProfileChosen'> {
  /** Absolute directory, or one file. */
  readonly tree: string
}

export interface CheckedTree {
  readonly files: readonly CheckedFile[]
  readonly findings: readonly CheckFinding[]
  readonly errors: number
}

/** Reads every worker and workshop of a tree and says what is wrong, alone and together. */
export async function checkWorkers(request: CheckRequest): Promise<Report<CheckedTree>> {
  const sources = await sourcesOf(request)
  const read = sources.map(readOne)
  const workers = read.flatMap(({ worker }) => worker ?? [])
  const workshops = read.flatMap(({ workshop }) => workshop ?? [])
  const escalations = (
    await Promise.all(workshops.map((workshop) => escalationsOf({ request, workshop, workers })))
  ).flat()
  const findings = [...read.flatMap((one) => one.findings), ...checkTogether(workers, workshops), ...escalations]
  const files = read.map(({ checked }) => checked)
  const errors = findings.filter(({ severity }) => severity === 'error').length
  return { data: { files, findings, errors }, lines: checkLines(files, findings, errors), ok: errors === 0 }
}

function checkLines(
  files: readonly CheckedFile[],
  findings: readonly CheckFinding[],
  errors: number,
): readonly string[] {
  const width = Math.max(0, ...files.map(({ file }) => file.length))
  const warnings = findings.length - errors
  return [
    ...files.map(
      ({ file, ok, kind, name, summary }) =>
        `${file.padEnd(width)}  ${ok ? `ok  ${kind} ${name}: ${summary}` : 'refused'}`,
    ),
    ...findings.map(({ severity, code, message }) => `${severity}: ${code} ${message}`),
    `${files.length} files, ${errors} errors, ${warnings} warnings`,
  ].map(neutralise)
}

/** A page of Markdown without front matter is a page, no worker; YAML is looked at when one of our keys stands at its top. */
function isOurs({ file, text }: FileText): boolean {
  if (file.endsWith('.md')) return /^\uFEFF?---/.test(text)
  if (!/\.ya?ml$/.test(file)) return true
  return /^(workshop|workers|sandbox|sandboxes|allow_workers|toolsets|container|shell_rules):/m.test(text)
}

async function sourcesOf({ tree, home }: CheckRequest): Promise<readonly FileText[]> {
  const isDirectory = await isDirectoryAt(tree)
  const files = isDirectory ? await filesOfTree(tree) : [path.basename(tree)]
  const root = isDirectory ? tree : path.dirname(tree)
  const read = await Promise.all(
    files.map(async (file) => ({
      file,
      directory: path.dirname(path.join(root, file)),
      home,
      text: await textOf(path.join(root, file)),
    })),
  )
  return read.filter(isOurs)
}

/** Nothing that is there to be checked must not pass for nothing that is wrong. */
async function isDirectoryAt(tree: string): Promise<boolean> {
  const seen = await stat(tree).catch((cause: NodeJS.ErrnoException) => {
    const message = `workers check: ${quoteText(tree)} cannot be read (${cause.code ?? 'unknown error'}).`
    throw new SandboxError('WORKER_NOT_FOUND', message, { hint: `ls -ld ${quoteText(tree)}`, cause })
  })
  return seen.isDirectory()
}

/** A file that cannot be read is reported as a problem of the file: it has no front matter then. */
async function textOf(file: string): Promise<string> {
  const bytes = await readFile(file).catch(() => Buffer.alloc(0))
  return bytes.subarray(0, LARGEST_FILE + 1).toString('utf8')
}

interface ReadOne {
  readonly checked: CheckedFile
  readonly worker?: Worker
  readonly workshop?: Workshop
  readonly findings: readonly CheckFinding[]
}

function readOne(source: FileText): ReadOne {
  const { file } = source
  try {
    const kind = kindOf(source)
    if (kind === 'worker') {
      const worker = readWorker(source)
      const checked = { file, kind, name: worker.name, ok: true, summary: summaryOf(worker) }
      return { checked, worker, findings: worker.warnings.map(warningFinding) }
    }
    const name = path.basename(file).replace(/\.ya?ml$/, '')
    const workshop = kind === 'workshop' ? readWorkshop(source) : readProfileZones({ ...source, name })
    const checked = { file, kind, name: workshop.name, ok: true, summary: workshopSummary(workshop) }
    return { checked, ...(kind === 'workshop' ? { workshop } : {}), findings: workshop.warnings.map(warningFinding) }
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    const lines = error.problems.length === 0 ? [error.message] : error.problems
    const findings = lines.map(
      (message): CheckFinding => ({ severity: 'error', code: 'INVALID', file, key: '', message }),
    )
    return { checked: { file, kind: 'unreadable', name: '', ok: false, summary: '' }, findings }
  }
}

/** Every worker of a workshop held against it; without a list, every worker of the tree. */
async function escalationsOf(input: {
  readonly request: CheckRequest
  readonly workshop: Workshop
  readonly workers: readonly Worker[]
}): Promise<readonly CheckFinding[]> {
  const { request, workshop, workers } = input
  const { tree, home, grant, isProfileChosen } = request
  const names = workshop.workers?.map(({ name }) => name)
  const here = workers.filter(({ name }) => names === undefined || names.includes(name))
  const found = await Promise.all(
    here.map(async (worker) => {
      const directory = (file: string) => path.dirname(path.join(tree, file))
      const files = { workerDirectory: directory(worker.file), workshopDirectory: directory(workshop.file) }
      const operator = { cwd: tree, home, grant, isProfileChosen }
      const { escalations } = await narrowPolicy({ ...operator, ...files, worker, workshop })
      return escalations.map((escalation) => escalationFinding({ escalation, worker, workshop }))
    }),
  )
  const all = found.flat()
  // Escalations of the workshop are the same for each of its workers.
  return all.filter(({ message }, index) => all.findIndex((other) => other.message === message) === index)
}

function escalationFinding(input: {
  readonly escalation: Escalation
  readonly worker: Worker
  readonly workshop: Workshop
}): CheckFinding {
  const { escalation, worker, workshop } = input
  const { location, key, wanted, granted } = escalation
  const isOfWorker = location.startsWith(worker.file)
  const [file, line] =
    location === worker.file || location === workshop.file
      ? [location]
      : [location.replace(/:\d+$/, ''), Number(/\d+$/.exec(location)?.[0])]
  const who = isOfWorker ? ` (worker ${worker.name} in workshop ${workshop.name})` : ''
  return finding({
    severity: 'error',
    code: 'ESCALATION',
    at: { file: file ?? location, line, key },
    message: `wanted ${wanted}, granted ${granted}${who}.`,
  })
}
