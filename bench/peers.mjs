// Other ways to run `true` apart from the host: the command line of each, or why it is not here.
import { accessSync, constants, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

export function findProgram(name) {
  const found = (process.env.PATH ?? '').split(delimiter).map((directory) => join(directory, name))
  return found.find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** bubblewrap as its manual shows it first; the measure of all the others. */
export const NAIVE = [
  'bwrap',
  '--ro-bind',
  '/',
  '/',
  '--dev',
  '/dev',
  '--proc',
  '/proc',
  '--tmpfs',
  '/tmp',
  '--unshare-all',
]

/**
 * The walls of a launch file as one would write them for bwrap: the same mounts, bounds, namespaces and filter. What bwrap
 * cannot do (id maps, Landlock, inode bounds, masks below /proc, limits, exact status) is left out, so it has less to do.
 */
export function byHand(words) {
  const records = recordsOf(words)
  const tree = records.flatMap(([verb, first, second, third]) => {
    if (verb === 'directory') return ['--dir', first]
    if (verb === 'symlink') return ['--symlink', second, first]
    if (verb === 'file') return ['--ro-bind', '/etc/hostname', first]
    if (verb === 'bind') return ['--ro-bind', first, second]
    if (verb === 'zone') return [third === 'rw' ? '--bind' : '--ro-bind', first, second]
    if (verb === 'tmpfs' && first !== '/dev/shm') return ['--size', second, '--tmpfs', first]
    return []
  })
  return [
    'bwrap',
    '--unshare-all',
    '--die-with-parent',
    '--new-session',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    ...tree,
    '--remount-ro',
    '/',
  ]
}

/** Verb -> number of words, for those that make the tree; every record begins with a verb, so others are skipped word by word. */
const TREE_WORDS = { directory: 2, symlink: 2, file: 3, tmpfs: 4, bind: 2, zone: 6 }

function recordsOf(words) {
  const records = []
  for (let at = 0; at < words.length; at += 1) {
    const length = TREE_WORDS[words[at]]
    // The tree comes after the engine's words; before them stand the key and the places, which may hold any text.
    if (length === undefined || at < words.indexOf('hostname')) continue
    records.push(words.slice(at, at + 1 + length))
    at += length
  }
  return records
}

/** A bundle of the OCI runtimes: the host's programs, read-only, in namespaces of its own. */
function bundle({ stage, runtime }) {
  const directory = join(stage.directory, `${runtime}-bundle`)
  mkdirSync(join(directory, 'rootfs'), { recursive: true })
  const rootless = process.getuid() === 0 ? [] : ['--rootless']
  const made = stage.run([runtime, 'spec', ...rootless], { cwd: directory })
  if (made.status !== 0) throw new Error(`${runtime} spec: ${made.stderr}`)
  const file = join(directory, 'config.json')
  const settings = JSON.parse(readFileSync(file, 'utf8'))
  const bind = (source) => ({ destination: source, source, type: 'none', options: ['rbind', 'ro'] })
  settings.process.terminal = false
  settings.process.args = ['/usr/bin/true']
  settings.mounts = [...settings.mounts, ...['/usr', '/lib', '/lib64', '/bin'].map(bind)]
  writeFileSync(file, JSON.stringify(settings))
  const state = join(stage.directory, `${runtime}-state`)
  return ['sh', '-c', `exec ${runtime} --root ${state} run --bundle ${directory} bench-$$`]
}

function ociRuntime(runtime) {
  return (stage) => bundle({ stage, runtime })
}

function container(program) {
  return (stage) => {
    const listed = stage.run([program, 'images', '--format', '{{.Repository}}:{{.Tag}}'], { timeout: 20_000 })
    const image = listed.stdout
      ?.toString()
      .split('\n')
      .find((name) => name !== '' && !name.includes('<none>'))
    if (image === undefined) throw new Error(listed.status === 0 ? 'no image is there' : 'its daemon does not answer')
    return [program, 'run', '--rm', '--network', 'none', image, 'true']
  }
}

const TREE_OF_NAMESPACES = [
  '--user',
  '--map-root-user',
  '--pid',
  '--fork',
  '--mount',
  '--mount-proc',
  '--net',
  '--ipc',
  '--uts',
  '--cgroup',
]

/** Name -> the command line; `slow` ones get fewer rounds. */
export const PEERS = [
  { name: 'unshare', program: 'unshare', words: () => ['unshare', ...TREE_OF_NAMESPACES, 'true'] },
  {
    name: 'firejail',
    program: 'firejail',
    words: () => ['firejail', '--quiet', '--noprofile', '--net=none', 'true'],
    slow: true,
  },
  { name: 'crun', program: 'crun', words: ociRuntime('crun'), slow: true },
  { name: 'runc', program: 'runc', words: ociRuntime('runc'), slow: true },
  { name: 'podman', program: 'podman', words: container('podman'), slow: true },
  { name: 'docker', program: 'docker', words: container('docker'), slow: true },
  { name: 'srt', program: 'srt', words: () => ['srt', 'true'], slow: true },
]

/** @returns the peers that run here, and for each other one the reason */
export function availablePeers(stage) {
  const tried = PEERS.map((peer) => ({ ...peer, ...tryPeer(stage, peer) }))
  return {
    here: tried.filter(({ missing }) => missing === undefined),
    missing: tried.filter(({ missing }) => missing !== undefined),
  }
}

function tryPeer(stage, { program, words: wordsOf }) {
  if (findProgram(program) === undefined) return { missing: 'not installed' }
  try {
    const words = wordsOf(stage)
    const { status, error, stderr } = stage.run(words, { timeout: 30_000 })
    if (status === 0) return { words }
    const message = stderr?.toString().trim().split('\n').at(-1) ?? ''
    return { missing: `does not run here: ${error?.message ?? (message || `status ${status}`)}` }
  } catch (error) {
    return { missing: error.message }
  }
}
