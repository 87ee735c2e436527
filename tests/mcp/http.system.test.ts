/** `llm-do mcp --http`: who is let in, and what is left when a client or the server has gone. */
import { chmodSync, chownSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { makePlace, type Place } from '../cow/place.ts'
import { runCli } from '../support/cli.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser, uidOf } from '../support/users.ts'
import { type HttpServer, overHttp } from './client.ts'

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
})

/** Status of a POST; by node:http, which lets a Host header be written. */
function post(
  { url, token }: HttpServer,
  headers: Record<string, string>,
  body = INITIALIZE,
  path = '/mcp',
): Promise<number> {
  const usual = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port: url.port, path, method: 'POST', headers: { ...usual, ...headers } })
    sent.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function tokenFile({ outside, user }: Pick<Place, 'outside' | 'user'>, token: string, mode = 0o600): string {
  const file = join(outside, 'token')
  writeFileSync(file, token)
  chmodSync(file, mode)
  chownSync(file, uidOf(user), uidOf(user))
  return file
}

const user = currentUser()

describeWith(['bwrap', 'userns'], 'llm-do mcp --http', () => {
  test('lets in whom has the token, by its own name, from no other site', async () => {
    const server = await overHttp(await makePlace(user))
    const { port } = server.url
    expect(server.token).toMatch(/^[0-9a-f]{64}$/)
    expect(await post(server, {})).toBe(200)
    expect(await post(server, { authorization: `bearer ${server.token}` })).toBe(200)
    expect(await post(server, { host: `localhost:${port}`, origin: `http://localhost:${port}` })).toBe(200)
    const refused: readonly (readonly [number, Record<string, string>, string?, string?])[] = [
      [401, { authorization: '' }],
      [401, { authorization: `Bearer ${server.token}0` }],
      [401, { authorization: `Bearer ${server.token.slice(1)}` }],
      [401, { authorization: `Basic ${server.token}` }],
      [403, { host: `attacker.example:${port}` }],
      [403, { host: '127.0.0.1' }],
      [403, { origin: 'https://attacker.example' }],
      [403, { origin: 'null' }],
      [404, {}, INITIALIZE, '/'],
      [400, {}, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'],
      [400, {}, '{'],
      [404, { 'mcp-session-id': 'x' }, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'],
      [413, {}, `"${'x'.repeat(5 << 20)}"`],
    ]
    for (const [status, headers, body, path] of refused)
      expect([headers, await post(server, headers, body, path)]).toEqual([headers, status])
  })

  test('serves clients apart from each other, and forgets who makes no use of it', async () => {
    const place = await makePlace(user)
    const server = await overHttp(place, '--cow', '.')
    const [one, other] = [await server.connect(), await server.connect()]
    await one.call('run_command', { command: 'echo mine > file' })
    const { data } = await one.call('run_command', { command: 'cat file; seq 100000' })
    expect((await other.call('run_command', { command: 'ls' })).data.stdout.text).toBe('')
    expect(await other.call('read_output', { id: data.output ?? '' })).toMatchObject({ isError: true })
    expect((await other.call('diff', {})).data.patch.text).toBe('')
    // A refused request takes no place.
    for (let more = 0; more < 20; more += 1) {
      expect(await post(server, { accept: 'text/html' })).toBe(406)
      expect(await post(server, { 'content-type': 'text/plain' })).toBe(415)
    }
    expect((await one.call('diff', {})).data).toBeDefined()
    for (let more = 0; more < 20; more += 1) expect(await post(server, {})).toBe(200)
    await expect(one.call('diff', {})).rejects.toThrow('no such session')
  })

  test('ends the runs of a client that has gone, and all of them with itself', async () => {
    const place = await makePlace(user)
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const file = tokenFile(place, 'f'.repeat(40))
    const server = await overHttp(place, '--token-file', file, '--cow', '.')
    const [one, other] = [await server.connect(), await server.connect()]
    const begin = (client: typeof one, name: string): Promise<() => Promise<unknown>> =>
      new Promise((resolve) => {
        const command = `echo ${name} > ${name}; echo begun; sleep 300; : ${mark}`
        const onprogress = ({ message = '' }) => message === 'begun' && resolve(() => run)
        const run = client.call('run_command', { command }, { onprogress }).catch((error: unknown) => error)
      })
    await begin(one, 'one')
    // The connection alone: no word of the protocol.
    await one.client.close()
    while ((await takeSnapshot({ mark })).processes.length > 0) await sleep(20)
    await begin(other, 'other')
    expect(await server.stop()).toBe(0)
    await expectNothingLeft({ before, mark })
    // A client finds the next server, and has to begin anew.
    const next = await overHttp(place, '--token-file', file)
    expect((await (await next.connect()).call('run_command', { command: 'echo here' })).data.stdout.text).toBe('here\n')
  })

  test('takes no token from a file that others can read, or that commands would see', async () => {
    const place = await makePlace(user)
    const refusal = async (file: string): Promise<string> => {
      const words = ['mcp', '--http', '0', '--token-file', file]
      const { status, stderr } = await runCli(words, {
        as: user,
        program: 'llm-do',
        // One that takes the token serves on.
        through: ['timeout', '60'],
        cwd: place.project,
        env: place.env,
      })
      expect(status).toBe(125)
      return stderr.toString()
    }
    expect(await refusal(tokenFile(place, 'f'.repeat(40), 0o644))).toContain('only you can read')
    expect(await refusal(tokenFile(place, 'short'))).toContain('at least 32')
    expect(await refusal(tokenFile({ ...place, outside: place.project }, 'f'.repeat(40)))).toContain(
      'commands would see',
    )
    // A command could lead the name to another file for the next server.
    symlinkSync(place.outside, join(place.project, 'way'))
    const outside = tokenFile(place, 'f'.repeat(40))
    expect(await refusal(join(place.project, 'way', basename(outside)))).toContain('commands would see')
  })
})
