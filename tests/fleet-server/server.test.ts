/** The protocol of agents, step by step against a real server on 127.0.0.1, and what clients may not do. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import sqlite from 'node-sqlite3-wasm'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startFleetServer } from '../../src/fleet/server/server.ts'
import { OFFLINE_AFTER_MS } from '../../src/fleet/server/store.ts'
import { as, testServer, tokenFor } from './fleet-server.ts'

const ZIP = Buffer.from(`504b0506${'00'.repeat(18)}`, 'hex')

describe('a task', () => {
  test('goes from the queue to an agent, streams its output and ends with what the agent reports', async () => {
    const server = await testServer()
    expect(await server.register('one')).toMatchObject({ status: 200, body: { success: true, workerId: 'one' } })
    expect(await server.take('one')).toEqual({
      status: 202,
      body: { success: false, message: 'no task is waiting', job: null },
    })
    const id = await server.submit('echo a\necho b')
    const { status, body } = await server.take('one')
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        success: true,
        job: { jobId: id, command: 'echo a\necho b', filename: 'files.zip', fileUrl: `/api/files/download/${id}` },
      },
    })
    await server.stream(id, 'one', { data: 'a\n', type: 'stdout' })
    expect(await server.task(id)).toMatchObject({ state: 'running', worker: 'one', stdout: 'a\n' })
    expect((await server.report(id, 'one', { stdout: 'a\nb\n', planHash: 'abc', exitCode: 3 })).status).toBe(200)
    const ended = { state: 'done', exitCode: 3, stdout: 'a\nb\n', details: { planHash: 'abc' } }
    expect(await server.task(id)).toMatchObject(ended)
  })

  test('is given to one agent only, in the order of submission, also where both wait for it', async () => {
    const server = await testServer({ agents: ['one', 'two'] })
    const waiting = [server.take('one', 30), server.take('two', 30)]
    const ids = [await server.submit('a'), await server.submit('b')]
    const given = (await Promise.all(waiting)).map(({ body }) => body.job.jobId)
    expect(given.toSorted()).toEqual(ids.toSorted())
  })

  test('whose answer does not reach its agent is given to the next one, and counts no attempt', async () => {
    const server = await testServer({ agents: ['gone', 'one'] })
    const aborted = new AbortController()
    server.clock.ms += 1
    const asking = { headers: as('gone'), signal: aborted.signal }
    const gone = fetch(`${server.url}/api/jobs/get-job?workerId=gone&wait=30`, asking)
    gone.catch(() => undefined)
    const agents = async () => (await server.call('GET', '/api/tasks')).body.agents
    const arrived = expect.objectContaining({ id: 'gone', seenMs: server.clock.ms })
    await expect.poll(agents).toContainEqual(arrived)
    aborted.abort()
    await expect(gone).rejects.toThrow()
    const id = await server.submit('a')
    expect((await server.take('one', 30)).body.job.jobId).toBe(id)
    expect((await server.task(id)).attempts).toBe(1)
  })

  test('is taken once: a repeated report changes nothing, that of another agent is refused', async () => {
    const server = await testServer({ agents: ['one', 'two'] })
    const id = await server.submit('a')
    await server.take('one')
    expect((await server.report(id, 'two')).status).toBe(403)
    expect((await server.report(id, 'one', { stdout: 'first' })).status).toBe(200)
    expect((await server.report(id, 'one', { stdout: 'second', exitCode: 1 })).status).toBe(200)
    expect((await server.fail(id, 'one', { errorMessage: 'no' })).status).toBe(200)
    expect(await server.task(id)).toMatchObject({ state: 'done', stdout: 'first', exitCode: 0 })
  })

  test('is listed in little, whatever agents say of it and of themselves', async () => {
    const server = await testServer({ agents: ['one'] })
    const long = 'x'.repeat(300_000)
    const id = await server.submit('a')
    await server.take('one')
    expect((await server.report(id, 'one', { exitCode: 3, denials: [long], reason: 'exit' })).status).toBe(200)
    const heldBy = Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [at, 'x']))
    const facts = { workerId: 'one', hostname: 'host', isolation: { backend: 'x', weak: [], heldBy } }
    expect((await server.call('POST', '/api/workers/register', facts, as('one'))).status).toBe(400)
    const jobs = Array.from({ length: 1_000 }, () => 'x'.repeat(250))
    expect((await server.beat('one', { jobs })).status).toBe(400)
    const { body } = await server.call('GET', '/api/tasks')
    expect(body.tasks).toMatchObject([{ id, state: 'done', exitCode: 3, details: { reason: 'exit' } }])
    expect(JSON.stringify(body).length).toBeLessThan(10_000)
  })

  test('that an agent does not name among what it runs is queued again, the others are not', async () => {
    const server = await testServer({ agents: ['one'] })
    const [lost, running] = [await server.submit('a'), await server.submit('b')]
    await Promise.all([server.take('one'), server.take('one')])
    const busy = { status: 'BUSY', dockerContainers: 1, jobs: [running] }
    // Before its time this says nothing: the answer may be on its way.
    await server.beat('one', busy)
    server.sweep()
    expect((await server.task(lost)).state).toBe('running')
    server.pass(OFFLINE_AFTER_MS - 1_000)
    server.clock.ms += 1_000
    await server.beat('one', busy)
    server.sweep()
    expect((await server.task(lost)).state).toBe('queued')
    expect(await server.task(running)).toMatchObject({ state: 'running', attempts: 1 })
  })

  test('that its agent refuses fails with its words, or is queued again where another machine may succeed', async () => {
    const server = await testServer({ agents: ['one'] })
    const id = await server.submit('a')
    const failure = { errorMessage: 'no cgroup here' }
    await server.take('one')
    await server.fail(id, 'one', { ...failure, elsewhere: true })
    expect(await server.task(id)).toMatchObject({ state: 'queued', message: 'no cgroup here' })
    await server.take('one')
    await server.fail(id, 'one', failure)
    expect(await server.task(id)).toMatchObject({ state: 'failed', exitCode: null, message: 'no cgroup here' })
  })

  test('brings its files to its agent and the files it made back, under names of the server', async () => {
    const server = await testServer({ agents: ['one'] })
    const zip = { 'content-type': 'application/zip' }
    const query = new URLSearchParams({ command: 'ls', filename: '../../evil.zip', timeoutMs: '1500' })
    const { id } = (await server.call('POST', `/api/tasks?${query}`, ZIP, zip)).body
    const { job } = (await server.take('one')).body
    expect(job).toMatchObject({ filename: '../../evil.zip', timeoutMs: 1500 })
    expect(
      Buffer.from(await (await fetch(new URL(job.fileUrl, server.url), { headers: as('one') })).arrayBuffer()),
    ).toEqual(ZIP)
    const made = { resultZipBase64: ZIP.toString('base64'), resultZipName: '../../../tmp/evil' }
    await server.report(id, 'one', made)
    const response = await fetch(`${server.url}/api/tasks/${id}/result`)
    expect(response.headers.get('content-disposition')).toBe(`attachment; filename="${id}.zip"`)
    expect(Buffer.from(await response.arrayBuffer())).toEqual(ZIP)
    expect(readdirSync(join(server.directory, 'files'))).toEqual([id])
    expect(readdirSync(join(server.directory, 'results'))).toEqual([id])
  })
})

test('a database of an earlier version is brought up to date', async () => {
  const server = await testServer()
  const id = await server.submit('a')
  await server.close()
  const database = new sqlite.Database(join(server.directory, 'fleet.db'))
  database.exec(`PRAGMA locking_mode = EXCLUSIVE; ALTER TABLE tasks DROP COLUMN require; ALTER TABLE tasks DROP COLUMN lost;
    ALTER TABLE workers ADD COLUMN has_token INTEGER NOT NULL DEFAULT 0`)
  database.close()
  const again = await testServer({ directory: server.directory })
  expect(await again.task(id)).toMatchObject({ state: 'queued', command: 'a', require: [] })
  await again.register('one')
  expect((await again.take('one')).body.job.jobId).toBe(id)
})

describe('a task that requires walls', () => {
  const weak = { backend: 'namespace', weak: ['cgroup'], holds: ['seccomp'] }
  const strong = { ...weak, weak: [], holds: ['seccomp', 'memory-limit'] }
  const registerWith = (server: Awaited<ReturnType<typeof testServer>>, workerId: string, isolation?: object) =>
    server.call('POST', '/api/workers/register', { workerId, hostname: 'host', isolation }, as(workerId))

  test('waits, and says for what, until an agent polls that holds them; others are served meanwhile', async () => {
    const server = await testServer()
    const body = { command: 'a', require: ['memory-limit'] }
    const { id } = (await server.call('POST', '/api/tasks', body)).body
    expect((await server.task(id)).waitsFor).toContain('memory-limit')
    await registerWith(server, 'weak', weak)
    await registerWith(server, 'silent')
    const polls = [server.take('weak', 30), server.take('silent')]
    expect((await polls[1]!).status).toBe(202)
    await registerWith(server, 'strong', strong)
    expect(await server.task(id)).not.toHaveProperty('waitsFor')
    expect((await server.take('strong')).body.job).toMatchObject({ jobId: id, require: ['memory-limit'] })
    const other = await server.submit('b')
    expect((await polls[0]!).body.job.jobId).toBe(other)
  })

  test('keeps no agent from a task behind it, nor a later poll from one that waits longer', async () => {
    const server = await testServer()
    await registerWith(server, 'weak', weak)
    await registerWith(server, 'strong', strong)
    const polls = [server.take('weak', 30), server.take('strong', 30)]
    const { id } = (await server.call('POST', '/api/tasks', { command: 'a', require: ['memory-limit'] })).body
    expect((await polls[1]!).body.job.jobId).toBe(id)
    // A poll without a task for it leaves the ones before it where they are.
    const later = server.take('strong', 30)
    const next = await server.submit('b')
    expect((await polls[0]!).body.job.jobId).toBe(next)
    const last = await server.submit('c')
    expect((await later).body.job.jobId).toBe(last)
  })

  test('can be sent with files, and one that requires what nobody knows is refused', async () => {
    const server = await testServer()
    const zip = { 'content-type': 'application/zip' }
    const ofZip = (require: string) => server.call('POST', `/api/tasks?command=ls&require=${require}`, ZIP, zip)
    const { id } = (await ofZip('seccomp,memory-limit')).body
    expect((await server.task(id)).require).toEqual(['seccomp', 'memory-limit'])
    expect((await ofZip('wings')).status).toBe(400)
    expect((await server.call('POST', '/api/tasks', { command: 'a', require: ['wings'] })).status).toBe(400)
  })
})

test('an agent that is not registered is told so', async () => {
  const server = await testServer()
  expect((await server.call('POST', '/api/workers/heartbeat', { workerId: 'one' }, as('one'))).status).toBe(404)
  expect((await server.take('one')).status).toBe(404)
  expect((await server.call('POST', '/api/workers/register', { workerId: 'one' }, as('one'))).status).toBe(400)
})

describe('a request is refused', () => {
  test.each([
    { what: 'that is not JSON', path: '/api/tasks', body: Buffer.from('{'), status: 400 },
    { what: 'without a command', path: '/api/tasks', body: { command: ' \n' }, status: 400 },
    { what: 'with files that are no ZIP', path: '/api/tasks?command=ls', body: Buffer.from('hello'), status: 400 },
    { what: 'with files that are empty', path: '/api/tasks?command=ls', body: Buffer.from(''), status: 400 },
    {
      what: 'of too many values, before it is parsed',
      path: '/api/tasks',
      body: Buffer.from(`[${'{},'.repeat(100_000)}1]`),
      status: 400,
      says: 'more than 100000 values',
    },
    { what: 'with a larger body than it may have', path: '/api/tasks', body: Buffer.alloc(1 << 21, 32), status: 413 },
    { what: 'for a path outside', path: '/api/tasks/..%2f..%2ffleet.db/result', status: 404 },
  ])('$what', async ({ path, body, status, says = '' }) => {
    const server = await testServer()
    const isZip = path.includes('?')
    const answer = await server.call('POST', path, body, isZip ? { 'content-type': 'application/zip' } : {})
    expect(answer.status).toBe(status)
    expect(JSON.stringify(answer.body)).toContain(says)
    expect((await server.call('GET', '/api/tasks')).body.tasks).toEqual([])
  })

  test('that a web page of another origin sends, and one for a name that only leads here', async () => {
    const server = await testServer()
    const body = { command: 'ls' }
    expect((await server.call('POST', '/api/tasks', body, { origin: 'http://evil.test' })).status).toBe(403)
    expect((await server.call('POST', '/api/tasks', body, { origin: server.url })).status).toBe(201)
    // fetch() sets the host itself.
    const status = await new Promise((resolve, reject) => {
      const headers = { host: 'evil.test' }
      request(`${server.url}/api/tasks`, { headers }, (response) => resolve(response.statusCode))
        .on('error', reject)
        .end()
    })
    expect(status).toBe(403)
  })

  test('that a web page sends without an origin to take a task, whatever its browser says of itself', async () => {
    const server = await testServer({ agents: ['one'] })
    await server.submit('a')
    const poll = '/api/jobs/get-job?workerId=one&wait=0'
    const statusOf = async (path: string, headers: Record<string, string>) =>
      (await server.call('GET', path, undefined, headers)).status
    for (const site of ['cross-site', 'same-site']) {
      expect(await statusOf(poll, { ...as('one'), 'sec-fetch-site': site })).toBe(403)
      expect(await statusOf('/api/tasks', { 'sec-fetch-site': site })).toBe(403)
    }
    expect(await statusOf('/api/tasks', { 'sec-fetch-site': 'same-origin' })).toBe(200)
    // An old browser: `<img src=...>`, the name guessed or not.
    for (const path of [poll, '/api/jobs/get-job?wait=0']) expect(await statusOf(path, {})).toBe(403)
    for (const path of ['/api/jobs/get-job?workerId=two', '/api/jobs/get-job'])
      expect(await statusOf(path, as('one'))).toBe(403)
    expect(await statusOf(poll, { 'x-worker-id': '%zz' })).toBe(400)
    expect((await server.call('GET', '/api/tasks')).body.tasks).toMatchObject([{ state: 'queued', attempts: 0 }])
    expect(await statusOf(poll, as('one'))).toBe(200)
  })

  test('by a second server in the same directory', async () => {
    const server = await testServer()
    await expect(startFleetServer({ port: 0, directory: server.directory })).rejects.toThrow(/another server/)
  })
})

describe('with a secret', () => {
  const secret = 'between us'
  const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` })

  test('files are for the agent of the task, by either header', async () => {
    const server = await testServer({ secret })
    for (const name of ['one', 'two']) await server.register(name, bearer(tokenFor(name, secret)))
    await server.submit('a')
    const { fileUrl } = (await server.take('one', 0, bearer(tokenFor('one', secret)))).body.job
    const statusWith = async (headers?: Record<string, string>, name = 'one'): Promise<number> =>
      (await server.call('GET', fileUrl, undefined, { ...as(name), ...headers })).status
    expect(await statusWith()).toBe(401)
    expect(await statusWith(bearer(tokenFor('two', secret)))).toBe(403)
    expect(await statusWith(bearer(tokenFor('two', secret)), 'two')).toBe(403)
    expect(await statusWith(bearer(tokenFor('one', 'another secret')))).toBe(401)
    expect(await statusWith(bearer(tokenFor('one', secret, { exp: 1 })))).toBe(401)
    expect(await statusWith(bearer(tokenFor('one', secret, { type: 'admin' })))).toBe(401)
    expect(await statusWith(bearer(tokenFor('one', secret, { alg: 'none' })))).toBe(401)
    expect(await statusWith(bearer(`${tokenFor('one', secret).replace(/\.[^.]*$/, '')}.`))).toBe(401)
    expect(await statusWith({ 'x-worker-token': tokenFor('one', secret) })).toBe(200)
    expect(await statusWith(bearer(tokenFor('one', secret)))).toBe(200)
  })

  test('every step needs the token of the name, also of a name that has never shown one', async () => {
    const server = await testServer({ secret })
    const id = await server.submit('a')
    const call = (method: string, path: string, body?: object) => server.call(method, path, body, as('one'))
    const stepsOf = async (headers: Record<string, string>) => [
      (await server.register('one', headers)).status,
      (await server.take('one', 0, headers)).status,
      (await server.report(id, 'one', {}, headers)).status,
    ]
    expect(await stepsOf({})).toEqual([401, 401, 401])
    expect(await stepsOf(bearer(tokenFor('two', secret)))).toEqual([403, 403, 403])
    const others = [
      call('POST', '/api/workers/heartbeat', { workerId: 'one' }),
      call('POST', '/api/jobs/stream-output', { jobId: id, data: 'a', type: 'stdout' }),
      call('GET', `/api/jobs/check-cancel?jobId=${id}`),
      call('PUT', '/api/jobs/submit-result', { jobId: id, workerId: 'one' }),
    ]
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([401, 401, 401, 401])
    expect(await server.task(id)).toMatchObject({ state: 'queued', attempts: 0 })
    expect(await stepsOf(bearer(tokenFor('one', secret)))).toEqual([200, 200, 200])
  })
})

/** A request whose body does not come; what it is answered. */
function withoutBody(url: string, { path, bytes, headers }: { path: string; bytes: number; headers: object }) {
  return new Promise<number | undefined>((resolve, reject) => {
    const sent = request(new URL(path, url), { method: 'POST', headers: { 'content-length': bytes, ...headers } })
    sent.on('response', ({ statusCode }) => {
      resolve(statusCode)
      sent.destroy()
    })
    sent.on('error', reject)
    sent.flushHeaders()
    onTestFinished(() => void sent.destroy())
  })
}

describe('a body is not read', () => {
  test.each([
    { what: 'without a token', headers: as('one'), status: 401 },
    {
      what: 'for a task that there is not',
      headers: { ...as('one'), 'x-worker-token': tokenFor('one', 's') },
      status: 404,
    },
  ])('$what', async ({ headers, status }) => {
    const server = await testServer({ secret: 's' })
    const path = '/api/jobs/submit-result?jobId=none'
    expect(await withoutBody(server.url, { path, bytes: 90 * 1024 * 1024, headers })).toBe(status)
  })

  test('where too much is being received, and agents are heard all the same', async () => {
    const server = await testServer({ mostReading: 1_500 })
    void withoutBody(server.url, { path: '/api/tasks', bytes: 1_000, headers: {} }).catch(() => undefined)
    const body = { command: 'a'.repeat(1_000) }
    await expect.poll(async () => (await server.call('POST', '/api/tasks', body)).status).toBe(503)
    expect((await server.register('one')).status).toBe(200)
  })
})

test('connections that say nothing, or show no token, keep no agent out that does', async () => {
  const secret = 's'
  const server = await testServer({ secret, places: { silent: 4, unproven: 2, proven: 2 } })
  const { port } = new URL(server.url)
  const silent = Array.from({ length: 8 }, () => connect(Number(port), '127.0.0.1').on('error', () => undefined))
  onTestFinished(() => {
    for (const socket of silent) socket.destroy()
  })
  const heard: string[] = []
  for (const socket of silent) socket.on('data', (bytes) => heard.push(bytes.toString()))
  // The oldest make room, without a word: one that is late with its request hears of it.
  await Promise.all(silent.slice(0, 4).map((socket) => socket.closed || once(socket, 'close')))
  expect(heard).toEqual([])
  const watchers = [await fetch(`${server.url}/api/events`), await fetch(`${server.url}/api/events`)]
  expect((await fetch(`${server.url}/api/events`)).status).toBe(503)
  const token = { authorization: `Bearer ${tokenFor('one', secret)}` }
  expect((await server.register('one', token)).status).toBe(200)
  for (const { body } of watchers) await body?.cancel()
})

test('many values are few in a text, whatever it quotes', async () => {
  const server = await testServer()
  const command = `echo ${'{,[\\"'.repeat(50_000)}`.slice(0, 60_000)
  await server.register('one')
  const id = await server.submit('a')
  await server.take('one')
  expect((await server.report(id, 'one', { stdout: command.repeat(4) })).status).toBe(200)
})

test.each([
  { what: 'torn', damage: (bytes: Buffer) => bytes.subarray(0, bytes.length / 2) },
  { what: 'none', damage: () => Buffer.from('this is no database'.repeat(100)) },
  { what: 'damaged in a page', damage: (bytes: Buffer) => bytes.fill(0x5a, 4096 + 8, 8192) },
])('a database that is $what is named at the start', async ({ damage }) => {
  const server = await testServer()
  await server.submit('a')
  await server.close()
  const file = join(server.directory, 'fleet.db')
  writeFileSync(file, damage(readFileSync(file)))
  const started = startFleetServer({ port: 0, directory: server.directory })
  await expect(started).rejects.toMatchObject({ code: 'SETUP_FAILED', message: expect.stringContaining(file) })
})

test('a flood of names makes the server forget none that has a task', async () => {
  const server = await testServer({ keptWorkers: 2 })
  for (const name of ['busy', 'idle']) await server.register(name)
  const id = await server.submit('a')
  await server.take('busy')
  server.clock.ms += 1
  for (const name of ['a', 'b', 'c']) await server.register(name)
  expect((await server.take('idle')).status).toBe(404)
  expect((await server.take('busy')).status).toBe(202)
  expect(await server.task(id)).toMatchObject({ state: 'running', worker: 'busy' })
})

test('what is over and old is forgotten with its files, what waits is not', async () => {
  const server = await testServer({ keptTasks: 2 })
  const zip = { 'content-type': 'application/zip' }
  const { id } = (await server.call('POST', '/api/tasks?command=ls', ZIP, zip)).body
  const waiting = await server.submit('a')
  for (const one of [id, await server.submit('b'), await server.submit('c')]) await server.cancel(one)
  server.sweep()
  expect(existsSync(join(server.directory, 'files', id))).toBe(false)
  expect((await server.call('GET', `/api/tasks/${id}`)).status).toBe(404)
  expect(await server.task(waiting)).toMatchObject({ state: 'queued' })
})

test('a watcher gets the whole picture first and then every change', async () => {
  const server = await testServer()
  const before = await server.submit('before')
  const { body } = await fetch(`${server.url}/api/events`)
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader()
  let seen = ''
  const until = async (text: string): Promise<void> => {
    while (!seen.includes(text)) seen += (await reader.read()).value ?? expect.unreachable(`no ${text}`)
  }
  await until(before)
  await server.register('one')
  await server.take('one')
  await server.stream(before, 'one', { data: '<b>line\n', type: 'stderr' })
  await until(JSON.stringify({ id: before, stream: 'stderr', from: 0, text: '<b>line\n' }))
  await server.report(before, 'one')
  await until('"state":"done"')
  await reader.cancel()
  expect(seen.startsWith('event: all\n')).toBe(true)
})

test('the page runs its own script and no other, and makes HTML of no text', async () => {
  const server = await testServer()
  const response = await fetch(server.url)
  const page = await response.text()
  const [, script = ''] = /<script>([\s\S]*?)<\/script>/.exec(page) ?? []
  const policy = response.headers.get('content-security-policy') ?? ''
  const hash = createHash('sha256').update(script).digest('base64')
  expect(policy.split('; ')).toEqual(expect.arrayContaining(["default-src 'none'", `script-src 'sha256-${hash}'`]))
  expect(policy).not.toContain('unsafe')
  expect(script).toContain('textContent')
  expect(script).not.toMatch(
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|eval\(/,
  )
})
