/** The built command on docker: the refusals of the backend with their exit status, and the images of the runtimes. */
import { chmod, chown, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { type CliOptions, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { BUSYBOX_IMAGE, LINKS_IMAGE, oncePerFile, startDocker } from '../support/docker.ts'
import { describeWith } from '../support/needs.ts'

const docker = oncePerFile(startDocker)

async function run(words: readonly string[], { env = {}, program = 'llm-do-exec' }: CliOptions = {}) {
  const cwd = await temporaryDirectory({ mode: 0o755 })
  await chown(cwd, 1000, 1000)
  const { status, stdout, stderr } = await runCli(words, { program, env: { ...(await docker()).env, ...env }, cwd })
  return { status, stdout: stdout.toString(), stderr: stderr.toString() }
}

/** Stands between a client and its daemon until it is killed, and leaves its socket then. */
async function startRelay(from: string, to: string): Promise<() => Promise<void>> {
  const script = `const net = require('net')
const tie = (one, other) => one.pipe(other).on('error', () => one.destroy())
net.createServer({ allowHalfOpen: true }, (client) => {
  const daemon = net.connect({ path: process.argv[2], allowHalfOpen: true })
  tie(client, daemon)
  tie(daemon, client)
}).listen(process.argv[1], () => console.log('listens'))`
  const relay = execa(process.execPath, ['-e', script, from, to], { reject: false, buffer: false })
  const kill = async () => {
    relay.kill('SIGKILL')
    await relay
  }
  onTestFinished(kill)
  await new Promise((resolve) => relay.stdout.once('data', resolve))
  return kill
}

describeWith('docker', 'the command line on docker', () => {
  test.each<readonly [string, readonly string[], string, number, RegExp]>([
    [
      'an image that is not here',
      ['--', 'true'],
      'nosuch:1',
      125,
      /image nosuch:1 is not on this machine.*\n.*docker pull nosuch:1/,
    ],
    ['an image without the command', ['--', 'nosuch'], BUSYBOX_IMAGE, 127, /nosuch/],
    ['an image without a shell', ['-c', 'true'], LINKS_IMAGE, 127, /\/bin\/sh/],
    ['a zone that is not there', ['--ro', '/nonexistent/x', '--', 'true'], BUSYBOX_IMAGE, 125, /\/nonexistent\/x/],
  ])('refuses %s, with the fix, and leaves nothing', async (_what, words, image, status, message) => {
    const ran = await run(['--backend', 'docker', '--image', image, ...words])
    expect(ran).toMatchObject({ status, stdout: '', stderr: expect.stringMatching(message) })
    expect(await (await docker()).client('ps', '--all', '--quiet')).toBe('')
  })

  test('lists the images of the runtimes, and says which cannot be fetched', async () => {
    const { client } = await docker()
    const listed = await run(['images'], { program: 'llm-do' })
    expect(listed).toMatchObject({ status: 0, stderr: '' })
    expect(listed.stdout).toMatch(/^bash +debian:bookworm-slim +missing$/m)
    await client('tag', BUSYBOX_IMAGE, 'debian:bookworm-slim')
    const json = JSON.parse((await run(['images', '--json'], { program: 'llm-do' })).stdout) as readonly {
      runtime: string
    }[]
    expect(json.find(({ runtime }) => runtime === 'bash')).toMatchObject({ present: true })
    expect(json.find(({ runtime }) => runtime === 'node')).toMatchObject({ present: false })
    await client('rmi', 'debian:bookworm-slim')
  })

  test('asks the daemon once for two runs, and says of one that is gone with its socket left behind that it does not answer', async () => {
    const { env, client } = await docker()
    const place = await temporaryDirectory({ mode: 0o755 })
    const asked = join(place, 'asked')
    const program = (await execa('sh', ['-c', 'command -v docker'])).stdout
    await writeFile(join(place, 'docker'), `#!/bin/sh\necho "$1" >>${asked}\nexec ${program} "$@"\n`)
    await chmod(join(place, 'docker'), 0o755)
    await writeFile(join(place, 'docker.pid'), '1')
    const killRelay = await startRelay(join(place, 'socket'), env['DOCKER_HOST']?.slice('unix://'.length) ?? '')
    const options = { env: { PATH: `${place}:${env['PATH']}`, DOCKER_HOST: `unix://${place}/socket` } }
    const words = ['--backend', 'docker', '--image', BUSYBOX_IMAGE, '--', 'echo', 'here']
    for (const _ of [1, 2]) expect(await run(words, options)).toMatchObject({ status: 0, stdout: 'here\n' })
    const timesAsked = async () => (await readFile(asked, 'utf8')).split('\n').filter((verb) => verb === 'info').length
    expect(await timesAsked()).toBe(1)
    await killRelay()
    expect(await run(words, options)).toMatchObject({
      status: 125,
      stdout: '',
      stderr: expect.stringMatching(/NO_BACKEND.*does not answer\n.*systemctl start docker/),
    })
    expect(await timesAsked()).toBe(1)
    expect(await client('ps', '--all', '--quiet')).toBe('')
  })
})
