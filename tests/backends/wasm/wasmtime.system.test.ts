/**
 * The way to wasmtime: a stand-in takes its place, because the real one cannot be had here. It shows what wasmtime would get,
 * and what the walls around it hold; what a real module does in a real wasmtime is not tested.
 */
import { chownSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import type { SandboxInput } from '../../../src/policy/keys/index.ts'
import type { Result } from '../../../src/report/result.ts'
import { exec } from '../../../src/run/exec.ts'
import { newDirectory } from '../../support/directory.ts'
import { describeWith } from '../../support/needs.ts'
import { currentUser } from '../../support/users.ts'

/** Prints what it got, tries to write everywhere, and ends with the status that its last word names. */
const STAND_IN = `#!/bin/sh
[ "$1" = --version ] && { echo 'wasmtime 24.0.0'; exit; }
for word; do printf '[%s]\\n' "$word"; done
printf 'WORD=%s\\n' "$WORD"
for place in /ro/new /rw/new /rw/.git/config; do echo x 2>/dev/null >$place; done
exit "$word"
`
const OWNER = 1000

describeWith(['unshare', 'userns'], 'runtime wasmtime', () => {
  const site = { root: '', remove: async (): Promise<void> => undefined }
  beforeAll(async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    Object.assign(site, { root: path, remove })
    for (const name of ['bin', 'ro', 'rw', 'rw/.git']) await mkdir(join(path, name))
    await writeFile(join(path, 'bin/wasmtime'), STAND_IN, { mode: 0o755 })
    await writeFile(join(path, 'ro/tool.wasm'), 'a module that only wasmtime would read')
    await writeFile(join(path, 'rw/.git/config'), 'kept')
    if (currentUser() === 'root')
      for (const name of ['rw', 'rw/.git', 'rw/.git/config']) chownSync(join(path, name), OWNER, OWNER)
    return () => site.remove()
  })

  function run(words: readonly string[], values: SandboxInput = {}): Promise<Result> {
    const { root } = site
    return exec({
      command: ['/ro/tool.wasm', ...words],
      policy: {
        backend: 'wasm',
        runtime: 'wasmtime',
        workdir: '/rw',
        zones: [
          { name: 'ro', mode: 'ro', hostPath: join(root, 'ro') },
          { name: 'rw', mode: 'rw', hostPath: join(root, 'rw') },
        ],
        env: { set: { WORD: 'a "b"' } },
        resources: { memory: '32m' },
        ...values,
      },
      cwd: join(root, 'rw'),
      env: { ...process.env, PATH: `${join(root, 'bin')}:${process.env.PATH}` },
      mode: 'capture',
    })
  }

  test('gets the directories, the variables, the memory and the words; mounts hold read-only zones and protected paths', async () => {
    const result = await run(['one', '134'])
    expect(result).toMatchObject({ reason: 'exit', exitCode: 134, backend: 'wasm' })
    expect(result.warnings.join()).toContain('which it was is not known')
    const words = result.stdout.split('\n')
    expect(words[0]).toBe('[run]')
    for (const word of ['max-memory-size=33554432', '--dir=/ro::/ro', '--dir=/rw::/rw', '--dir=/rw::.', '--env=WORD'])
      expect(words).toContain(`[${word}]`)
    expect(result.stdout).toContain('[--argv0=/ro/tool.wasm]\n[/ro/tool.wasm]\n[one]\n[134]\nWORD=a "b"\n')
    expect(await readdir(join(site.root, 'ro'))).toEqual(['tool.wasm'])
    expect(await readFile(join(site.root, 'rw/.git/config'), 'utf8')).toBe('kept')
    // The control: where it may, the same program does write.
    expect(await readFile(join(site.root, 'rw/new'), 'utf8')).toBe('x\n')
  })
})
