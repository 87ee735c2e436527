/** Runs in containers of a daemon of the tests' own, as the supervisor makes them. */
import { statSync } from 'node:fs'
import { chown, mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import type { DockerRunInputs } from '../../../src/backends/docker/command-environment.ts'
import { dockerInputs } from '../../../src/backends/docker/inputs.ts'
import { observeDocker } from '../../../src/backends/docker/observe.ts'
import { sweep } from '../../../src/backends/docker/prune.ts'
import { superviseDocker } from '../../../src/backends/docker/run.ts'
import type { Outcome } from '../../../src/backends/outcome.ts'
import type { DockerFact } from '../../../src/host/facts.ts'
import type { Plan, PlannedZone } from '../../../src/plan/plan.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { BUSYBOX_IMAGE, type TestDocker } from '../../support/docker.ts'
import { dockerPlan, plannedZone, runInputs } from '../plans.ts'

/** An ordinary user who owns the zones; these tests run as root. */
export const OWNER = 1000

export async function ownedDirectory(): Promise<string> {
  const path = await temporaryDirectory({ mode: 0o755 })
  await chown(path, OWNER, OWNER)
  return path
}

/** A zone as planning would have seen it. */
export function observedZone(zone: Parameters<typeof plannedZone>[0]): PlannedZone {
  const { dev = 0, ino = 0 } = statSync(zone.source, { throwIfNoEntry: false }) ?? {}
  return plannedZone({ ...zone, dev, ino })
}

export interface Engine {
  readonly docker: TestDocker
  readonly fact: DockerFact
  /** Where runs leave their records and sockets. */
  readonly runsDirectory: string
}

export const runIds = (function* () {
  for (let index = 1; ; index += 1) yield `t${process.pid}x${index}`
})()

export interface RunRequest {
  readonly command: readonly string[]
  readonly plan?: Partial<Plan>
  readonly run?: Partial<DockerRunInputs>
  readonly signal?: AbortSignal
}

export function runIn(
  { docker, fact, runsDirectory }: Engine,
  { command, plan, run, signal }: RunRequest,
): Promise<Outcome> {
  return superviseDocker({
    plan: dockerPlan({ image: BUSYBOX_IMAGE, workdir: '/', ...plan }),
    run: runInputs({
      runId: runIds.next().value as string,
      docker: dockerInputs(fact, docker.env),
      runsDirectory,
      command,
      ...run,
    }),
    stdio: { mode: 'capture', stdin: 'ignore', outputCap: 1 << 20 },
    signal,
  })
}

export const containers = async ({ docker }: Engine): Promise<string> => docker.client('ps', '--all', '--quiet')

/** @param start of oncePerFile: what a test leaves is in the way of the next */
export function engine(start: () => Promise<TestDocker>): () => Engine {
  const state: { engine?: Engine } = {}
  beforeAll(async () => {
    const docker = await start()
    const fact = await observeDocker({ env: { ...docker.env, LLM_DO_DOCKER: docker.program }, notBelow: [] })
    state.engine = { docker, fact: fact as DockerFact, runsDirectory: join(docker.root, 'llm-do/runs') }
  })
  return () => state.engine as Engine
}

/** Waits for what must come; the test's own time limit ends what never does. */
export async function until(comes: () => Promise<boolean>): Promise<void> {
  while (!(await comes())) await sleep(50)
}

export const hasFile = (directory: string, name: string) => async () => (await readdir(directory)).includes(name)

/** A plan whose container serves several runs, in a runs directory for them alone; removed with the test. */
export async function session(here: Engine, changes: Partial<Plan> = {}) {
  const plan: Partial<Plan> = { dockerReuse: 'session', hash: `s${runIds.next().value}`, ...changes }
  const runsDirectory = join(await temporaryDirectory(), 'runs')
  const inside = (script: string) => runIn(here, { command: ['sh', '-c', script], plan, run: { runsDirectory } })
  const inputs = dockerInputs(here.fact, here.docker.env)
  const prune = (from = runsDirectory) => sweep(inputs, { now: Date.now(), runsDirectory: from, endsSessions: true })
  const left = (kind: 'sessions' | 'containers') => readdir(join(runsDirectory, '..', kind))
  onTestFinished(async () => void (await prune()))
  return { inside, prune, left, inputs, runsDirectory }
}

/* ---- protected paths ---- */

export const PROTECT = ['.claude', '.config/fish/conf.d', '.git/config', '.git/hooks']

/** A repository of the owner's, with a protected path at three depths. */
export async function repository(): Promise<string> {
  const source = await ownedDirectory()
  await mkdir(join(source, '.git/hooks'), { recursive: true })
  await mkdir(join(source, '.config/fish/conf.d'), { recursive: true })
  await writeFile(join(source, '.git/config'), 'original\n')
  await writeFile(join(source, '.claude'), 'original\n')
  await execa('chown', ['--recursive', `${OWNER}:${OWNER}`, source])
  return source
}

/** Each parent and each path itself is renamed; then what was there is made anew. */
export const RENAMES = [
  'cd /w',
  ...['.git', '.git/hooks', '.git/config', '.config', '.config/fish', '.config/fish/conf.d', '.claude'].map(
    (path) => `mv ${path} ${path}.moved 2>/dev/null && echo "moved ${path}"; rm -rf ${path}.moved`,
  ),
  'mkdir -p .git/hooks .config/fish/conf.d',
  'echo x > .git/hooks/pre-commit; echo x > .config/fish/conf.d/x.fish; echo x > .git/config',
  'echo fine > .git/index; echo fine > .config/other; echo fine > file',
].join('\n')

export async function expectKept(source: string): Promise<void> {
  const { stdout } = await execa('sh', ['-c', 'cat .git/config .claude; find . | sort'], { cwd: source })
  const paths = ['', '/.claude', '/.config', '/.config/fish', '/.config/fish/conf.d', '/.config/other', '/.git']
  const below = ['/.git/config', '/.git/hooks', '/.git/index', '/file']
  expect(stdout.split('\n')).toEqual(['original', 'original', ...[...paths, ...below].map((path) => `.${path}`)])
}

/** Names that a zone lacks and protects. */
export const absentZone = (source: string, changes: Partial<PlannedZone> = {}) =>
  observedZone({
    source,
    target: '/w',
    mode: 'rw',
    protect: ['.config/fish', '.mcp.json'],
    git: { open: [] },
    ...changes,
  })

/** Scripts that make such a name: each run ends, and the name is set aside. */
export function endsTheRun(here: () => Engine, scripts: readonly (readonly [string, string, string])[]): void {
  test.each(scripts)('a protected name ends the run as soon as it is made: %s', async (_what, script, name) => {
    const source = await ownedDirectory()
    const plan = { zones: [absentZone(source)], limits: { timeoutMs: 60_000 } }
    const outcome = await runIn(here(), { command: ['sh', '-c', `cd /w; ${script}; sleep 600`], plan })
    const path = join(source, name)
    expect(outcome).toMatchObject({ reason: 'protected', guarded: { attempts: { first: [{ path, gone: false }] } } })
    const left = await readdir(dirname(path))
    expect(left).toContain(outcome.guarded?.attempts.first[0]?.aside)
    expect(left).not.toContain(name.split('/').at(-1))
    expect(await containers(here())).toBe('')
  })
}
