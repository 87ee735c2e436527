/** The package as another project has it: packed, unpacked, compiled against, and loaded by import and by require(). */
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { newerNodes } from '../support/nodes.ts'
import { installPackages, packFor } from '../support/npm-packages.ts'

const CHECKOUT = join(import.meta.dirname, '../..')
const NODES = [{ major: 'the one that runs the tests', file: process.execPath }, ...newerNodes()]

/** The same program twice: what differs is what the compiler makes of `import`. */
const USE = `
import { exec, OptionsError, openSandbox, type Result, SandboxError, type SandboxCommand, spawn } from 'llm-do-exec'

async function main(): Promise<void> {
  const command: SandboxCommand = { command: ['cat'], stdin: 'in' }
  const result: Result = await exec(command)
  const child = spawn({ command: ['cat'] })
  child.stdin.end('spawned')
  const sandbox = await openSandbox({ warm: 0 })
  const inside = await sandbox.exec(command)
  await sandbox.close()
  const wrong = await exec({ command: [], nope: 1 } as never).catch((error: unknown) => error instanceof OptionsError)
  const refused = await exec({ command: [] }).catch((error: unknown) => error instanceof SandboxError)
  console.log(result.stdout, (await child.result).stdout, inside.stdout, wrong, refused)
}

void main()
`

const SAME = `
import { createRequire } from 'node:module'
import * as imported from 'llm-do-exec'
const required = createRequire(import.meta.url)('llm-do-exec')
const names = Object.keys(required).toSorted()
console.log(names.every((name) => imported[name] === required[name]), names.join(' '))
`

const COMPILER_OPTIONS = {
  module: 'node16',
  moduleResolution: 'node16',
  target: 'es2022',
  lib: ['es2023'],
  strict: true,
  // The declarations of the package are compiled, too.
  skipLibCheck: false,
  types: ['node'],
  outDir: 'out',
}

/** A project that has installed the package, without anything that its declarations do not need. */
async function consumer(): Promise<string> {
  const directory = await temporaryDirectory({ mode: 0o755 })
  await mkdir(join(directory, 'node_modules'))
  await installPackages(join(directory, 'node_modules'), await packFor(directory))
  for (const name of ['@types', 'undici-types'])
    await symlink(join(CHECKOUT, 'node_modules', name), join(directory, 'node_modules', name))
  await writeFile(join(directory, 'package.json'), '{ "private": true }')
  await writeFile(join(directory, 'import.mts'), USE)
  await writeFile(join(directory, 'require.cts'), USE)
  await writeFile(join(directory, 'same.mjs'), SAME)
  const tsconfig = { compilerOptions: COMPILER_OPTIONS, files: ['import.mts', 'require.cts'] }
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(tsconfig))
  return directory
}

describeWith(['bwrap', 'userns'], 'the package', () => {
  test('has types for both kinds of module, and is loaded by both in every line of node', async () => {
    const cwd = await consumer()
    await execa(process.execPath, [join(CHECKOUT, 'node_modules/typescript/bin/tsc'), '-p', '.'], {
      cwd,
      preferLocal: false,
    })
    for (const { major, file } of NODES) {
      const run = async (program: string) => {
        const { stdout, stderr } = await execa(file, [program], { cwd })
        return { stdout, stderr }
      }
      const used = { stdout: 'in spawned in true true', stderr: '' }
      expect(await run('out/import.mjs'), `import, node ${major}`).toEqual(used)
      expect(await run('out/require.cjs'), `require, node ${major}`).toEqual(used)
      expect(await run('same.mjs'), `both, node ${major}`).toEqual({
        stdout:
          'true ERROR_CODES OptionsError SandboxError SandboxExecutor doctor exec openSandbox plan serveTasks spawn',
        stderr: '',
      })
    }
  })
})
