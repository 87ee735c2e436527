/** The package as another project has it: installed, compiled against, and loaded by import and by require(). */
import { rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, type Need } from '../support/needs.ts'
import { installPackages } from '../support/npm-packages.ts'

const CHECKOUT = join(import.meta.dirname, '../..')

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

const EXPORTED = 'ERROR_CODES OptionsError SandboxError SandboxExecutor doctor exec openSandbox plan serveTasks spawn'

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

/** Without @types/node: what is not about streams keeps its types. */
const WITHOUT_NODE = `
import { exec, openSandbox, type Result, SandboxExecutor, spawn } from 'llm-do-exec'

async function main(): Promise<void> {
  const result: Result = await exec({ command: ['true'], policy: { resources: { memory: '1g' } } })
  const text: string = result.stdout
  const status: number | null = result.exitCode
  // @ts-expect-error: it is a text
  const wrong: number = result.stdout
  // @ts-expect-error: an option that does not exist
  await exec({ command: ['true'], nope: 1 })
  const child = spawn({ command: ['cat'] })
  child.stdin.end(text)
  const sandbox = await openSandbox({ warm: 0 })
  await sandbox.close()
  void [status, wrong, SandboxExecutor]
}

void main()
`

/** Compiler options and libraries of such a project. */
const LIBRARIES: readonly (readonly string[])[] = [['es2022'], ['es2023', 'dom'], ['esnext']]

/** A project that has installed the package, without anything that its declarations do not need. */
async function consumer(): Promise<string> {
  const directory = await temporaryDirectory({ mode: 0o755 })
  await installPackages(join(directory, 'node_modules'))
  for (const name of ['@types', 'undici-types'])
    await symlink(join(CHECKOUT, 'node_modules', name), join(directory, 'node_modules', name))
  await writeFile(join(directory, 'package.json'), '{ "private": true }')
  await writeFile(join(directory, 'import.mts'), USE)
  await writeFile(join(directory, 'require.cts'), USE)
  await writeFile(join(directory, 'same.mjs'), SAME)
  await writeFile(join(directory, 'without-node.mts'), WITHOUT_NODE)
  await writeFile(join(directory, 'without-node.cts'), WITHOUT_NODE)
  const tsconfig = { compilerOptions: COMPILER_OPTIONS, files: ['import.mts', 'require.cts'] }
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(tsconfig))
  return directory
}

/** @param nodes that load it */
export function describePackage(nodes: readonly string[], ...needs: readonly Need[]): void {
  describeWith(['bwrap', 'userns', ...needs], 'the package', () => {
    test('has types for both kinds of module, with and without those of Node, and is loaded by both', async () => {
      const cwd = await consumer()
      const compiler = join(CHECKOUT, 'node_modules/typescript/bin/tsc')
      await execa(process.execPath, [compiler, '-p', '.'], { cwd, preferLocal: false })
      await rm(join(cwd, 'node_modules/@types'))
      for (const lib of LIBRARIES) {
        const compilerOptions = { ...COMPILER_OPTIONS, lib, types: [], noEmit: true }
        const tsconfig = { compilerOptions, files: ['without-node.mts', 'without-node.cts'] }
        await writeFile(join(cwd, 'tsconfig.json'), JSON.stringify(tsconfig))
        await execa(process.execPath, [compiler, '-p', '.'], { cwd, preferLocal: false })
      }
      for (const node of nodes) {
        const run = async (program: string) => {
          const { stdout, stderr } = await execa(node, [program], { cwd })
          return { node, stdout, stderr }
        }
        const used = { node, stdout: 'in spawned in true true', stderr: '' }
        expect(await run('out/import.mjs'), 'import').toEqual(used)
        expect(await run('out/require.cjs'), 'require').toEqual(used)
        expect(await run('same.mjs'), 'both').toEqual({ ...used, stdout: `true ${EXPORTED}` })
      }
    })
  })
}
