/** For a foreign server that cannot choose a port and report it. */
import { createServer } from 'node:net'

/** @returns a port of the loopback that was free a moment ago */
export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { readonly port: number }
      probe.close(() => resolve(port))
    })
  })
