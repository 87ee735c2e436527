/** Two requests of a command that come at once, on one connection to a terminated host. */
import { once } from 'node:events'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { hostCertificate, newAuthority, newKeys, type Validity } from '../../src/terminator/certificates.ts'
import { Connections } from '../../src/terminator/connections.ts'

const PLACE = { host: 'a.example', port: 443 } as const

const validity = (): Validity => ({
  from: new Date(Date.now() - 60_000),
  until: new Date(Date.now() + 60_000),
  serial: Buffer.alloc(16, 1),
})

/** Both ends of a connection. */
async function pairOfSockets(): Promise<readonly [theirs: Socket, ours: Socket]> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const theirs = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
  const [ours] = (await once(server, 'connection')) as [Socket]
  onTestFinished(() => {
    for (const end of [theirs, ours]) end.destroy()
    server.close()
  })
  return [theirs, ours]
}

test('two requests at once are answered one after the other, each by its own answer', async () => {
  const [world, authority] = [newAuthority('the world', validity()), newAuthority('run 1', validity())]
  const keys = newKeys()
  const cert = hostCertificate(PLACE.host, keys.publicKey, world, validity())
  const key = keys.privateKey.export({ type: 'pkcs8', format: 'pem' })
  const service = createHttpsServer({ cert, key }, ({ url, headers }, response) =>
    response.end(`<${url} ${headers.authorization}>`),
  )
  const headers = [{ name: 'Authorization', value: 'secret' }]
  const setup = { trust: world.certificate, hosts: [{ ...PLACE, headers, requests: [] }] }
  const connections = new Connections({ setup, authority, validity })
  const [[atServer, outside], [command, inside]] = [await pairOfSockets(), await pairOfSockets()]
  service.emit('connection', atServer)
  connections.take({ id: 1, side: 'outside', ...PLACE }, outside)
  connections.take({ id: 1, side: 'inside', ...PLACE }, inside)
  const client = connectTls({ socket: command, servername: PLACE.host, ca: authority.certificate })
  const requestOf = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: ${PLACE.host}\r\n\r\n`
  client.write(requestOf('/a') + requestOf('/b'))
  let answers = ''
  for await (const chunk of client) {
    answers += chunk
    if (answers.includes('</b')) break
  }
  expect(answers.match(/<.*?>/g)).toEqual(['</a secret>', '</b secret>'])
})
