/** Tries rows of the table in one cell, and once without the wall. */
import type { User } from '../support/users.ts'
import type { Attack, Harm, Observed } from './attack.ts'
import {
  BEGUN,
  endProcessesWith,
  harmTo,
  hostState,
  isRefused,
  makeWorld,
  type Ran,
  type StageInputs,
  stageFor,
  type Trial,
  type World,
} from './world.ts'

export interface Verdict {
  readonly id: string
  readonly kind: 'held' | 'refused' | 'harmed' | 'untried'
  /** The damage, or the runner's message. */
  readonly why: string
}

export interface CellSite extends Pick<StageInputs, 'cell' | 'container' | 'isHere'> {
  /** Owner of the zones, when that is another user than the caller. */
  readonly owner?: number
}

/** Every row that claims something here, one verdict each. Rows that are only a script share a sandbox. */
export async function tryCell(attacks: readonly Attack[], site: CellSite): Promise<readonly Verdict[]> {
  const here = attacks.filter(({ on }) => on?.(site.cell) ?? true)
  const together = here.filter(isShared)
  const shared = await tryTogether(together, site)
  const verdicts: Verdict[] = []
  for (const attack of here) verdicts.push(shared.get(attack.id) ?? (await tryAlone(attack, site)))
  return verdicts
}

/** Nothing but a script. */
export const isShared = ({ script, prepare, attempt }: Attack): boolean =>
  script !== undefined && prepare === undefined && attempt === undefined

/** Without the wall this user can show that the attack works. */
export const hasControl = ({ control, controlAs }: Attack, user: User): boolean =>
  !(typeof control === 'object' && 'none' in control) && (controlAs ?? user) === user

const section = (id: string): string => `=== ${id}`

/** Nothing for a row whose part was not reached, and for none when there was damage: then each is tried alone. */
async function tryTogether(attacks: readonly Attack[], site: CellSite): Promise<ReadonlyMap<string, Verdict>> {
  return withWorld(site, async (world) => {
    const stage = stageFor({ world, ...site })
    const before = hostState(world)
    const parts = attacks.map(({ id, script }) => `echo '${section(id)}'\n(\n${script?.(world)}\n) 2>&1`)
    const ran = await stage.inside(`${parts.join('\n')}\necho '${section('end')}'`, { opened: true })
    if (isRefused(ran)) return new Map(attacks.map(({ id }) => [id, { id, kind: 'refused', why: reasonOf(ran) }]))
    if ((await harmTo(world, before, [ran])).length > 0) return new Map()
    const verdicts = new Map<string, Verdict>()
    for (const { id, harmed } of attacks) {
      const printed = partOf(ran.stdout, id)
      if (printed === undefined) continue
      const harm = await harmed({ world, printed, runs: [ran] })
      if (harm === undefined) verdicts.set(id, { id, kind: 'held', why: '' })
    }
    return verdicts
  })
}

/** Output of a row, when the next one was reached. */
function partOf(text: string, id: string): string | undefined {
  const [, after] = text.split(`${section(id)}\n`)
  const end = after?.indexOf('=== ') ?? -1
  return end < 0 ? undefined : after?.slice(0, end)
}

async function tryAlone(attack: Attack, site: CellSite): Promise<Verdict> {
  const { id } = attack
  return withWorld(site, async (world) => {
    await attack.prepare?.(world)
    const before = hostState(world)
    const stage = stageFor({ world, ...site })
    try {
      await attempt(attack, stage)
    } finally {
      stage.end()
    }
    const harms = [await attack.harmed(observedOf(world, stage)), ...(await harmTo(world, before, stage.runs))]
    const found = harms.filter((harm) => harm !== undefined)
    if (found.length > 0) return { id, kind: 'harmed', why: `${found.join('; ')}${aside(stage.runs)}` }
    const refusal = stage.runs.find(isRefused)
    if (refusal !== undefined) return { id, kind: 'refused', why: reasonOf(refusal) }
    const begun = stage.runs.length > 0 && stage.runs.every(({ stdout }) => stdout.includes(BEGUN))
    return begun ? { id, kind: 'held', why: '' } : { id, kind: 'untried', why: aside(stage.runs) }
  })
}

const attempt = async ({ attempt, script }: Attack, stage: Trial): Promise<void> => {
  if (attempt !== undefined) return attempt(stage)
  await stage.inside(script?.(stage.world) ?? '', { opened: true })
}

/** The same attack without the wall. @returns what it harmed */
export async function tryControl(attack: Attack, site: CellSite): Promise<Harm> {
  return withWorld(site, async (world) => {
    await attack.prepare?.(world)
    const { control } = attack
    const stage = stageFor({ world, ...site, isControl: true })
    try {
      if (typeof control === 'function') await control(stage)
      else await attempt(attack, stage)
      return await attack.harmed(observedOf(world, stage))
    } finally {
      stage.end()
      endProcessesWith(world.base)
    }
  })
}

async function withWorld<T>({ cell, owner }: CellSite, work: (world: World) => Promise<T>): Promise<T> {
  const world = makeWorld({ user: cell.user, ...(owner === undefined ? {} : { owner }) })
  try {
    return await work(world)
  } finally {
    world.remove()
  }
}

const observedOf = (world: World, { runs }: Trial): Observed => ({
  world,
  runs,
  printed: runs.map(({ stdout, stderr }) => `${stdout}\n${stderr}`).join('\n'),
})

const reasonOf = ({ stderr }: Ran): string => /^llm-do: (.*)$/m.exec(stderr)?.[1] ?? stderr.trim()

/** Output of the runs, for the message of a test. */
const aside = (runs: readonly Ran[]): string =>
  runs.map(({ status, stdout, stderr }) => ` [${status}: ${`${stdout}${stderr}`.slice(-600).trim()}]`).join('')
