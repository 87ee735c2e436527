import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { boundedBody } from '../../src/os/request-body.ts'

const MOST = 1 << 20

/** Asks by one connection. @returns status, or what went wrong */
async function serving(): Promise<(bytes: number) => Promise<number>> {
  const server = createServer(async (request, response) => {
    const body = await boundedBody(request, MOST)
    response.writeHead(body === undefined ? 413 : 200)
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => {
    agent.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return (bytes) =>
    new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, method: 'POST', agent })
      sent.on('response', (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode ?? 0))
      })
      sent.on('error', reject)
      sent.end(Buffer.alloc(bytes))
    })
}

test('a client whose body is too large gets its answer, and can go on', async () => {
  const ask = await serving()
  for (const bytes of [MOST, MOST + 1, 32 * MOST, 0, 8 * MOST]) expect(await ask(bytes)).toBe(bytes > MOST ? 413 : 200)
})
