/**
 * An image registry on this machine: one image of busybox under the given names, by the real protocol (distribution
 * spec, "Pulling manifests" and "Pulling blobs"). It is a proxy as well, one that connects nowhere: a daemon that has it as
 * mirror and as proxy reaches no other registry.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'

export interface TestRegistry {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  /** The requests, in order: `GET /v2/library/node/manifests/22`. */
  readonly requests: readonly string[]
  readonly stop: () => Promise<void>
}

export interface RegistryInputs {
  /** Path of a tar archive: the only layer. */
  readonly layer: string
  /** `library/node:22`, ... */
  readonly names: readonly string[]
}

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const jsonOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

interface Blob {
  readonly type: string
  readonly bytes: Buffer
}

const MANIFEST_TYPE = 'application/vnd.docker.distribution.manifest.v2+json'
const CONFIG_TYPE = 'application/vnd.docker.container.image.v1+json'
const LAYER_TYPE = 'application/vnd.docker.image.rootfs.diff.tar.gzip'

/** Manifest, configuration and layer, by digest; the manifest first. */
function imageOf(tar: Buffer): readonly Blob[] {
  const layer = { type: LAYER_TYPE, bytes: gzipSync(tar) }
  const config = {
    type: CONFIG_TYPE,
    bytes: jsonOf({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: { Env: ['PATH=/bin'], Cmd: ['sh'] },
      rootfs: { type: 'layers', diff_ids: [digestOf(tar)] },
    }),
  }
  const describe = ({ type, bytes }: Blob) => ({ mediaType: type, size: bytes.length, digest: digestOf(bytes) })
  const manifest = { schemaVersion: 2, mediaType: MANIFEST_TYPE, config: describe(config), layers: [describe(layer)] }
  return [{ type: MANIFEST_TYPE, bytes: jsonOf(manifest) }, config, layer]
}

export async function startRegistry({ layer, names }: RegistryInputs): Promise<TestRegistry> {
  const blobs = imageOf(await readFile(layer))
  const [manifest] = blobs
  const requests: string[] = []
  const find = (path: string): Blob | undefined => {
    const [, name, kind, reference = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(path) ?? []
    if (kind === 'manifests' && names.includes(`${name}:${reference}`)) return manifest
    return blobs.find(({ bytes }) => digestOf(bytes) === reference)
  }
  const server = createServer(({ method = '', url = '' }, response) => {
    requests.push(`${method} ${url}`)
    if (url === '/v2/') return send(response, { type: 'application/json', bytes: Buffer.from('{}') })
    const found = find(url)
    if (found === undefined) return void response.writeHead(404).end()
    send(response, found, method === 'HEAD')
  })
  server.on('connect', ({ url }, socket) => {
    requests.push(`CONNECT ${url}`)
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stop = () => new Promise<void>((resolve) => server.close(() => resolve()).closeAllConnections())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, stop }
}

function send(response: ServerResponse, { type, bytes }: Blob, isHead = false): void {
  response.writeHead(200, {
    'Content-Type': type,
    'Content-Length': bytes.length,
    'Docker-Content-Digest': digestOf(bytes),
    'Docker-Distribution-API-Version': 'registry/2.0',
  })
  response.end(isHead ? undefined : bytes)
}
