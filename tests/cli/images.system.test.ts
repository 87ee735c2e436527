/** `llm-do images --pull` with a real daemon and a real registry protocol. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RUNTIMES } from '../../src/backends/docker/images.ts'
import { type CliResult, runCli } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { packBusybox, startDocker, type TestDocker } from '../support/docker.ts'
import { describeWith } from '../support/needs.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'

/** As Docker's own registry names them; those of other registries cannot be had from a mirror of it. */
const HUB = RUNTIMES.filter(({ image }) => !image.includes('/'))
const OTHERS = RUNTIMES.filter(({ image }) => image.includes('/'))

describeWith('docker', 'llm-do images', () => {
  const here: { registry?: TestRegistry; docker?: TestDocker; remove?: () => Promise<void> } = {}
  beforeAll(async () => {
    const { path, remove } = await newDirectory()
    here.remove = remove
    here.registry = await startRegistry({
      layer: await packBusybox(path),
      names: HUB.map(({ image }) => `library/${image}`),
    })
    here.docker = await startDocker({ registry: here.registry.url })
  })
  afterAll(async () => {
    await here.docker?.stop()
    await here.registry?.stop()
    await here.remove?.()
  })

  const call = (...argv: readonly string[]): Promise<CliResult> =>
    runCli(argv, { program: 'llm-do', env: { ...here.docker?.env, LLM_DO_DOCKER: 'docker' } })
  const states = (presence: readonly boolean[]) =>
    RUNTIMES.map(({ name, image }, index) => ({ runtime: name, image, present: presence[index] }))

  test('fetches what is missing, says what cannot be fetched, and runs what it fetched', async () => {
    const run = () =>
      call('exec', '--backend', 'docker', '--runtime', 'bash', '--net', 'none', '--', 'sh', '-c', 'exit 3')
    const refused = await run()
    expect(refused.status).toBe(125)
    expect(refused.stderr.toString()).toContain('images --pull')
    // A run fetches nothing, not even when it is refused for it.
    expect(here.registry?.requests).toEqual([])

    const before = await call('images', '--json')
    expect(JSON.parse(before.stdout.toString())).toEqual(states(RUNTIMES.map(() => false)))

    const pulled = await call('images', '--pull', '--json')
    expect(JSON.parse(pulled.stdout.toString())).toEqual(states(RUNTIMES.map((runtime) => HUB.includes(runtime))))
    expect(pulled.status).toBe(1)
    for (const { image } of OTHERS) expect(pulled.stderr.toString()).toContain(`llm-do: ${image}: `)
    expect(here.registry?.requests.some((line) => line.includes('/blobs/sha256:'))).toBe(true)

    expect((await run()).status).toBe(3)
    const again = here.registry?.requests.length
    await call('images', '--pull')
    const more = here.registry?.requests.slice(again).filter((line) => !line.startsWith('CONNECT'))
    expect(more).toEqual([])
  })
})
