/** The built command on docker: the refusals of the backend with their exit status, and the images of the runtimes. */
import { chown } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { BUSYBOX_IMAGE, LINKS_IMAGE, oncePerFile, startDocker } from '../support/docker.ts'
import { describeWith } from '../support/needs.ts'

const docker = oncePerFile(startDocker)

async function run(words: readonly string[], program: 'llm-do' | 'llm-do-exec' = 'llm-do-exec') {
  const cwd = await temporaryDirectory({ mode: 0o755 })
  await chown(cwd, 1000, 1000)
  const { status, stdout, stderr } = await runCli(words, { program, env: (await docker()).env, cwd })
  return { status, stdout: stdout.toString(), stderr: stderr.toString() }
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
    const listed = await run(['images'], 'llm-do')
    expect(listed).toMatchObject({ status: 0, stderr: '' })
    expect(listed.stdout).toMatch(/^bash +debian:bookworm-slim +missing$/m)
    await client('tag', BUSYBOX_IMAGE, 'debian:bookworm-slim')
    const json = JSON.parse((await run(['images', '--json'], 'llm-do')).stdout) as readonly { runtime: string }[]
    expect(json.find(({ runtime }) => runtime === 'bash')).toMatchObject({ present: true })
    expect(json.find(({ runtime }) => runtime === 'node')).toMatchObject({ present: false })
    await client('rmi', 'debian:bookworm-slim')
  })
})
