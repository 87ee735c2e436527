/** Hosts that are reached through the operator's own proxy: by name, after our own judgement, and with what proves the user kept outside. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runCli } from '../support/cli.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { allow, eachWay, PYTHON, resultOf, shell, type Way } from './ways.ts'
import { openWorld, startServer, WORLD, type World } from './world.ts'

let world: World
let log: string

const USER = 'ann:pass word'
const [OPEN_PORT, CLOSED_PORT] = [3129, 3130]
const PROXY = `http://127.0.0.1:${OPEN_PORT}`
const WITH_USER = `http://ann:pass%20word@127.0.0.1:${CLOSED_PORT}`
/** They are not there for the host: only the proxy knows them. */
const NAMES = { 'corp.test': WORLD, 'api.test': WORLD, 'loop.test': '127.0.0.1', 'private.test': '10.1.2.3' }
const ANSWERS = {
  'large.test': 'large',
  'slow.test': 'slow',
  'moved.test': 'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n',
  'odd.test': 'SSH-2.0-x\r\n\r\n',
  'folded.test': 'HTTP/1.1 200\n\n',
}
const LISTED = [...Object.keys(NAMES), ...Object.keys(ANSWERS), 'direct.test']

interface More {
  readonly env?: Readonly<Record<string, string>>
  readonly way?: Way
  readonly hosts?: readonly string[]
}

const run = (command: readonly string[], { env = { https_proxy: PROXY }, way, hosts = LISTED }: More = {}) =>
  resultOf({ through: world.through, words: allow(...hosts), command, env, ...(way && { way }) })

const say = (host: string, more: More = {}): Promise<Result> =>
  run(['curl', '-sS', '--max-time', '30', `http://${host}/say`], more)

const heads = async (): Promise<readonly string[]> =>
  (await readFile(log, 'utf8')).split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as string]))

describeWith('root', "the operator's proxy", () => {
  beforeAll(async () => {
    world = await openWorld(
      { 'api.test': [[WORLD]], 'direct.test': [[WORLD]], 'private.test': [['10.1.2.3']], 'loop.test': [['127.0.0.1']] },
      { hostServes: true },
    )
    const { path, remove } = await newDirectory()
    log = join(path, 'log')
    await writeFile(log, '')
    const program = join(import.meta.dirname, 'programs/connect-proxy.mjs')
    const proxy = (port: number, of: object) =>
      startServer([...world.through, process.execPath, program, `${port}`, log, JSON.stringify(of)])
    const started = await Promise.all([
      proxy(OPEN_PORT, { names: NAMES, answers: ANSWERS }),
      proxy(CLOSED_PORT, { names: NAMES, user: USER }),
    ])
    return async () => {
      for (const one of started) one.kill('SIGKILL')
      await remove()
    }
  })
  afterAll(() => world?.close())

  eachWay('a listed name is reached through it, whichever program asks, and its port is judged first', async (way) => {
    const programs = shell(`curl -sS http://corp.test/say
node -e 'fetch("http://corp.test/say").then((r) => r.text()).then((t) => process.stdout.write(t))'
${PYTHON} -c 'import urllib.request as u; print(u.urlopen("http://corp.test/say").read().decode(), end="")'
git ls-remote http://corp.test/x.git 2>&1 | grep -o 'not found'
curl -sS http://other.test/say; echo $?; curl -sS http://corp.test:8080/say; echo $?`)
    const before = (await heads()).length
    const { stdout, network } = await run(programs, { way })
    expect(stdout).toMatch(/^(host=corp\.test from=(::ffff:)?203\.0\.114\.1\n){3}not found\n6\n7\n$/)
    const asked = (await heads()).slice(before)
    expect([...new Set(asked)]).toEqual(['CONNECT corp.test:80 HTTP/1.1\r\nHost: corp.test:80\r\n\r\n'])
    expect(network).toContainEqual(expect.objectContaining({ host: 'corp.test', port: 80, verdict: 'allowed' }))
    // The control: without the variable the name is unknown.
    expect((await say('corp.test', { way, env: {} })).stdout).toBe('')
  })

  eachWay('what proves the user is nowhere inside, nor in plan, result or process', async (way) => {
    const find = `tr '\\0' '\\n' </proc/self/environ; cat /proc/1/environ /proc/1/cmdline /proc/*/environ 2>/dev/null; curl -sS http://corp.test/say`
    const env = { https_proxy: WITH_USER }
    const result = await run(shell(find), { env, way })
    expect(result.stdout).toContain('host=corp.test')
    const text = JSON.stringify(result)
    const shown = async (...words: readonly string[]) => {
      const call = { through: world.through, env, as: way.as }
      return (await runCli([...words, ...allow('corp.test'), '--', 'true'], call)).stdout.toString()
    }
    const [plan, argv] = [await shown('--plan=json'), await shown('--plan', '--argv')]
    for (const secret of ['pass word', 'pass%20word', Buffer.from(USER).toString('base64')])
      for (const one of [text, plan, argv]) expect(one).not.toContain(secret)
    expect(plan).toContain(`"port": ${CLOSED_PORT}`)
    // The control: without it the proxy refuses.
    const refused = await say('corp.test', { env: { https_proxy: `http://127.0.0.1:${CLOSED_PORT}` }, way })
    expect([refused.stdout, refused.network?.map(({ verdict }) => verdict)]).toEqual(['', ['allowed', 'unreachable']])
  })

  test('NO_PROXY names what is reached directly, and * all of it', async () => {
    const before = (await heads()).length
    for (const direct of ['direct.test', '.test', 'x,  test', 'direct.test:80', '*'])
      expect((await say('direct.test', { env: { HTTPS_PROXY: PROXY, NO_PROXY: direct } })).stdout).toContain(
        'host=direct',
      )
    expect((await heads()).length).toBe(before)
    const { stdout } = await say('api.test', {
      env: { HTTPS_PROXY: PROXY, NO_PROXY: 'pi.test,api.test:81,10.0.0.0/8' },
    })
    expect([stdout.includes('host=api.test'), (await heads()).length]).toEqual([true, before + 1])
  })

  test('a name that this host knows to be private stays closed, though the proxy would lead there, until it is listed', async () => {
    const before = (await heads()).length
    for (const host of ['loop.test', 'private.test']) expect((await say(host)).stdout).toBe('')
    // By the proxy inside no name server is asked before.
    const { stdout } = await say('private.test', { env: { https_proxy: PROXY, LLM_DO_EXEC_PROXY: 'on' } })
    expect(stdout).not.toContain('host=')
    expect((await heads()).length).toBe(before)
    expect((await say('private.test', { hosts: ['private.test', '10.0.0.0/8'] })).stdout).toContain('host=private.test')
    expect((await heads()).length).toBe(before + 1)
  })

  test.each(Object.keys(ANSWERS))('an answer that is no tunnel leads nowhere: %s', async (host) => {
    const { stdout, exitCode, network } = await say(host)
    expect([stdout, exitCode === 0]).toEqual(['', false])
    expect(network?.map(({ verdict }) => verdict)).toEqual(['allowed', 'unreachable'])
  })

  test.each([
    ['a control character', 'http://a%0d%0aX: y@127.0.0.1:3129'],
    ['another scheme', 'socks5://127.0.0.1:3129'],
    ['a line end', `${PROXY}\nX`],
    ['a port that is none', 'http://127.0.0.1:70000'],
    ['no end', `http://${'x'.repeat(2000)}`],
  ])('a value that is not understood is refused without being repeated: %s', async (_title, https_proxy) => {
    const { status, stderr } = await runCli([...allow('api.test'), '--', 'true'], {
      through: world.through,
      env: { https_proxy },
    })
    expect([status, stderr.toString()]).toEqual([125, expect.stringContaining('https_proxy: expected')])
    expect(stderr.toString()).not.toContain(https_proxy.slice(0, 30))
    // Without a network by name the variable does not matter.
    expect((await runCli(['--', 'true'], { through: world.through, env: { https_proxy } })).status).toBe(0)
  })

  test('a plan that was kept before the variable was set does not serve after it', async () => {
    const cwd = await temporaryDirectory()
    const words = allow('corp.test', 'direct.test')
    const command = ['curl', '-sS', 'http://direct.test/say', 'http://corp.test/say']
    const call = (env: Readonly<Record<string, string>>) =>
      resultOf({ through: world.through, words, command, cwd, env })
    for (const env of [{}, {}]) expect((await call(env)).stdout).not.toContain('host=corp.test')
    expect((await call({ https_proxy: PROXY, no_proxy: 'direct.test' })).stdout).toContain('host=corp.test')
    expect((await call({})).stdout).not.toContain('host=corp.test')
  })
})
