// The system tests of one run: which files run as which user, and the lanes that run them side by side.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkout, end, endProcessesIn, isRoot, isStopping, start } from './programs.mjs'
import { copyTo, laneFor } from './users.mjs'

/** Files wait for processes, timeouts and the disk. Measured on two processors: the stage takes 613 s with four slots and 569 s with six. */
const SLOTS = Number(process.env.LLM_DO_TEST_LANES ?? 6)

/**
 * The plain user has a tenth of the work. A lane takes 3 to 5 s of processor time before its first test, so one slot runs the plain
 * user's files, the others those of root, and each helps the other when its own are done.
 */
const PLAIN_SLOTS = 1

/** Ends a file that hangs: far above what a file may take on a slow machine. A deep one has the time of its part, but for its start and end. */
const limitOf = (file) => (file.endsWith('.deep.system.test.ts') ? 45 : 15) * 60_000

/** Seconds that each file took in the last run of this checkout; a fresh one goes by size. */
const TIMES = join(checkout, 'build/test-times.json')

const KIND = /\/[^/.]+(?<user>\.user)?(?<deep>\.deep)?\.system\.test\.ts$/

/** All files of system tests with their kinds, which their names say: NAME[.user][.deep].system.test.ts. */
export function systemFiles() {
  return readdirSync(join(checkout, 'tests'), { recursive: true })
    .map((name) => `tests/${name}`)
    .filter((name) => name.endsWith('.system.test.ts'))
    .map(kindOf)
}

/** @throws for a name of no kind: its file would run at the wrong time or as the wrong user */
export function kindOf(file) {
  const kind = KIND.exec(file)
  if (kind === null) throw new Error(`${file}: expected NAME[.user][.deep].system.test.ts`)
  return { file, isUser: kind.groups.user !== undefined, isDeep: kind.groups.deep !== undefined }
}

/** Root runs every file, and a plain user those that the user matters for. Without root there is one user, who runs every file once. */
export function jobsOf(files, name) {
  const users = ({ isUser }) => (isRoot ? ['root', ...(isUser ? ['plain'] : [])] : ['plain'])
  return files.flatMap((one) => users(one).map((user) => ({ file: one.file, user, name })))
}

const readTimes = () => (existsSync(TIMES) ? JSON.parse(readFileSync(TIMES, 'utf8')) : {})

/** The longest first: one that starts last would have the machine for itself. */
function longestFirst(jobs) {
  const times = readTimes()
  const weight = ({ file, user }) => times[`${file} ${user}`] ?? statSync(join(checkout, file)).size / 500
  return jobs.toSorted((one, other) => weight(other) - weight(one))
}

/** Removes the first job that the slot prefers. */
function take(queue, slot) {
  const preferred = slot < PLAIN_SLOTS ? 'plain' : 'root'
  const at = queue.findIndex(({ user }) => user === preferred)
  return queue.splice(Math.max(0, at), 1)[0]
}

/**
 * Runs jobs in lanes.
 * @param onResult called with the result of each file as it ends
 * @returns the words of processes that a test left behind
 */
export async function runSystem(jobs, { directory, require, onResult }) {
  // Root's own checkout may lie below a private directory. Made before anything runs: vitest makes and removes files below node_modules.
  const copy = isRoot ? join(directory, 'checkout') : undefined
  if (copy !== undefined) copyTo(copy)
  const queue = longestFirst(jobs)
  const lanes = new Map()
  const made = { count: 0 }
  const lane = (slot, user) => {
    const key = `${user} ${slot}`
    if (!lanes.has(key))
      lanes.set(key, startLane(laneFor({ user, index: made.count++, directory, copy, require: require[user] })))
    return { key, started: lanes.get(key) }
  }
  const work = async (slot) => {
    for (let job = take(queue, slot); job !== undefined && !isStopping(); job = take(queue, slot)) {
      const { key, started } = lane(slot, job.user)
      const result = await runJob(started, job)
      if (result.isLost) {
        end(started.child, 'SIGKILL')
        lanes.delete(key)
      }
      onResult(result)
    }
  }
  try {
    await Promise.all(Array.from({ length: SLOTS }, (_, slot) => work(slot)))
  } finally {
    for (const { child } of lanes.values()) end(child)
  }
  return endProcessesIn(directory)
}

function startLane({ file, argv, cwd, env }) {
  const child = start(file, argv, { cwd, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  const said = []
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said.push(chunk.toString())
      said.splice(0, said.length - LAST_CHUNKS)
    })
  return { child, said, ready: new Promise((resolve) => child.once('message', resolve)) }
}

/** Of what a lane printed, for the message of one that was lost. */
const LAST_CHUNKS = 20

/** Sends a file to a lane and waits for its answer, for the end of the lane, or for the limit. */
async function runJob({ child, said, ready }, job) {
  const begun = performance.now()
  const lost = (why) => ({ file: job.file, tests: [], errors: [`${why}\n${said.join('').slice(-2000)}`], isLost: true })
  const limitMs = limitOf(job.file)
  const answer = await new Promise((resolve) => {
    const limit = setTimeout(() => {
      end(child, 'SIGKILL')
      finish(lost(`stopped after ${limitMs / 60_000} minutes`))
    }, limitMs)
    const onEnd = (code, signal) => finish(lost(`its lane ended (${signal ?? code})`))
    const finish = (result) => {
      clearTimeout(limit)
      child.off('exit', onEnd)
      child.off('message', finish)
      resolve(result)
    }
    if (child.exitCode !== null || child.signalCode !== null) return finish(lost('its lane has ended'))
    child.once('exit', onEnd)
    ready.then(() => {
      child.on('message', finish)
      child.send({ file: job.file, name: job.name }, (error) => error && finish(lost(error.message)))
    })
  })
  return { ...answer, user: job.user, seconds: (performance.now() - begun) / 1000 }
}

/** Remembers how long each file took, for the order of the next run. */
export function keepTimes(results) {
  const times = readTimes()
  for (const { file, user, seconds } of results) times[`${file} ${user}`] = Math.round(seconds * 10) / 10
  writeFileSync(TIMES, `${JSON.stringify(times, null, 1)}\n`)
}
