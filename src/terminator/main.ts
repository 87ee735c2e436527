/**
 * The terminator: ends TLS of the hosts to whose requests a secret is added, or whose requests are limited. A process of the runner's
 * own node on the host, for one run.
 *
 * Theory of operation. The runner writes one line with the hosts, their secrets and this host's certificates to its stdin; it makes an
 * authority, whose key never leaves this memory, and writes the certificate to its stdout. The helper of the network
 * (native/net/terminator.h) then sends, for each connection of the command to such a host, two sockets: the connection that it has
 * judged and dialled (`outside`), and the other end of the command's (`inside`). This process opens none itself.
 *
 *     COMMAND ──► net ──inside──► TLS, HTTP: judged by method and path, secret added ──► TLS, verified ──outside──► server
 *
 * One connection inside is one outside, so requests of two clients never share one. It ends with its stdin (the runner), and with the
 * helper's channel; when the runner closes stdin, it answers with a line about its refusals.
 * Edge: sockets, this process.
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { HostPort, TerminatorLine, TerminatorSetup } from '../network/termination.ts'
import { holdSignals } from '../os/passed-signals.ts'
import { newAuthority, type Validity } from './certificates.ts'
import { Connections } from './connections.ts'

/** With the pid added no process has the id of another (native/sandbox/idmap.h has the helper's). No pid is so large. */
const FIRST_ID = 0x72000000

/** As root it switches to another id; everything that needs root has been read by now. */
function leaveRoot(): void {
  if (process.getuid?.() !== 0) return
  const id = FIRST_ID + process.pid
  process.setgroups?.([])
  process.setgid?.(id)
  process.setuid?.(id)
}

const HOUR_MS = 3_600_000
/** Clocks inside are this host's; a run of more than a month has to begin again. */
const VALID_MS = 31 * 24 * HOUR_MS

function validity(): Validity {
  const now = Date.now()
  return { from: new Date(now - HOUR_MS), until: new Date(now + VALID_MS), serial: randomBytes(16) }
}

const say = (line: TerminatorLine, then: () => void = () => undefined): void => {
  process.stdout.write(`${JSON.stringify(line)}\n`, then)
}

interface Handed extends HostPort {
  readonly id: number
  readonly side: 'inside' | 'outside'
}

function serve(setup: TerminatorSetup): Connections {
  const authority = newAuthority(`llm-do run ${randomBytes(8).toString('hex')}`, validity())
  const connections = new Connections({ setup, authority, validity })
  process.on('message', (message, socket) => connections.take(message as Handed, socket as Socket))
  say({ ca: authority.certificate })
  return connections
}

function main(): void {
  holdSignals()
  leaveRoot()
  const state: { connections?: Connections; isOver?: true } = {}
  const end = (): void => {
    if (state.isOver === true) return
    state.isOver = true
    if (state.connections === undefined) process.exit(1)
    say(state.connections.report(), () => process.exit(0))
  }
  const lines = createInterface({ input: process.stdin })
  lines.once('line', (line) => {
    state.connections = serve(JSON.parse(line) as TerminatorSetup)
  })
  lines.once('close', end)
  process.on('uncaughtException', () =>
    state.connections === undefined ? process.exit(1) : state.connections.endAll(),
  )
  process.once('disconnect', end)
  // The runner is gone, and nothing reads the line.
  process.stdout.on('error', () => process.exit(1))
}

main()
