/**
 * The helper of a live run's restricted network, as the owner of the run speaks to it: lines of fields on a socket next to the record of the
 * run. native/net/grants.h has the protocol.
 * Edge: sockets, the file system.
 */
import { closeSync, constants, openSync, watch } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { SandboxError } from '../error.ts'
import { runsDirectory } from '../host/own-directory.ts'
import { allowedPorts, type HostRule, printPattern, printRule } from '../network/host-rule.ts'
import { isOwnDirectory } from '../os/private-files.ts'
import type { Environment } from './caller.ts'

export interface LiveNetwork {
  readonly say: (...fields: readonly string[]) => void
  /** Lines as they come, taken apart; they end with the run. */
  readonly lines: AsyncIterable<readonly string[]>
  readonly close: () => void
}

/** Its socket: connecting through the descriptor of the directory gives the path room, as an address has 107 bytes. */
function open(env: Environment, runId: string): Promise<Socket> {
  const uid = process.getuid?.() ?? -1
  const place = runsDirectory(env, uid)
  if (!isOwnDirectory(place, uid)) return Promise.reject(new Error(`${place} is not this user's alone`))
  const directory = openSync(place, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  return new Promise<Socket>((resolve, reject) => {
    const socket = createConnection({ path: `/proc/self/fd/${directory}/${runId}.net` })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      socket.on('error', () => socket.destroy())
      resolve(socket)
    })
  }).finally(() => closeSync(directory))
}

function speaking(socket: Socket): LiveNetwork {
  async function* fields(): AsyncGenerator<readonly string[]> {
    for await (const line of createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY }))
      yield line.split('\t')
  }
  return {
    say: (...words) => void socket.write(`${words.join('\t')}\n`),
    lines: fields(),
    close: () => void socket.destroy(),
  }
}

/** @throws SandboxError USAGE where the run was not started for it */
export async function liveNetwork(env: Environment, runId: string): Promise<LiveNetwork> {
  const socket = await open(env, runId).catch((cause: unknown) => {
    throw new SandboxError(
      'USAGE',
      `run ${runId} was started without --allow-later: its network can be neither changed nor watched.`,
      {
        hint: 'start it with --allow-later: llm-do run --name NAME --allow-later --allow-host HOST -- COMMAND',
        cause,
      },
    )
  })
  return speaking(socket)
}

/** The same for a run that is being started. @returns undefined when it ended before */
export async function startedNetwork(
  env: Environment,
  runId: string,
  ended: AbortSignal,
): Promise<LiveNetwork | undefined> {
  const made = watch(runsDirectory(env, process.getuid?.() ?? -1), { signal: ended })
  try {
    for (;;) {
      const change = new Promise<void>((resolve) => {
        made.once('change', () => resolve())
        made.once('close', () => resolve())
      })
      const socket = await open(env, runId).catch(() => undefined)
      if (socket !== undefined) return speaking(socket)
      if (ended.aborted) return undefined
      await change
    }
  } finally {
    made.close()
  }
}

export const allowWords = (rule: HostRule): readonly string[] => {
  const ports = allowedPorts(rule)
  return ['allow', printPattern(rule.pattern), ports === '*' ? '*' : ports.join(' '), printRule(rule)]
}
