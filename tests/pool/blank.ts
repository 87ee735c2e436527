/** The attempts of the contract, each in a blank sandbox: its zones are mounted when the command comes. */
import { expect, test } from 'vitest'
import { bytesInput } from '../../src/backends/input.ts'
import { writeFrame } from '../../src/backends/namespace/frames.ts'
import { FRAME } from '../../src/contract.ts'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import type { Row } from '../../src/doctor/contract-types.ts'
import { runnerBy, tryRow } from '../../src/doctor/self-test.ts'
import { pathSlot, SLOT_MARK } from '../../src/launch-cache/slots.ts'
import type { PlannedZone } from '../../src/plan/plan.ts'
import { WarmSandbox } from '../../src/pool/warm-sandbox.ts'
import { plainLaunch } from '../../src/run/cache-plan.ts'
import { makeOwnDirectory } from '../../src/run/caller.ts'
import { judge } from '../../src/run/exec.ts'
import { prepareZones } from '../../src/run/make-zones.ts'
import { type ExecOptions, prepare } from '../../src/run/plan-run.ts'
import { expectedKind } from '../escape/rows.ts'

const OF_ZONES = new Set(['zone', 'protect', 'git', 'hide'])
/** Words of an entry `zone`: its source, then its numbers. */
const [SOURCE, DEVICE, INODE] = [1, 4, 5]

/** The launch file of a plan with slots in the place of its zones. */
function blankLaunch(file: Uint8Array, zones: readonly Pick<PlannedZone, 'source'>[]): Uint8Array {
  const words = Buffer.from(file).toString('latin1').split('\0')
  const slots = zones.map(({ source }) => Buffer.from(source).toString('latin1'))
  for (const [at, verb] of words.entries()) {
    const place = OF_ZONES.has(verb) ? slots.indexOf(words[at + SOURCE] ?? '') : -1
    if (place === -1) continue
    words[at + SOURCE] = pathSlot(place)
    if (verb !== 'zone') continue
    words[at + DEVICE] = `${SLOT_MARK}${place}d`
    words[at + INODE] = `${SLOT_MARK}${place}i`
  }
  words.splice(1, 0, 'slots', `${zones.length}`, 'plan', 'pool')
  return Buffer.from(words.join('\0'), 'latin1')
}

/** The body of FRAME.places. */
const placesOf = (zones: readonly Pick<PlannedZone, 'source' | 'dev' | 'ino' | 'uid' | 'gid'>[]): Uint8Array =>
  Buffer.from(zones.map(({ source, dev, ino, uid, gid }) => [source, dev, ino, uid, gid, ''].join('\0')).join(''))

const blankRunner = runnerBy(async ({ stdin, onStdout, ...options }: ExecOptions) => {
  const env = options.env ?? process.env
  makeOwnDirectory(env)
  const prepared = await prepareZones(() => prepare(options))
  const zones = prepared.plan.zones.filter(({ kind }) => kind === 'directory')
  const unused = { signal: new AbortController().signal, onGone: () => undefined }
  const warm = await WarmSandbox.open(blankLaunch(plainLaunch(prepared), zones), unused)
  if (warm === undefined) throw new Error('no blank sandbox')
  warm.line.socket.write(writeFrame(FRAME.places, placesOf(zones)))
  const { output: outputCap = null, timeoutMs: deadlineMs } = prepared.plan.limits
  const input = bytesInput(stdin instanceof Uint8Array ? stdin : new Uint8Array(0))
  const streams = { stdin: input, outputCap, onStdout, deadlineMs }
  const outcome = await warm.run({ command: options.command, env: prepared.commandEnv, ...streams })
  if (outcome === undefined) throw new Error('the sandbox refused the command')
  return await judge({ ...prepared, request: { ...prepared.request, command: options.command } }, outcome)
})

/** A test for each row. */
export function tryInBlank(rows: readonly Row[]): void {
  for (const row of rows)
    test(row.sentence, async () => {
      const { landlockAbi } = await observeForDoctor(process.env)
      const verdict = await tryRow(row, { engine: 'unshare', landlockAbi, runner: blankRunner })
      expect(verdict, row.id).toMatchObject({ kind: expectedKind(row, landlockAbi) })
    })
}
