/** git as people have it, under the profile `agent`: what works by itself, and which flag the rest names. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { programFor, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'

const IDENTITY = '[user]\n\tname = Ann\n\temail = ann@example.org\n[protocol "file"]\n\tallow = always\n'

/** A repository `main` with one commit and a directory `sub`, of a person with an identity. */
async function site() {
  const [base, home] = [await temporaryDirectory(), await temporaryDirectory()]
  const env = { HOME: home, PATH: process.env.PATH ?? '', GIT_CONFIG_NOSYSTEM: '1' }
  await writeFile(join(home, '.gitconfig'), IDENTITY)
  const git = async (cwd: string, ...words: readonly string[]) =>
    (await execa('git', ['-C', join(base, cwd), ...words], { env, extendEnv: false })).stdout
  const script = 'git init -q main && cd main && mkdir sub && echo one >sub/poem && git add . && git commit -qm one'
  await execa('sh', ['-ec', script], { cwd: base, env })
  const run = async (cwd: string, ...argv: readonly string[]) => {
    const words = ['--profile', 'agent', '--home', 'none', ...argv]
    const { status, stdout, stderr } = await runCli(words, { cwd: join(base, cwd), env: { HOME: home } })
    return { status, out: stdout.toString(), err: stderr.toString() }
  }
  return { base, env, git, run }
}

const commit = ['--', 'sh', '-c', 'echo two >>poem && git commit -qam two']

describeWith(['userns', 'git'], 'git under the profile agent', () => {
  test('commits all that is changed, as the person', async () => {
    const { git, run } = await site()
    expect(await run('main', '--', 'sh', '-c', 'echo two >>sub/poem; git commit -qam two')).toMatchObject({ err: '' })
    expect(await git('main', 'log', '-1', '--format=%an <%ae> %s')).toBe('Ann <ann@example.org> two')
  })

  test('below the root of a repository, and in a submodule, names the flag that shows it, which works', async () => {
    const { base, git, run } = await site()
    await execa('git', ['clone', '-q', '--bare', join(base, 'main'), join(base, 'lib')])
    await git('main', 'submodule', 'add', '-q', join(base, 'lib'), 'mod')
    await git('main', 'commit', '-qm', 'mod')
    const flag = ['--rw', join(base, 'main')]
    for (const [cwd, words] of [
      ['main/sub', commit],
      ['main/mod', ['--', 'sh', '-c', 'echo two >>sub/poem && git commit -qam two']],
    ] as const) {
      const refused = await run(cwd, ...words)
      expect(refused.err).toContain(`git finds no repository: ${flag[1]} is not shown; to show it: ${flag.join(' ')}`)
      expect(refused.status).not.toBe(0)
      expect(await run(cwd, ...flag, ...words)).toMatchObject({ status: 0, err: '' })
      expect(await git(cwd, 'log', '-1', '--format=%s')).toBe('two')
    }
  })

  test('a linked worktree reads by itself, and names the flag for a commit', async () => {
    const { base, git, run } = await site()
    await git('main', 'worktree', 'add', '-q', join(base, 'wt'))
    expect(await run('wt', '--', 'git', 'log', '--format=%s')).toMatchObject({ out: 'one\n', err: '' })
    const words = ['--', 'sh', '-c', 'echo two >>sub/poem && git commit -qam two']
    const flags = ['--rw', join(base, 'main/.git')]
    const refused = await runCli(['--profile', 'agent', '--home', 'none', '--json', ...words], {
      cwd: join(base, 'wt'),
    })
    expect(JSON.parse(refused.stdout.toString()).denials).toMatchObject([{ fix: flags.join(' ') }])
    expect(await run('wt', ...flags, ...words)).toMatchObject({ status: 0 })
  })

  test('hooks of a partial commit see what is committed: inside, and as a run inside a hook of the host', async () => {
    const { base, git, run, env } = await site()
    const hook = join(base, 'main/.git/hooks/pre-commit')
    const change = 'echo a >a && echo b >b && git add a b'
    await writeFile(hook, '#!/bin/sh\ngit diff --cached --name-only >seen\n', { mode: 0o755 })
    const inside = await run('main', '--', 'sh', '-c', `${change} && git commit -qm a -- a && cat seen`)
    expect(inside).toMatchObject({ out: 'a\n', err: '' })
    const exec = `${programFor(currentUser())} --profile agent --home none -- git diff --cached --name-only >seen`
    await writeFile(hook, `#!/bin/sh\n${exec}\n`, { mode: 0o755 })
    await execa('sh', ['-ec', 'echo c >c && git add c && git commit -qm c -- c'], { cwd: join(base, 'main'), env })
    expect(await readFile(join(base, 'main/seen'), 'utf8')).toBe('c\n')
    expect(await git('main', 'status', '--short')).toMatch(/^A {2}b/)
  })

  test('pushes over HTTP to the one host that is allowed', async () => {
    const { base, git, run } = await site()
    await execa('git', ['clone', '-q', '--bare', join(base, 'main'), join(base, 'served')])
    await execa('git', ['-C', join(base, 'served'), 'config', 'http.receivepack', 'true'])
    const port = await serveGit(base)
    await git('main', 'remote', 'add', 'origin', `http://git.test:${port}/served`)
    const push = ['--', 'git', 'push', '-q', 'origin', 'HEAD:refs/heads/pushed']
    const named = ['--add-host', 'git.test=127.0.0.1']
    const refused = await run('main', ...named, ...push)
    expect(refused).toMatchObject({ status: 128, err: expect.stringContaining('denied: resolve git.test') })
    expect(await run('main', ...named, '--allow-host', `127.0.0.1:${port}`, ...push)).toMatchObject({ status: 0 })
    expect(await git('served', 'log', '-1', '--format=%s', 'pushed')).toBe('one')
  })
})

/** The repositories below a directory, by git's own program. @returns the port on the loopback of this host */
async function serveGit(root: string): Promise<number> {
  const server: Server = createServer((request, response) => {
    const [path = '', query = ''] = (request.url ?? '').split('?')
    const env = {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'],
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'],
    }
    answer(request, response, spawn('git', ['http-backend'], { env, stdio: ['pipe', 'pipe', 'inherit'] }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** What a program for CGI prints (RFC 3875), as an answer. */
function answer(request: IncomingMessage, response: ServerResponse, { stdin, stdout }: ChildProcess): void {
  const parts: Buffer[] = []
  if (stdin !== null) request.pipe(stdin)
  stdout?.on('data', (part: Buffer) => parts.push(part))
  stdout?.on('end', () => {
    const all = Buffer.concat(parts)
    const end = all.indexOf('\r\n\r\n')
    for (const line of all.toString('latin1', 0, end).split('\r\n')) {
      const [, name = '', value = ''] = /^([^:]+): (.*)$/.exec(line) ?? []
      if (name === 'Status') response.statusCode = Number.parseInt(value, 10)
      else response.setHeader(name, value)
    }
    response.end(all.subarray(end + 4))
  })
}
