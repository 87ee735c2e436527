/**
 * The fork server of this process (native/runner/fork-server.h), which starts the launchers of its kept plans: a fork of node copies the page
 * tables of all its memory, 2 ms of processor where it holds 120 MiB.
 * Edge: processes, sockets, the clock.
 *
 * The first run of a process starts its launcher itself, and so does every run while no server is ready: no run waits for one. It ends with
 * this process, when it has had nothing to do for a while, or when this process has attributes that a child would inherit and the server has not.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { getPriority, tmpdir } from 'node:os'
import { FORK_SERVER_FD, RUN_FD } from '../../contract.ts'
import { ownDirectory } from '../../host/own-directory.ts'
import { takeSecret } from '../../host/secret.ts'
import { hostCall } from '../../os/native-programs.ts'
import { FramedLine } from './run-protocol.ts'

/** Milliseconds without a run after which a server ends. */
const IDLE_MS = 5_000

class ForkServer {
  readonly file: string
  readonly inherited = inheritable()
  private readonly child: ChildProcess
  private readonly idle: NodeJS.Timeout
  /** Resolves to false where it does not begin. */
  readonly ready: Promise<boolean>
  private settle: (isReady: boolean) => void = () => undefined
  private isReady = false
  private isGone = false

  constructor(file: string) {
    this.file = file
    this.ready = new Promise((resolve) => {
      this.settle = resolve
    })
    const stdio = Array.from({ length: RUN_FD + 1 }, (_, fd) =>
      fd === RUN_FD ? ('pipe' as const) : ('ignore' as const),
    )
    const { env } = process
    const uid = process.geteuid?.() ?? 0
    takeSecret({ env, uid }) // Without it no index of a large zone is kept, and nothing is watched.
    const { argv } = hostCall('launch', ['--fork-server', tmpdir(), ownDirectory(env, uid)])
    this.child = spawn(file, argv, { env: {}, cwd: '/', stdio })
    for (const event of ['error', 'exit']) this.child.once(event, () => this.fail())
    this.child.unref()
    // None where no process could be made, for want of memory or descriptors.
    const owner = this.owner
    for (const event of ['error', 'close']) owner?.once(event, () => this.fail())
    owner?.once('data', () => {
      this.isReady = true
      this.settle(true)
    })
    owner?.unref()
    this.idle = setTimeout(() => this.end(), IDLE_MS).unref()
  }

  get serves(): boolean {
    return !this.isGone && this.inherited === inheritable()
  }

  /** @returns undefined as long as it is not ready */
  connect(): FramedLine | undefined {
    this.idle.refresh()
    return this.isReady ? FramedLine.connect(`/proc/${this.child.pid}/fd/${FORK_SERVER_FD}`) : undefined
  }

  /** The server has ended on its own, or never began. */
  private fail(): void {
    if (!this.isGone && !this.isReady) own.letDown += 1
    this.end()
  }

  end(): void {
    this.isGone = true
    this.isReady = false
    this.settle(false)
    clearTimeout(this.idle)
    this.owner?.destroy()
  }

  private get owner(): Socket | undefined {
    return (this.child.stdio as ChildProcess['stdio'] | undefined)?.[RUN_FD] as Socket | undefined
  }
}

/** Inherited attributes of a launcher that may have changed since a server was started. */
const inheritable = (): string =>
  JSON.stringify([process.geteuid?.(), process.getegid?.(), process.getgroups?.(), getPriority()])

/** A process that was let down so often, one after the other, does without: /proc may be hidden from it, or memory short. */
const MOST_LET_DOWN = 3

const own: { runs: number; letDown: number; server?: ForkServer } = { runs: 0, letDown: 0 }

/** Starts one where none serves. */
function serverFor(file: string): ForkServer | undefined {
  if (own.letDown >= MOST_LET_DOWN) return undefined
  if (own.server?.file === file && own.server.serves) return own.server
  own.server?.end()
  own.server = new ForkServer(file)
  return own.server
}

/** @returns a connection to a launcher for this run only; undefined: start one */
export function forkedLauncher(file: string): FramedLine | undefined {
  own.runs += 1
  return own.runs === 1 && own.server === undefined ? undefined : serverFor(file)?.connect()
}

/** The same for a sandbox that is not needed yet. @returns undefined where there is none */
export async function awaitedLauncher(file: string): Promise<FramedLine | undefined> {
  const server = serverFor(file)
  if (!(await server?.ready)) return undefined
  const line = server?.connect()
  line?.socket.once('connect', () => noteForked({ isLetDown: false }))
  line?.socket.once('error', () => noteForked({ isLetDown: line.socket.connecting }))
  return line
}

/** Counts the failures of connections that it gave. */
export function noteForked({ isLetDown }: { readonly isLetDown: boolean }): void {
  own.letDown = isLetDown ? own.letDown + 1 : 0
  if (isLetDown) own.server?.end()
}
