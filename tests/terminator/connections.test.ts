/** Connections of a command to a terminated host: how long it may keep silent, and two requests that come at once. */
import { once } from 'node:events'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls, rootCertificates } from 'node:tls'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { hostCertificate, newAuthority, newKeys, type Validity } from '../../src/terminator/certificates.ts'
import { Connections } from '../../src/terminator/connections.ts'

const MINUTE_MS = 60_000
const PLACE = { host: 'a.example', port: 443 } as const

const validity = (): Validity => ({
  from: new Date(Date.now() - MINUTE_MS),
  until: new Date(Date.now() + MINUTE_MS),
  serial: Buffer.alloc(16, 1),
})

const connections = (): Connections =>
  new Connections({
    setup: { trust: rootCertificates[0] ?? '', hosts: [{ ...PLACE, headers: [], requests: [] }] },
    authority: newAuthority('run 1', validity()),
    validity,
  })

/** Both ends of a connection: that of the command or of the server, and that of the terminator. */
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

async function taken(): Promise<Socket> {
  const [[, outside], [command, inside]] = [await pairOfSockets(), await pairOfSockets()]
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const all = connections()
  all.take({ id: 1, side: 'outside', ...PLACE }, outside)
  all.take({ id: 1, side: 'inside', ...PLACE }, inside)
  return command
}

const turnsOfTheLoop = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

afterEach(() => vi.useRealTimers())

test('a command that keeps silent for a minute has its connection closed, and not before', async () => {
  const command = await taken()
  command.resume()
  vi.advanceTimersByTime(MINUTE_MS - 1)
  await turnsOfTheLoop(20)
  expect(command.closed).toBe(false)
  vi.advanceTimersByTime(1)
  await once(command, 'close')
})

test('what came in time counts, also where it was not read in time', async () => {
  const command = await taken()
  const answer = once(command, 'data')
  await sleep(1) // From here to the end of the minute no socket is read: node is among its timers.
  command.write('GET / HTTP/1.1\r\n\r\n')
  vi.advanceTimersByTime(MINUTE_MS)
  expect(String((await answer)[0])).toMatch(/^HTTP\/1\.1 403 /)
})

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
  const all = new Connections({ setup, authority, validity })
  const [[atServer, outside], [command, inside]] = [await pairOfSockets(), await pairOfSockets()]
  service.emit('connection', atServer)
  all.take({ id: 1, side: 'outside', ...PLACE }, outside)
  all.take({ id: 1, side: 'inside', ...PLACE }, inside)
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
