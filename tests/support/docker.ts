/**
 * A Docker daemon for the tests, and podman with a separate storage: nothing of the machine's is touched, nothing is
 * fetched. Images are made of files that are here: busybox, and one that is only links into a mounted /usr.
 *
 *     const docker = await startDocker()      // in beforeAll
 *     await docker.stop()                     // in afterAll
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, copyFile, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { afterAll } from 'vitest'
import { newDirectory } from './directory.ts'

/** busybox as every program it knows; plain users can run it. */
export const BUSYBOX_IMAGE = 'llm-do-test/busybox:1'
/** Links into /usr and nothing else: with the host's /usr mounted it has the host's programs. */
export const LINKS_IMAGE = 'llm-do-test/links:1'
/** Declares a volume. */
export const VOLUME_IMAGE = 'llm-do-test/volume:1'
/** Sets its own variables. */
export const ENVIRONMENT_IMAGE = 'llm-do-test/environment:1'

export interface TestDocker {
  /** A directory that goes with it. */
  readonly root: string
  readonly program: 'docker' | 'podman'
  /** Environment with which the client finds it. */
  readonly env: Readonly<Record<string, string>>
  /** Runs the client; throws when it fails. */
  readonly client: (...argv: readonly string[]) => Promise<string>
  readonly stop: () => Promise<void>
}

/** Starts one for all that ask in a test file; it ends after the file's last test. */
export function oncePerFile(start: () => Promise<TestDocker>): () => Promise<TestDocker> {
  const state: { started?: Promise<TestDocker> } = {}
  afterAll(async () => {
    // A start that failed has been told to those who asked, and has cleaned up.
    const started = await state.started?.catch(() => undefined)
    await started?.stop()
  })
  return () => {
    state.started ??= start()
    return state.started
  }
}

/** Debian keeps the daemon and the runtimes out of a plain user's PATH. */
const PATH = `${process.env.PATH ?? ''}:/usr/local/sbin:/usr/sbin:/sbin`

/** The discard port: whatever an image's name leads to, the daemon of a test reaches no server. */
const NO_PROXY_THERE = 'http://127.0.0.1:9'

/** Milliseconds that a daemon may take to answer on a loaded machine. */
const START_MS = 120_000

export interface DockerOptions {
  /** Registry in place of all others, see registry.ts; none can be reached without it. */
  readonly registry?: string
  /** Images next to busybox: an import takes half a second of processor time. */
  readonly images?: readonly ImageName[]
}

export async function startDocker({ registry, images = [] }: DockerOptions = {}): Promise<TestDocker> {
  // Not below the file's own directory: the address of containerd's socket has room for 107 bytes.
  const { path: root } = await newDirectory({ below: dirname(tmpdir()) })
  const socket = join(root, 'socket')
  const words = [
    '--data-root',
    join(root, 'data'),
    '--exec-root',
    join(root, 'exec'),
    '--pidfile',
    join(root, 'docker.pid'),
  ]
  const closed = ['--bridge=none', '--iptables=false', '--ip6tables=false']
  const env = { PATH, HOME: root, DOCKER_HOST: `unix://${socket}` }
  const mirror = registry === undefined ? [] : ['--registry-mirror', registry]
  const keeper = keep(root, ['dockerd', ...words, '--host', env.DOCKER_HOST, ...closed, ...mirror], {
    env: { ...env, TMPDIR: root, HTTPS_PROXY: registry ?? NO_PROXY_THERE, HTTP_PROXY: registry ?? NO_PROXY_THERE },
    // A daemon gives each of them ten seconds.
    atEnd: 'ids=$(docker ps --all --quiet); [ -z "$ids" ] || docker rm --force $ids',
  })
  const client = clientOf('docker', env)
  try {
    await untilReady(client)
    await importImages(client, root, images)
  } catch (cause) {
    const log = await keeper.log()
    await keeper.stop()
    throw new Error(`dockerd: ${log}`, { cause })
  }
  return { program: 'docker', root, env, client, stop: keeper.stop }
}

/** Of the daemon's log, in the message of a test that could not have one. */
const LAST_LINES = 20

/**
 * Runs a program until its stdin ends, which it also does when the test's process is killed: then it stops the program, unmounts what is
 * below the directory and removes the directory. The keeper has its own session, so a kill of the test's process group misses it; the
 * program dies with it. A daemon that does not stop within 20 seconds is killed, and its containers with it.
 */
const KEEPER = `root=$1; at_end=$2; shift 2
exec 3<&0 </dev/null >"$root/log" 2>&1
setpriv --pdeathsig TERM -- "$@" 3<&- &
program=$!
runs() { [ -e "/proc/$1" ] && ! grep -q '^State:.Z' "/proc/$1/status"; }
read -r _ <&3
eval "$at_end"
kill -TERM $program
for _ in $(seq 200); do runs $program || break; sleep 0.1; done
kill -KILL $program
for comm in $(grep -l '^containerd' /proc/[0-9]*/comm); do
  of=\${comm%/comm}
  ! grep -aqF "$root/" "$of/cmdline" || kill -KILL $(cat "$of"/task/*/children) "\${of#/proc/}"
done
points() { cut -d ' ' -f 5 /proc/self/mountinfo | grep -F "$root/" | sort -r; }
for _ in 1 2 3; do
  for point in $(points); do umount -l "$point"; done
  rm -rf --one-file-system "$root" && break
done`

interface KeptOptions {
  readonly env: Readonly<Record<string, string>>
  /** Shell text that runs before the program is stopped. */
  readonly atEnd: string
}

function keep(root: string, program: readonly string[], { env, atEnd }: KeptOptions) {
  const words = ['-c', KEEPER, 'sh', root, atEnd, ...program]
  const keeper = spawn('sh', words, { env, stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  const ended = once(keeper, 'exit')
  const stop = async (): Promise<void> => {
    keeper.stdin.end()
    await ended
  }
  const log = async () => (await readFile(join(root, 'log'), 'utf8')).split('\n').slice(-LAST_LINES).join('\n')
  return { stop, log }
}

/** podman as root needs words for machines without systemd; they go by its own files, as a user's would. */
export async function startPodman(): Promise<TestDocker> {
  // conmon's sockets lie below it, and a socket's address has room for 107 bytes: without them podman waits 20 s for each end.
  const { path: root } = await newDirectory({ below: dirname(tmpdir()) })
  const containers = join(root, 'containers.conf')
  const storage = join(root, 'storage.conf')
  await writeFile(
    containers,
    `[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\ninit_path = "/usr/bin/tini-static"\ntmp_dir = "${root}/tmp"\n`,
  )
  await writeFile(storage, `[storage]\ndriver = "vfs"\ngraphroot = "${root}/graph"\nrunroot = "${root}/run"\n`)
  const env = { PATH, HOME: root, CONTAINERS_CONF: containers, CONTAINERS_STORAGE_CONF: storage, TMPDIR: root }
  const client = clientOf('podman', env)
  // Its containers have no daemon: the keeper removes them.
  const { stop } = keep(root, ['sleep', 'infinity'], { env, atEnd: 'podman rm --force --all' })
  try {
    await importImages(client, root, [])
  } catch (cause) {
    await stop()
    throw cause
  }
  return { program: 'podman', root, env, client, stop }
}

function clientOf(program: string, env: Readonly<Record<string, string>>): TestDocker['client'] {
  return async (...argv) => (await execa(program, argv, { env, extendEnv: false, stdin: 'ignore' })).stdout
}

async function untilReady(client: TestDocker['client']): Promise<void> {
  const until = performance.now() + START_MS
  for (;;) {
    const version = await client('version').catch((error: unknown) => error)
    if (typeof version === 'string') return
    if (performance.now() > until) throw version
    await sleep(50)
  }
}

interface Image {
  readonly makeTree: (tree: string) => Promise<void>
  readonly changes: readonly string[]
}

const IMAGES = {
  [BUSYBOX_IMAGE]: { makeTree: makeBusyboxTree, changes: [] },
  [VOLUME_IMAGE]: { makeTree: makeBusyboxTree, changes: ['VOLUME /data'] },
  [ENVIRONMENT_IMAGE]: {
    makeTree: makeBusyboxTree,
    changes: ['ENV IMAGE_WORD=image', 'ENV HTTP_PROXY=http://image.example', 'ENTRYPOINT ["/bin/false"]'],
  },
  [LINKS_IMAGE]: { makeTree: makeLinksTree, changes: [] },
} satisfies Record<string, Image>

type ImageName = keyof typeof IMAGES

async function importImages(client: TestDocker['client'], root: string, more: readonly ImageName[]): Promise<void> {
  const tree = join(root, 'tree')
  for (const image of [BUSYBOX_IMAGE, ...more] as const) {
    const { makeTree, changes } = IMAGES[image]
    await makeTree(tree)
    await importTree(client, { tree, image, changes })
    await rm(tree, { recursive: true })
  }
}

/** Writes a tar archive of the files of the busybox image. */
export async function packBusybox(directory: string): Promise<string> {
  const [tree, tar] = [join(directory, 'tree'), join(directory, 'layer.tar')]
  await makeBusyboxTree(tree)
  await execa('tar', ['--create', '--file', tar, '--directory', tree, '.'])
  return tar
}

export async function makeBusyboxTree(tree: string): Promise<void> {
  await mkdir(join(tree, 'bin'), { recursive: true })
  await copyFile('/bin/busybox', join(tree, 'bin/busybox'))
  const { stdout } = await execa('/bin/busybox', ['--list'])
  const names = stdout.split('\n').filter((name) => name !== '' && name !== 'busybox')
  await Promise.all(names.map((name) => symlink('busybox', join(tree, 'bin', name))))
  await writeFile(join(tree, 'bin/not-executable'), 'plain\n', { mode: 0o644 })
  await writeFile(join(tree, 'bin/no-interpreter'), '#!/nosuch/shell\n', { mode: 0o755 })
  await mkdir(join(tree, 'etc'))
}

async function makeLinksTree(tree: string): Promise<void> {
  await mkdir(join(tree, 'usr'), { recursive: true })
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) await symlink(`usr/${name}`, join(tree, name))
  await mkdir(join(tree, 'etc'))
  await writeFile(join(tree, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n')
  for (const name of ['tmp', 'proc', 'sys', 'dev', 'root']) await mkdir(join(tree, name))
  // A tmpfs takes over the mode of the directory it covers.
  await chmod(join(tree, 'tmp'), 0o1777)
}

interface ImportInputs {
  readonly tree: string
  readonly image: string
  readonly changes: readonly string[]
}

/** Makes an image of a directory; `changes` are lines of a Dockerfile. */
export async function importTree(client: TestDocker['client'], { tree, image, changes }: ImportInputs): Promise<void> {
  const tar = join(dirname(tree), 'image.tar')
  await execa('tar', ['--create', '--file', tar, '--directory', tree, '.'])
  await client('import', ...changes.flatMap((change) => ['--change', change]), tar, image)
  await rm(tar)
}
