// Finds the system tests that a working change reaches: the changed files against the tests of each room.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { allMutants } from '../mutants-table.mjs'
import { checkout } from './programs.mjs'
import { systemFiles } from './system.mjs'

/** Everything, whatever the change is about. */
const WHOLE =
  /^(Makefile|package(-lock)?\.json|tsconfig\.json|vitest\.config\.ts|\.ci\/|scripts\/|native\/contract\.yaml|native\/Makefile\.inc|src\/contract|src\/error|tests\/support\/)/

/** Rooms of tests that try a room of the sources, in addition to the one of the same name. */
const REACH = {
  'native/lib': ['escape', 'adversary', 'cgroup', 'cow', 'pool', 'launch-cache', 'run'],
  'native/sandbox': ['escape', 'adversary', 'network', 'cow', 'conformance'],
  'native/runner': ['escape', 'adversary', 'run', 'real', 'pool', 'cgroup', 'backends', 'explain'],
  'native/client': ['launch-cache', 'cow', 'pool', 'worker', 'cli', 'real'],
  'native/net': ['network', 'credentials'],
  'native/tools': ['cow', 'cli', 'pool', 'escape', 'run', 'backends', 'doctor'],
  'src/backends': ['conformance', 'escape', 'library'],
  'src/cgroup': ['escape', 'real'],
  'src/cli': ['real', 'hints', 'mcp', 'cow', 'run', ''],
  'src/config': ['policy', 'worker'],
  'src/doctor': ['escape'],
  'src/host': ['escape', 'plan', 'real'],
  'src/launch-cache': ['cow', 'library'],
  'src/library': ['library', 'pool', ''],
  'src/network': ['credentials'],
  'src/os': ['escape', 'cli'],
  'src/plan': ['escape', 'adversary', 'real', 'network'],
  'src/policy': ['worker', 'cli', 'real', 'escape'],
  'src/pool': ['library'],
  'src/report': ['real', 'explain', 'hints', 'launch-cache'],
  'src/run': ['real', 'library', 'escape', ''],
  'src/seccomp': ['escape', 'adversary'],
  'src/terminator': ['credentials', 'network'],
  'src/text': ['cli'],
  'src/worker': ['cli', 'launch-cache'],
  clients: ['clients', 'packaging', ''],
  packaging: ['packaging'],
  docs: ['cli', ''],
  profiles: ['policy', 'real', ''],
  workers: ['worker'],
}

const git = (...words) => execFileSync('git', words, { cwd: checkout, encoding: 'utf8' }).split('\n').filter(Boolean)

/** Changed and new files, against the last commit. */
const changedFiles = () => [...git('diff', '--name-only', 'HEAD'), ...git('ls-files', '--others', '--exclude-standard')]

const roomOfTest = ({ file }) => file.split('/').slice(1, -1)[0] ?? ''

/** Rooms of tests for one changed file. */
function roomsFor(file) {
  const [top = '', room = ''] = file.split('/')
  if (top === 'tests') return file.includes('.system.test.') ? [] : [room]
  const key = top === 'src' || top === 'native' ? `${top}/${room}` : top
  return [...(top === 'src' ? [room] : []), ...(top === 'native' ? ['native'] : []), ...(REACH[key] ?? [])]
}

const mutantsOf = (files) =>
  allMutants()
    .filter(({ edits }) => edits.some(({ file }) => files.includes(file)))
    .map(({ name }) => name)

/** @returns the files of system tests, the rows of mutants, and lines that say why; `isWhole` when the change may reach anything */
export function testsTouched(files = changedFiles()) {
  if (files.length === 0)
    return { files: [], mutants: [], isWhole: false, lines: ['touched   nothing has changed since the last commit'] }
  const whole = files.find((file) => WHOLE.test(file))
  if (whole !== undefined)
    return { files: [], mutants: [], isWhole: true, lines: [`touched   ${whole} may reach anything: make test`] }
  const rooms = new Set(files.flatMap(roomsFor))
  const reached = systemFiles().filter((one) => files.includes(one.file) || rooms.has(roomOfTest(one)))
  const mutants = mutantsOf(files)
  const names = [...rooms]
    .filter((room) => room === '' || existsSync(join(checkout, 'tests', room)))
    .map((room) => room || 'tests/*')
  const lines = [
    `touched   ${files.length} files reach: ${names.sort().join(', ') || 'no system tests'}; ${reached.length} files of system tests, ${mutants.length} mutants`,
  ]
  return { files: reached, mutants, isWhole: false, lines }
}

/** Rooms of sources that the table names: tests/architecture.test.ts holds it to the tree. */
export const REACHED_ROOMS = Object.keys(REACH)
