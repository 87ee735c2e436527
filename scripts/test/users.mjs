// The users that system tests run as, and the directories that keep the lanes of one run apart.
//
// A file of tests counts what its user's runs leave, and calls `prune`. So a lane has the runtime and state directories of its user for
// itself: a lane of root gets new mounts over them, a lane of a plain user has another id when root runs the tests, and a
// runtime directory for each file in any case (tests/support/own-directory.ts).
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { checkout, environment, isRoot, PATH } from './programs.mjs'

/** Ids without an entry in passwd, which is the harder case. tests/support/users.ts has 65533 for the plain user of a test that root runs. */
const FIRST_PLAIN_ID = 65520

/** Where the product keeps what belongs to root (src/host/own-directory.ts), and the layers of everybody (src/cow/state-directory.ts). */
const PLACES_OF_ROOT = { '/run/llm-do': 'runtime', '/var/lib/llm-do': 'state', '/var/tmp': 'shared' }

/** The directory of this run: temporary files, homes and the plain user's checkout. Removed at the end, also after Ctrl-C. */
export function makeRunDirectory() {
  // Short: the address of a socket below it has room for 107 bytes.
  const path = mkdtempSync(join(tmpdir(), 'ldt-'))
  chmodSync(path, 0o755)
  return { path, remove: () => removeTree(path) }
}

/** rm goes down a tree whose paths are too long for Node. A layer that a failed test left has directories that its owner may not read. */
function removeTree(path) {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 })
  } catch (error) {
    if (!['ENAMETOOLONG', 'EACCES'].includes(error.code)) throw error
    spawnSync('chmod', ['-R', 'u+rwX', path])
    execFileSync('rm', ['-rf', path])
  }
}

/** All but the history; of what was built, that by which make knows that nothing has to be made again, or everything. */
export function copyTo(directory, { isBuilt = false } = {}) {
  mkdirSync(join(directory, 'build'), { recursive: true })
  const copy = (from, to) => execFileSync('cp', ['-a', '--reflink=auto', ...from, to])
  const parts = readdirSync(checkout).filter((part) => part !== '.git' && part !== 'build')
  copy(
    parts.map((part) => join(checkout, part)),
    directory,
  )
  const built = isBuilt
    ? readdirSync(join(checkout, 'build'))
    : ['drivers', 'include', 'native.command', 'native.objects']
  copy(built.map((part) => join(checkout, 'build', part)).filter(existsSync), join(directory, 'build'))
  execFileSync('chmod', ['-R', 'a+rX', directory])
}

/** How a lane starts: program, words, directory and environment. */
export function laneFor({ user, index, directory, copy, require }) {
  const tmp = join(directory, `${user[0]}${index}`)
  const places = { tmp, home: `${tmp}-home`, runtime: `${tmp}-runtime`, state: `${tmp}-state`, shared: `${tmp}-shared` }
  for (const place of Object.values(places)) mkdirSync(place)
  for (const place of [places.tmp, places.shared]) chmodSync(place, 0o1777)
  for (const place of [places.home, places.runtime, places.state]) chmodSync(place, 0o700)
  const env = { LLM_DO_TEST_REQUIRE: require, TMPDIR: places.tmp }
  const lane = ['scripts/test/lane.mjs']
  if (user === 'root')
    return rootLane({ places, env: { ...env, ...(copy && { LLM_DO_TEST_PLAIN_CHECKOUT: copy }) }, lane })
  if (!isRoot) return { file: process.execPath, argv: lane, cwd: checkout, env: { ...environment, PATH, ...env } }
  return plainLane({ id: FIRST_PLAIN_ID + index, places, env, lane, copy })
}

/** argv words that run others with mounts over the places of root; for another user nothing is changed. */
export function inOwnPlaces(words, places) {
  if (!isRoot) return words
  const mounts = Object.entries(PLACES_OF_ROOT).map(
    ([place, own]) => `mkdir -p -m 700 ${place} && mount --bind "${places[own]}" ${place}`,
  )
  return ['unshare', '--mount', '--', 'sh', '-ec', `${mounts.join('; ')}; exec "$0" "$@"`, ...words]
}

function rootLane({ places, env, lane }) {
  const [file, ...argv] = inOwnPlaces([process.execPath, ...lane], places)
  return {
    file,
    argv,
    cwd: checkout,
    env: { ...environment, PATH, ...env, LLM_DO_TEST_PLAIN_STAGE: 'user' },
  }
}

function plainLane({ id, places, env, lane, copy }) {
  for (const place of Object.values(places)) chownSync(place, id, id)
  const become = ['--reuid', `${id}`, '--regid', `${id}`, '--clear-groups', '--']
  const node = isOpenToAll(process.execPath, become) ? process.execPath : copyOfNode(dirname(copy))
  return {
    file: 'setpriv',
    argv: [...become, node, ...lane],
    cwd: copy,
    env: {
      ...steering,
      ...env,
      // The copy belongs to root.
      LLM_DO_TEST_MODULES: join(places.tmp, 'modules'),
      PATH: [dirname(node), ...PATH.split(delimiter).filter(canBeEntered)].join(delimiter),
      HOME: places.home,
      LLM_DO_TEST_ROOT_STAGE: 'root',
    },
  }
}

const isOpenToAll = (node, become) => spawnSync('setpriv', [...become, node, '--version']).status === 0

/** For a node that lives in root's home directory. */
function copyOfNode(directory) {
  const copy = join(directory, 'node')
  if (existsSync(copy)) return copy
  copyFileSync(process.execPath, copy, constants.COPYFILE_FICLONE)
  chmodSync(copy, 0o755)
  return copy
}

/** Nothing of root's environment but what steers the tests. */
const steering = Object.fromEntries(
  Object.entries(environment).filter(([name]) => /^(LLM_DO_TEST_\w+|CI|LANG|TERM|TZ)$/.test(name)),
)

/** A plain user's lookup in root's own places on PATH is denied, which is another answer than "not there". */
function canBeEntered(directory) {
  if (!existsSync(directory)) return false
  const open = (statSync(directory).mode & 0o001) !== 0
  return open && (dirname(directory) === directory || canBeEntered(dirname(directory)))
}
