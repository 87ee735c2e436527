/** Agents as a server sees them, with real sandboxes; the server is one that was written from the protocol's table. */
import { createHmac } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { TIED } from '../support/processes.ts'
import { archiveOf, namesIn } from './archives.ts'
import { type Job, ProtocolServer } from './protocol-server.ts'

const SECRET = 'a-secret-that-no-task-may-see'

interface AgentOptions {
  readonly words?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Process of an agent before it. */
  readonly home?: string
}

/** An agent with its own state, gone with the test. */
async function startAgent(server: ProtocolServer, { words = [], env = {}, home }: AgentOptions = {}) {
  const cwd = home ?? (await temporaryDirectory())
  const child = startCli(['agent', '--poll', '50ms', '--slots', '2', ...words], {
    program: 'llm-do',
    through: TIED,
    cwd,
    env: { XDG_STATE_HOME: cwd, SERVER_URL: server.url, WORKER_ID: 'w1', WORKER_TOKEN_SECRET: SECRET, ...env },
  })
  const said: string[] = []
  child.all.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  const tasks = (): readonly string[] => {
    const fleet = join(cwd, 'llm-do/fleet')
    return existsSync(fleet) ? readdirSync(fleet).flatMap((name) => readdirSync(join(fleet, name, 'tasks'))) : []
  }
  return { child, home: cwd, tasks, said: () => said.join('') }
}

async function reported(server: ProtocolServer, jobId: string) {
  await expect.poll(() => server.reports(jobId).length).toBeGreaterThan(0)
  const [{ method, body }] = server.reports(jobId) as [(typeof server.requests)[number]]
  return { method, body }
}

/** Commands wait at it until it is opened. */
async function newGate() {
  const directory = await temporaryDirectory({ mode: 0o755 })
  return {
    wait: 'until test -e /gate/open; do sleep 0.1; done',
    words: ['--ro', `${directory}:/gate`],
    open: () => writeFileSync(join(directory, 'open'), ''),
  }
}

const running = async (server: ProtocolServer, jobId: string): Promise<void> =>
  await expect.poll(() => server.streamed(jobId, 'stdout')).toContain('begun')

describeWith('userns', 'an agent', () => {
  test('runs each line over the files of the job, streams what they print once, and reports with what they changed', async () => {
    const server = await ProtocolServer.start()
    server.files.set('/api/files/download/7', archiveOf([{ name: 'in/a.txt', content: 'from the server' }]))
    const job = {
      jobId: 'j1',
      command:
        'cat in/a.txt; false\necho two >&2; exit 5\necho made > in/b.txt; env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; exit 3\n',
      fileUrl: '/api/files/download/7',
      filename: '../../../../tmp/llm-do-traversal',
    }
    server.jobs.push(job)
    const agent = await startAgent(server)
    const { method, body } = await reported(server, 'j1')
    expect({ method, ...body }).toMatchObject({
      method: 'POST',
      workerId: 'w1',
      exitCode: 3,
      stderr: 'two\n',
      backend: 'namespace',
    })
    expect(body['planHash']).toMatch(/^[0-9a-f]+$/)
    expect(body['stdout']).toContain('from the server')
    expect(body['stdout']).toContain('PATH=')
    expect(server.streamed('j1', 'stdout')).toBe(body['stdout'])
    expect(server.streamed('j1', 'stderr')).toBe('two\n')
    expect(await namesIn(Buffer.from(String(body['resultZipBase64']), 'base64'))).toEqual(['in/b.txt'])
    expect(body['resultZipName']).toBe('j1-result.zip')
    expect(existsSync('/tmp/llm-do-traversal')).toBe(false)

    const [download] = server.asked('/api/files/download/7')
    const token = String(download?.headers['x-worker-token'])
    const [head, claims, signature] = token.split('.')
    expect(download?.headers.authorization).toBe(`Bearer ${token}`)
    expect(signature).toBe(createHmac('sha256', SECRET).update(`${head}.${claims}`).digest('base64url'))
    const said = JSON.parse(Buffer.from(String(claims), 'base64url').toString())
    expect(said).toMatchObject({ workerId: 'w1', type: 'worker' })
    expect(said.exp - said.iat).toBe(86_400)

    const [poll] = server.asked('/api/jobs/get-job')
    expect(Object.fromEntries(poll?.query ?? [])).toEqual({ workerId: 'w1', wait: '25' })
    const argv = readFileSync(`/proc/${agent.child.pid}/cmdline`, 'utf8')
    agent.child.kill('SIGTERM')
    const { all, exitCode } = await agent.child
    for (const text of [JSON.stringify(body), argv, all])
      for (const secret of [SECRET, token]) expect(text).not.toContain(secret)
    expect(exitCode).toBe(0)
    expect(agent.tasks()).toEqual([])
    expect(server.asked('/api/workers/heartbeat').at(-1)?.body).toMatchObject({ workerId: 'w1', status: 'OFFLINE' })
    const [registration] = server.asked('/api/workers/register')
    expect(registration?.body).toMatchObject({
      workerId: 'w1',
      status: 'IDLE',
      slots: 2,
      isolation: {
        backend: 'namespace',
        holds: expect.arrayContaining(['empty-root', 'pid-namespace']),
        heldBy: { 'empty-root': 'kernel', deadline: 'timer', 'memory-limit': expect.any(String) },
        planHash: expect.stringMatching(/^[0-9a-f]{16}$/),
        policyHash: expect.stringMatching(/^[0-9a-f]{16}$/),
      },
    })
  })

  test('ends a job that its server cancels, and reports what it was until then', async () => {
    const server = await ProtocolServer.start()
    server.isTokenAsked = true
    server.files.set('/uploads/1.zip', archiveOf([{ name: 'a.txt', content: 'a' }]))
    const command = 'cat a.txt; echo begun; sleep 60\necho never'
    server.jobs.push({ jobId: 'j1', command, fileUrl: '/uploads/1.zip' })
    await startAgent(server, { words: ['--timeout', '60s'] })
    await running(server, 'j1')
    server.cancelled.add('j1')
    const cancelled = { exitCode: 130, reason: 'cancelled', stdout: 'abegun\n' }
    expect((await reported(server, 'j1')).body).toMatchObject(cancelled)
  })

  test('tells the truth about each end, and about each job that cannot be run', async () => {
    const [server, other] = [await ProtocolServer.start(), await ProtocolServer.start()]
    server.next.push({ path: '/redirected', answer: [302, {}, { Location: `${other.url}/f` }] })
    other.files.set('/f', archiveOf([{ name: 'a' }]))
    server.files.set('/up', archiveOf([{ name: '../up', content: 'x' }]))
    const sleep = { command: 'sleep 60' }
    const failed = (said: RegExp, more: object) => ({
      method: 'PUT',
      errorMessage: expect.stringMatching(said),
      ...more,
    })
    const ended = (exitCode: number, reason: string) => ({ method: 'POST', exitCode, reason })
    const cases: Readonly<Record<string, readonly [Omit<Job, 'jobId'>, object]>> = {
      'a deadline that only shortens': [{ ...sleep, timeoutMs: 300 }, ended(124, 'timeout')],
      "the operator's deadline, which a task cannot lengthen": [
        { ...sleep, timeoutMs: 600_000 },
        ended(124, 'timeout'),
      ],
      'a signal': [{ command: 'kill -TERM $$' }, ended(143, 'signal')],
      'a program that is not there': [{ command: 'no-such-program' }, ended(127, 'exit')],
      memory: [{ command: 'tail /dev/zero' }, { ...ended(137, 'memory'), stderr: expect.stringContaining('memory') }],
      'files that are not there': [{ command: 'true', fileUrl: '/nowhere' }, failed(/404/, { elsewhere: true })],
      'files of another host': [
        { command: 'true', fileUrl: 'http://127.0.0.2:9/x' },
        failed(/not this agent/, { elsewhere: true }),
      ],
      'files to which its server redirects': [
        { command: 'true', fileUrl: '/redirected' },
        failed(/./, { cause: 'files' }),
      ],
      'files outside of the directory of the job': [
        { command: 'true', fileUrl: '/up' },
        failed(/./, { elsewhere: false }),
      ],
      'no command': [{ command: '\n \n' }, failed(/command/, { elsewhere: false })],
      'an unknown need': [{ command: 'true', require: ['wings'] }, failed(/require/, { elsewhere: false })],
    }
    for (const [jobId, [job]] of Object.entries(cases)) server.jobs.push({ jobId, ...job } as Job)
    const agent = await startAgent(server, { env: { DOCKER_TIMEOUT: '5000', DOCKER_MEMORY_LIMIT: '32m' } })
    for (const [jobId, [, end]] of Object.entries(cases)) {
      const { method, body } = await reported(server, jobId)
      expect({ method, ...body }, jobId).toMatchObject({ workerId: 'w1', ...end })
    }
    expect(other.requests).toEqual([])
    expect(agent.tasks()).toEqual([])
  })

  test('runs a job once, however often it is given, sends its report again, and is the only one of its name', async () => {
    const server = await ProtocolServer.start()
    const gate = await newGate()
    const job = { jobId: 'j1', command: `echo begun; ${gate.wait}` }
    server.jobs.push(job, job)
    const { home } = await startAgent(server, { words: gate.words })
    await running(server, 'j1')
    await expect.poll(() => server.jobs).toHaveLength(0)
    // It asks for the next one when it has heard of that one.
    const asked = () => server.asked('/api/jobs/get-job').length
    const heard = asked()
    await expect.poll(asked).toBeGreaterThan(heard)
    gate.open()
    const first = await reported(server, 'j1')
    server.jobs.push(job)
    await expect.poll(() => server.reports('j1').length).toBe(2)
    expect(server.reports('j1')[1]?.body).toEqual(first.body)
    expect(server.streamed('j1', 'stdout')).toBe('begun\n')
    const second = await startAgent(server, { home })
    const { exitCode, all } = await second.child
    expect([exitCode, all]).toEqual([
      125,
      expect.stringMatching(/runs here already: \S+agent.lock is locked by process \d+/),
    ])
  })

  test('goes on after a server that fails, forgets it, or takes a job away', async () => {
    const server = await ProtocolServer.start()
    const fails = [503, { success: false }] as const
    for (const path of [
      '/api/workers/register',
      '/api/jobs/get-job',
      '/api/jobs/stream-output',
      '/api/jobs/submit-result',
    ])
      server.next.push({ path, answer: fails })
    server.next.push({ path: '/api/workers/heartbeat', answer: [404, { success: false }] })
    server.next.push({ path: '/f', answer: fails })
    server.files.set('/f', archiveOf([{ name: 'a', content: 'one\n' }]))
    server.jobs.push({ jobId: 'j1', command: 'cat a', fileUrl: '/f' })
    await startAgent(server)
    await expect.poll(() => server.reports('j1').length).toBe(2)
    expect(server.reports('j1').map(({ body }) => body['stdout'])).toEqual(['one\n', 'one\n'])
    // One failed, one was for the start, one came after the heartbeat.
    expect(server.asked('/api/workers/register')).toHaveLength(3)
    server.next.push({ path: '/api/jobs/submit-result', answer: 'lost' })
    server.next.push({ path: '/api/jobs/submit-result', answer: [403, { success: false }] })
    server.jobs.push({ jobId: 'j2', command: 'echo two' })
    await expect.poll(() => server.reports('j2').length).toBe(2)
    expect(server.reports('j2')[1]?.body).toEqual(server.reports('j2')[0]?.body)
    server.jobs.push({ jobId: 'j3', command: 'echo three' })
    await reported(server, 'j3')
    expect(server.reports('j2')).toHaveLength(2)
    // A server that takes no files of this size has the report without them.
    server.next.push({ path: '/api/jobs/submit-result', answer: [413, { success: false }] })
    server.jobs.push({ jobId: 'j4', command: 'echo made > file' })
    await expect.poll(() => server.reports('j4').length).toBe(2)
    const [withFiles, without] = server.reports('j4').map(({ body }) => body)
    expect(withFiles).toHaveProperty('resultZipBase64')
    expect(without).not.toHaveProperty('resultZipBase64')
    expect(without?.['stderr']).toContain('takes no files of this size')
  })

  test('keeps its secret and its token out of command lines, other environments, messages and files', async () => {
    const server = await ProtocolServer.start()
    const refused = [401, { success: false, message: 'the token has expired' }] as const
    for (const path of ['/api/workers/register', '/api/jobs/get-job', '/f']) server.next.push({ path, answer: refused })
    server.jobs.push({ jobId: 'j1', command: 'true', fileUrl: '/f' }, { jobId: 'j2', command: 'echo begun; sleep 60' })
    const { child, home, said } = await startAgent(server, { words: ['--timeout', '60s'] })
    await running(server, 'j2')
    expect(await reported(server, 'j1')).toMatchObject({ method: 'PUT', body: { errorMessage: /401/ } })
    const token = String(server.asked('/f')[0]?.headers['x-worker-token'])
    expect(token.length).toBeGreaterThan(100)
    const isTold = (text: string): boolean => text.includes(SECRET) || text.includes(token)
    const read = (file: string): string => {
      try {
        return readFileSync(file, 'latin1')
      } catch {
        return '' // It has ended, or is another user's.
      }
    }
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    expect(pids.filter((pid) => isTold(read(`/proc/${pid}/cmdline`)))).toEqual([])
    // Not even the agent's own process has it there: its client hands the caller's environment over apart. The control: it can be read.
    expect(read(`/proc/${child.pid}/environ`)).toContain('LLM_DO_CALL=')
    expect(pids.filter((pid) => isTold(read(`/proc/${pid}/environ`)))).toEqual([])
    const files = readdirSync(home, { recursive: true, encoding: 'utf8' }).map((name) => join(home, name))
    const regular = files.filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true)
    const journal = regular.filter((file) => /\.(taken|report|done)$/.test(file))
    expect(journal.map((file) => statSync(file).mode & 0o777)).toEqual([0o600, 0o600])
    expect(regular.filter((file) => isTold(read(file)))).toEqual([])
    child.kill('SIGTERM')
    child.kill('SIGINT')
    await child
    expect(said()).toContain('401')
    for (const text of [said(), JSON.stringify(server.requests.map(({ body, query }) => [body, `${query}`]))])
      expect(isTold(text)).toBe(false)
  })

  test('finishes what runs when it is told to stop, and takes nothing more', async () => {
    const server = await ProtocolServer.start()
    const gate = await newGate()
    server.jobs.push({ jobId: 'j1', command: `echo begun; ${gate.wait}; echo ended` })
    const { child, said } = await startAgent(server, { words: ['--slots', '1', ...gate.words] })
    await running(server, 'j1')
    server.jobs.push({ jobId: 'j2', command: 'true' })
    child.kill('SIGTERM')
    await expect.poll(said).toContain('no more tasks')
    gate.open()
    const { exitCode } = await child
    expect(exitCode).toBe(0)
    expect(server.reports('j1')[0]?.body).toMatchObject({ exitCode: 0, stdout: 'begun\nended\n' })
    expect(server.jobs).toHaveLength(1)
    expect(server.asked('/api/workers/heartbeat').at(-1)?.body['status']).toBe('OFFLINE')
  })

  test('ends what runs at the second signal, and says so', async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const server = await ProtocolServer.start()
    server.jobs.push({ jobId: 'j1', command: `echo begun ${mark}; sleep 60` })
    const { child, said } = await startAgent(server, { words: ['--timeout', '60s'] })
    await running(server, 'j1')
    child.kill('SIGTERM')
    await expect.poll(said).toContain('no more tasks')
    child.kill('SIGTERM')
    expect((await child).exitCode).toBe(1)
    expect(server.reports('j1')[0]).toMatchObject({ method: 'PUT', body: { cause: 'shutdown', elsewhere: true } })
    await expectNothingLeft({ before, mark })
  })

  test('leaves nothing when it is killed, and reports at its next start what died with it', async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const server = await ProtocolServer.start()
    server.jobs.push({ jobId: 'j1', command: `echo begun ${mark}; sleep 60` })
    const killed = await startAgent(server, { words: ['--timeout', '60s'] })
    await running(server, 'j1')
    killed.child.kill('SIGKILL')
    await killed.child
    const next = await startAgent(server, { home: killed.home })
    expect(await reported(server, 'j1')).toMatchObject({ method: 'PUT', body: { cause: 'crash', elsewhere: true } })
    expect(next.tasks()).toEqual([])
    // Its server gives it out again, maybe to the same agent: it is run, not refused once more.
    server.jobs.push({ jobId: 'j1', command: 'echo again' })
    await expect.poll(() => server.reports('j1').length).toBe(2)
    expect(server.reports('j1')[1]).toMatchObject({ method: 'POST', body: { stdout: 'again\n' } })
    next.child.kill('SIGTERM')
    await next.child
    await expectNothingLeft({ before, mark })
  })

  test('does not register where its policy cannot be held', async () => {
    const server = await ProtocolServer.start()
    const { child } = await startAgent(server, { words: ['--backend', 'process'] })
    const { exitCode, all } = await child
    expect(exitCode).toBe(125)
    expect(all).toContain('LLM_DO_ALLOW_UNSANDBOXED')
    expect(server.requests).toEqual([])
  })
})
