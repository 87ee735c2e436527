/** The attempts of the contract, each in a blank sandbox: its zones are mounted when the command comes. */
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { reasonWord } from '../../src/backends/child-process.ts'
import { bytesInput } from '../../src/backends/input.ts'
import { outcomeOfLaunch } from '../../src/backends/launch-status.ts'
import { commandBlock, writeFrame } from '../../src/backends/namespace/frames.ts'
import { FramedLine, FramedRun } from '../../src/backends/namespace/run-protocol.ts'
import { FRAME } from '../../src/contract.ts'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import type { Row } from '../../src/doctor/contract-types.ts'
import { runnerBy, tryRow } from '../../src/doctor/self-test.ts'
import { pathSlot, SLOT_MARK } from '../../src/launch-cache/slots.ts'
import type { PlannedZone } from '../../src/plan/plan.ts'
import { type Keeper, type KeeperWord, startKeeper } from '../../src/pool/keeper.ts'
import { poolsDirectory } from '../../src/pool/pool-directory.ts'
import { makeOwnDirectory } from '../../src/run/caller.ts'
import { judge } from '../../src/run/exec.ts'
import { plainLaunch } from '../../src/run/leave.ts'
import { prepareZones } from '../../src/run/make-zones.ts'
import { type ExecOptions, prepare } from '../../src/run/plan-run.ts'
import { newRunId } from '../../src/run/run-id.ts'
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

async function readySandbox(keeper: Keeper): Promise<string> {
  const word = await new Promise<KeeperWord>((resolve) => keeper.listen(resolve))
  if (word.word !== 'ready') throw new Error(`no blank sandbox: ${JSON.stringify(word)}`)
  return word.id
}

const blankRunner = runnerBy(async ({ stdin, onStdout, ...options }: ExecOptions) => {
  const env = options.env ?? process.env
  makeOwnDirectory(env)
  const prepared = await prepareZones(() => prepare(options))
  const zones = prepared.plan.zones.filter(({ kind }) => kind === 'directory')
  const [pools, name] = [poolsDirectory(env, prepared.facts.uid), `lib${newRunId()}`]
  const launchFile = blankLaunch(plainLaunch(prepared), zones)
  const keeper = startKeeper({ pools, name, size: 1, idleSeconds: 0, launchFile, directory: '', endsWithUs: true })
  try {
    const line = FramedLine.connect(`${pools}/${name}/r${await readySandbox(keeper)}`)
    line.socket.write(writeFrame(FRAME.places, placesOf(zones)))
    const { output: outputCap = null, timeoutMs: deadlineMs } = prepared.plan.limits
    const input = bytesInput(stdin instanceof Uint8Array ? stdin : new Uint8Array(0))
    const run = new FramedRun(line, { stdin: input, outputCap, onStdout, deadlineMs, isTaken: false })
    const block = commandBlock({ command: options.command, env: prepared.commandEnv, umask: 0o022 })
    run.begin([[FRAME.run, block]])
    const { taken, status, stdout, stderr } = await run.end()
    if (!taken) throw new Error('the sandbox refused the command')
    const outcome = outcomeOfLaunch({
      ...{ cause: 'exit', exitCode: null, signal: null, ...reasonWord(undefined) },
      ...{ stdout, stderr, status, elapsedMs: 0 },
    })
    return await judge({ ...prepared, request: { ...prepared.request, command: options.command } }, outcome)
  } finally {
    const ended = once(keeper.child, 'exit')
    keeper.child.kill('SIGTERM')
    await ended
    keeper.release()
  }
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
