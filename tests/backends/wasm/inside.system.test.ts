/** A WASI command through exec(): inside the namespace sandbox, and its end comes back exactly. */
import { chownSync } from 'node:fs'
import { mkdir, readFile, readlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SandboxInput } from '../../../src/policy/keys/index.ts'
import type { PolicyLayer } from '../../../src/policy/layer.ts'
import type { Result } from '../../../src/report/result.ts'
import { exec } from '../../../src/run/exec.ts'
import { newDirectory } from '../../support/directory.ts'
import { compileGuest } from '../../support/driver.ts'
import { describeWith } from '../../support/needs.ts'
import { processesWith, until } from '../../support/processes.ts'
import { currentUser } from '../../support/users.ts'

const OWNER = 1000

describeWith(['wasi', 'bwrap', 'userns'], 'a WASI command of a run', () => {
  const state: { root: string; remove: () => Promise<void> } = { root: '', remove: async () => undefined }
  beforeAll(async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    Object.assign(state, { root: path, remove })
    for (const name of ['ro', 'rw']) await mkdir(join(path, name))
    await writeFile(join(path, 'ro/bad.wasm'), 'text')
    const large = compileGuest(join(path, 'ro/large.wasm'), `-Wl,--initial-memory=${32 << 20}`)
    await Promise.all([compileGuest(join(path, 'ro/guest.wasm')), large])
    if (currentUser() === 'root') chownSync(join(path, 'rw'), OWNER, OWNER)
  })
  afterAll(() => state.remove())

  function run(command: readonly string[], values: SandboxInput = {}, signal?: AbortSignal): Promise<Result> {
    const { root } = state
    const zones = [
      { name: 'ro', mode: 'ro', hostPath: join(root, 'ro') },
      { name: 'rw', mode: 'rw', hostPath: join(root, 'rw') },
    ] as const
    const layer: PolicyLayer = {
      layer: 'flag',
      source: 'test',
      directory: root,
      values: { backend: 'wasm', zones: [...zones], workdir: '/rw', ...values },
    }
    const cwd = join(root, 'rw')
    return exec({ command, layers: [layer], profile: 'task', cwd, mode: 'capture', ...(signal && { signal }) })
  }

  const guest = (words: readonly string[], values?: SandboxInput) => run(['/ro/guest.wasm', ...words], values)

  test('may be python, which sees the same zones', async () => {
    const script = 'import os, sys; print(sorted(os.listdir("/"))); open("/rw/py", "w").write("x"); sys.exit(7)'
    const result = await run(['python3', '-c', script])
    expect(result).toMatchObject({ reason: 'exit', exitCode: 7, stderr: '' })
    expect(await readFile(join(state.root, 'rw/py'), 'utf8')).toBe('x')
  })

  test('that traps is told from one that exits with 134', async () => {
    expect(await guest(['trap'])).toMatchObject({ reason: 'signal', exitCode: null, signal: 'SIGABRT', stderr: '' })
    expect(await guest(['exit', '134'])).toMatchObject({
      ...{ reason: 'exit', exitCode: 134, signal: null, stderr: '' },
      isolation: { fs: 'preopened', seccomp: 'default' },
    })
  })

  test('that wants more memory than the limit from the start is ended by it', async () => {
    const large = (memory: string) => run(['/ro/large.wasm', 'exit', '0'], { resources: { memory } })
    expect(await large('16m')).toMatchObject({ reason: 'memory', ok: false })
    expect(await large('64m')).toMatchObject({ ok: true, limits: { cpus: { by: 'wasm' } } })
  })

  test('that is no module, or is not there, is refused', async () => {
    await expect(run(['/ro/bad.wasm'])).rejects.toMatchObject({
      code: 'COMMAND_NOT_EXECUTABLE',
      message: expect.stringMatching(/compile: WebAssembly\.Module\(\)/),
    })
    await expect(run(['/ro/gone.wasm'])).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND' })
  })

  test('cannot be held to half a processor', async () => {
    await expect(guest(['exit', '0'], { resources: { cpus: 0.5 } })).rejects.toMatchObject({
      code: 'NO_BACKEND',
      message: expect.stringMatching(/nothing holds less than one processor for WASI code/),
    })
  })

  test('is run by a node with namespaces of its own', async () => {
    const over = new AbortController()
    // A node of another file has another limit.
    const pages = 500 + (process.pid % 4000)
    const running = run(['/ro/guest.wasm', 'loop'], { resources: { memory: `${pages * 64}k` } }, over.signal)
    const nodes = () => processesWith(`--wasm-max-mem-pages=${pages}\0`)
    const pids = await until('its node', () => (nodes().length > 0 ? nodes() : undefined))
    const own = async (name: string, pid = 'self') => readlink(`/proc/${pid}/ns/${name}`)
    for (const name of ['net', 'pid', 'mnt', 'ipc', 'user'])
      for (const pid of pids) expect(await own(name, pid)).not.toBe(await own(name))
    // A loop takes a whole processor; its timeout: tests/conformance.
    over.abort('SIGTERM')
    expect(await running).toMatchObject({ reason: 'cancelled' })
    expect(nodes()).toEqual([])
  })
})
