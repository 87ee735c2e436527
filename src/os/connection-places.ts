/**
 * Places of a server for connections, kept apart by what a connection has shown: nothing yet, a request, or a token. Whoever opens
 * connections and says nothing takes places of the silent ones only, and the newest of those stays.
 * Edge: sockets.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

export interface PlaceBounds {
  /** Connections without a request. Where there are more, the oldest is closed. */
  readonly silent: number
  /** With a request and without a token. */
  readonly unproven: number
  /** With a token. */
  readonly proven: number
}

/** Milliseconds for the head of a request: local clients need one. */
export const HEAD_MS = 5_000
/** Milliseconds between two looks for connections that are late; node's default is 30 s. */
export const LOOK_MS = 1_000

export class ConnectionPlaces {
  readonly #bounds: PlaceBounds
  /** In the order of their arrival. */
  readonly #silent = new Set<Socket>()
  readonly #unproven = new Set<Socket>()
  readonly #proven = new Set<Socket>()

  constructor(server: Server, bounds: PlaceBounds) {
    this.#bounds = bounds
    server.on('connection', (socket) => this.#admit(socket))
  }

  #admit(socket: Socket): void {
    this.#silent.add(socket)
    socket.once('close', () => {
      for (const places of [this.#silent, this.#unproven, this.#proven]) places.delete(socket)
    })
    const [oldest] = this.#silent
    if (this.#silent.size > this.#bounds.silent) oldest?.destroy()
  }

  /** A request has come on it. @returns false when all places are taken */
  hasPlace(socket: Socket, isProven: boolean): boolean {
    const places = isProven || this.#proven.has(socket) ? this.#proven : this.#unproven
    if (!places.has(socket) && places.size >= this.#bounds[isProven ? 'proven' : 'unproven']) return false
    for (const others of [this.#silent, this.#unproven]) others.delete(socket)
    places.add(socket)
    return true
  }
}
