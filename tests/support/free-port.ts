/** For a server of others that cannot choose a port by itself and say which. */
import { createServer } from 'node:net'

/** @returns a port of the loopback that nobody had a moment ago */
export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { readonly port: number }
      probe.close(() => resolve(port))
    })
  })
