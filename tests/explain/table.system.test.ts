/** A watched run names connections and never credentials. Its refusals of files are rows of tests/hints/rows.ts. */
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { ENGINES } from '../escape/chain.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { explained, makeSite, run, sh, shown } from './explain.ts'

const python = (script: string): readonly string[] => ['python3', '-c', script]

/** An address of this host that is not its loopback. */
const ownAddress = (): string | undefined =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address

describeWith(['userns', 'python'], 'a connection', () => {
  test('by its address is allowed by its flag', async ({ skip }) => {
    const address = ownAddress()
    if (address === undefined) return skip('this host has no address but its loopback')
    const server = createServer((socket) => socket.end())
    await new Promise<void>((resolve) => server.listen(0, address, resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as { readonly port: number }
    const { cwd } = await makeSite()
    const command = python(`import socket; socket.create_connection(("${address}", ${port}), 5)`)
    const refused = await explained(command, { cwd })
    const flag = `--allow-host ${address}:${port}`
    expect(refused.denials.map(shown)).toEqual([`network connect ${address}:${port} -> ${flag} network.allow`])
    const { ok, stderr } = await explained(command, { cwd, options: flag.split(' ') })
    expect({ ok, stderr }).toEqual({ ok: true, stderr: '' })
  })

  test('to a server of the host by a hidden socket is allowed by its flag', async () => {
    const { cwd, hidden } = await makeSite()
    const path = join(hidden, 'server')
    const server = createServer((socket) => socket.end())
    await new Promise<void>((resolve) => server.listen({ path, readableAll: true, writableAll: true }, resolve))
    onTestFinished(() => void server.close())
    const command = python(`import socket; socket.socket(socket.AF_UNIX).connect("${path}")`)
    const { denials } = await explained(command, { cwd })
    expect(denials.map(shown)).toEqual([`mount connect ${path} -> --socket ${path} zones`])
    expect((await explained(command, { cwd, options: ['--socket', path] })).ok).toBe(true)
  })
})

describeWith(['userns'], 'what is told', () => {
  test('the last write or connection comes first, and reads after them', async () => {
    const { cwd, hidden } = await makeSite()
    const { denials } = await explained(sh(`mkdir a; cat ${hidden}/file; mkdir b b; exec false`), { cwd })
    expect(denials.map(({ target, count }) => `${target} ${count}`)).toEqual([
      '/workspace/b 2',
      '/workspace/a 1',
      `${hidden}/file 1`,
    ])
  })

  test('places of credentials are never told of', async () => {
    const { cwd, hidden } = await makeSite()
    const home = join(hidden, 'home')
    await execa('mkdir', ['-p', `${home}/.ssh`, `${home}/data`])
    await execa('touch', [`${home}/.ssh/id_rsa`, `${home}/data/open`])
    const script = `cat ${home}/.ssh/id_rsa ${home}/data/open /etc/shadow; false`
    const { denials } = await explained(sh(script), { cwd, env: { HOME: home } })
    expect(denials.map(shown)).toEqual([`mount read ${home}/data/open -> --ro ${home}/data/open zones`])
  })

  test('without --explain nothing is watched', async () => {
    const { cwd, hidden } = await makeSite()
    const { denials } = await run(sh(`exec 2>&-; mkdir a; cat ${hidden}/file; false`), { cwd })
    expect(denials).toEqual([])
  })
})

for (const engine of ENGINES)
  describeWith([engine, 'userns'], `with ${engine}`, () => {
    test('a command has neither the listener nor another descriptor', async () => {
      const { cwd } = await makeSite()
      const { stdout } = await explained(sh('for one in /proc/[0-9]*/fd/*; do readlink $one; done'), {
        cwd,
        options: ['--engine', engine],
      })
      expect(stdout).not.toContain('seccomp')
      expect(stdout).toContain('pipe:')
    })
  })

testWith(['userns'], 'other backends refuse it by its name', async () => {
  const { cwd } = await makeSite()
  const result = await explained(['true'], { cwd, options: ['--backend', 'wasm'] })
  expect(result.error).toMatchObject({ code: 'NO_BACKEND', message: expect.stringContaining('explain') })
})
