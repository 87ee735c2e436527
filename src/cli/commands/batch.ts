/**
 * `llm-do batch FILE|- -j N`: lines of JSON in, one sandbox each, lines of JSON out.
 * Edge: stdio, signals, files.
 */
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { countLines, fileInput, linesOf, openResults, type Results } from '../../fleet/batch-files.ts'
import { type BatchCounts, progressLine } from '../../fleet/batch-progress.ts'
import { BatchSource } from '../../fleet/batch-source.ts'
import { serve } from '../../fleet/serve.ts'
import { TaskPlaces } from '../../fleet/task-places.ts'
import { lockOf } from '../../os/file-lock.ts'
import { environmentLayers } from '../../policy/environment.ts'
import { flagLayer } from '../../policy/option-layer.ts'
import { TaskPlans } from '../../pool/task-plans.ts'
import { neutralise } from '../../report/text.ts'
import { currentDirectory, hostEnvironment } from '../current-directory.ts'
import { NOT_OF_TASKS, refuseVariables } from '../refuse-variables.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'
import { untilSignal, watchParent } from './exec.ts'

const HINT = 'llm-do batch --help'
const MOST_JOBS = 256
/** As a shell tells of a command that was interrupted. */
const CANCELLED = 130

function jobsOf(text = String(availableParallelism())): number {
  const jobs = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (jobs < 1 || jobs > MOST_JOBS)
    throw usageError(`--jobs: expected a number from 1 to ${MOST_JOBS}, got "${neutralise(text)}".`, HINT)
  return jobs
}

/** Where results go when no file is named: there is nothing to go on from. */
const ON_STDOUT: Omit<Results, 'write'> = { done: new Set(), failed: 0, close: () => undefined }

export const batch = subcommand('batch', async ({ flags, operands: [input = '-'] }, call) => {
  const cwd = currentDirectory(call)
  const env = hostEnvironment(call)
  const file = typeof flags['results'] === 'string' ? resolve(cwd, flags['results']) : undefined
  const isResumed = flags['resume'] === true
  if (isResumed && file === undefined) throw usageError('--resume: expected the file to go on with.', '--results FILE')
  const jobs = jobsOf(typeof flags['jobs'] === 'string' ? flags['jobs'] : undefined)
  refuseVariables(env, NOT_OF_TASKS, 'llm-do batch')
  const spoken = environmentLayers(env, cwd)
  const profile = flags['profile'] ?? spoken.request['profile']
  const stream = input === '-' ? process.stdin : await fileInput(resolve(cwd, input))
  const results = file === undefined ? undefined : await openResults(file, isResumed)
  const { done, failed, close } = results ?? ON_STDOUT
  const total = process.stderr.isTTY && input !== '-' ? await countLines(resolve(cwd, input)) : undefined
  const count = progress({ done: done.size, failed, total })
  const source = new BatchSource({
    lines: linesOf(stream),
    directory: cwd,
    done,
    isOrdered: flags['ordered'] === true,
    write: async (line) => (results === undefined ? await writeStdout(line) : results.write(line)),
    onResult: count.add,
  })
  const layers = [flagLayer(flags, cwd)]
  const engine = {
    profile: typeof profile === 'string' ? profile : 'default',
    layers,
    env,
    places: new TaskPlaces(cwd),
    plans: new TaskPlans(),
    protect: [...(input === '-' ? [] : [resolve(cwd, input)]), ...(file === undefined ? [] : [file, lockOf(file)])],
  }
  const log = (line: string): void => void writeStderr([`llm-do: ${line}`])
  try {
    return await untilSignal(async (signal, { stop }) => {
      const watch = [...spoken.layers, ...layers].some(({ values }) => values.dieWithParent === true)
        ? watchParent(call.parent, stop)
        : undefined
      await serve({ source, engine, slots: jobs, drain: signal, end: signal, log })
      clearInterval(watch)
      if (signal.aborted) return CANCELLED
      return count.failed() === 0 ? 0 : FOUND_PROBLEMS
    })
  } finally {
    count.end()
    close()
  }
})

interface Progress {
  readonly add: (isOk: boolean) => void
  readonly failed: () => number
  readonly end: () => void
}

/** A line on a terminal that is written again and again; nothing anywhere else. */
function progress({ total, ...before }: BatchCounts): Progress {
  const counts = { ...before }
  const show = (end: string): void => {
    if (!process.stderr.isTTY) return
    // Columns may be 0 where the width of the terminal is unset. The rest of a longer line before it is erased (ECMA-48, EL).
    const line = progressLine({ ...counts, total }, process.stderr.columns || 80)
    process.stderr.write(`\r${line}\u001b[K${end}`)
  }
  show('')
  return {
    add: (isOk) => {
      counts.done += 1
      if (!isOk) counts.failed += 1
      show('')
    },
    failed: () => counts.failed,
    end: () => show('\n'),
  }
}
