/** A registry of npm on this machine that has the packages it is given and no others, by the protocol that npm speaks. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename } from 'node:path'
import { execa } from 'execa'

export interface NpmRegistry {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  readonly stop: () => Promise<void>
}

/** @param files what `npm pack` makes */
export async function startNpmRegistry(files: readonly string[]): Promise<NpmRegistry> {
  const packed = await Promise.all(
    files.map(async (file) => {
      const { stdout } = await execa('tar', ['xzOf', file, 'package/package.json'])
      const manifest = JSON.parse(stdout) as { readonly name: string; readonly version: string }
      return { path: `/files/${basename(file)}`, manifest, bytes: await readFile(file) }
    }),
  )
  const server = createServer(({ url = '', headers }, response) => {
    const file = packed.find(({ path }) => path === url)
    if (file !== undefined) return void response.end(file.bytes)
    const named = packed.find(({ manifest }) => manifest.name === decodeURIComponent(url.slice(1)))
    if (named === undefined) return void response.writeHead(404).end('{}')
    const { manifest, path, bytes } = named
    const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
    const dist = { tarball: `http://${headers.host}${path}`, integrity }
    response.end(
      JSON.stringify({
        name: manifest.name,
        'dist-tags': { latest: manifest.version },
        versions: { [manifest.version]: { ...manifest, dist } },
      }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
