/** The packages of npm: the same bytes twice, and working as npm installs them, without scripts, without a node on the way of a run. */
import { once } from 'node:events'
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { installPackages, type Packages, packFor } from '../support/npm-packages.ts'
import { startNpmRegistry } from '../support/npm-registry.ts'
import { recordFailingNode } from '../support/package.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const CHECKOUT = checkoutFor(currentUser())
const PLATFORM = `@llm-do/exec-linux-${process.arch}`

const npm = (cwd: string, ...words: readonly string[]) =>
  execa('npm', [...words, '--offline', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd,
    env: { npm_config_cache: join(cwd, 'cache'), npm_config_update_notifier: 'false' },
  })

async function project(): Promise<string> {
  const cwd = await temporaryDirectory({ mode: 0o755 })
  await writeFile(join(cwd, 'package.json'), '{ "private": true }')
  return cwd
}

/** The first run makes a plan; then the node on record of the package that holds the client only fails. */
async function runsWithoutNode(cwd: string, program: string, platform: string): Promise<void> {
  const [HOME, XDG_RUNTIME_DIR] = [await temporaryDirectory(), await temporaryDirectory()]
  const env = { PATH: process.env.PATH, HOME, XDG_RUNTIME_DIR }
  const options = { cwd, env, extendEnv: false, reject: false } as const
  const words = ['exec', '--', 'echo', 'inside']
  expect(await execa(program, words, options)).toMatchObject({ stdout: 'inside' })
  recordFailingNode(platform)
  expect(await execa(program, words, options)).toMatchObject({ stdout: 'inside' })
  const planned = await execa(program, ['exec', '--memory', '77m', '--', 'true'], options)
  expect(planned, 'the control').toMatchObject({ exitCode: 99, stderr: 'node was started' })
  await rm(join(platform, 'dist/node-path'))
}

describeWith('userns', 'installed by npm', () => {
  let packages: Packages
  beforeAll(async () => {
    const { path, remove } = await newDirectory()
    packages = await packFor(path)
    return remove
  })

  test('into a project: the command, its other name, and the library', async () => {
    const cwd = await project()
    await npm(cwd, 'install', packages.command, packages.platform)
    await runsWithoutNode(cwd, join(cwd, 'node_modules/.bin/llm-do'), join(cwd, 'node_modules', PLATFORM))
    const version = await execa(join(cwd, 'node_modules/.bin/llm-do-exec'), ['--version'], { cwd })
    expect(version.stdout).toContain(JSON.parse(await readFile(join(CHECKOUT, 'package.json'), 'utf8')).version)
    const use = `import('llm-do-exec').then(async (it) => console.log((await it.exec({ command: ['echo', 'by the library'] })).stdout))`
    expect((await execa(process.execPath, ['-e', use], { cwd })).stdout.trim()).toBe('by the library')
    await rm(join(cwd, 'node_modules/@llm-do'), { recursive: true })
    const without = await execa(join(cwd, 'node_modules/.bin/llm-do'), ['exec', '--', 'true'], { cwd, reject: false })
    expect(without.exitCode).toBe(125)
    expect(without.stderr).toBe(
      `llm-do: error SETUP_FAILED: the programs for this machine are not installed: npm package @llm-do/exec-linux-${process.arch}\n` +
        'llm-do: hint: npm install llm-do-exec --include=optional, without --no-optional, --omit=optional and --force',
    )
  })

  test('without the files of a fleet, whose verbs say what to install, and with them', async () => {
    const cwd = await project()
    await npm(cwd, 'install', packages.command, packages.platform)
    const HOME = await temporaryDirectory()
    const program = join(cwd, 'node_modules/.bin/llm-do')
    const server = () => execa(program, ['fleet-server', '--port', '0'], { cwd, env: { HOME }, reject: false })
    const without = await server()
    expect(without).toMatchObject({ exitCode: 125, stdout: '' })
    expect(without.stderr).toMatch(/HELPER_MISSING: .*node-sqlite3-wasm.*\n.*hint: npm install @llm-do\/exec-fleet@\d/)
    await npm(cwd, 'install', packages.command, packages.platform, packages.fleet)
    const served = server()
    const [line] = await once(served.stdout, 'data')
    served.kill()
    expect(String(line)).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/m)
    await served
  })

  test('for everybody: by the link in PREFIX/bin, with the programs inside of the package', async () => {
    const cwd = await project()
    const registry = await startNpmRegistry([packages.command, packages.platform])
    onTestFinished(registry.stop)
    const words = ['--global', '--prefix', join(cwd, 'prefix'), '--ignore-scripts', '--no-audit', '--no-fund']
    const env = { npm_config_cache: join(cwd, 'cache'), npm_config_registry: registry.url }
    await execa('npm', ['install', ...words, 'llm-do-exec'], { cwd, env })
    const modules = join(cwd, 'prefix/lib/node_modules')
    await runsWithoutNode(cwd, join(cwd, 'prefix/bin/llm-do'), join(modules, 'llm-do-exec/node_modules', PLATFORM))
    // A link of the user's own, from which the package cannot be guessed.
    await symlink(join(cwd, 'prefix/bin/llm-do'), join(cwd, 'mine'))
    expect((await execa(join(cwd, 'mine'), ['exec', '--', 'echo', 'linked'], { cwd })).stdout).toBe('linked')
  })

  test('what only looks like the package beside a link is not started', async () => {
    const cwd = await project()
    await installPackages(join(cwd, 'node_modules'))
    const planted = join(cwd, `own/lib/node_modules/@llm-do/exec-linux-${process.arch}/bin`)
    await mkdir(planted, { recursive: true })
    await mkdir(join(cwd, 'own/lib/node_modules/llm-do-exec/bin'), { recursive: true })
    await mkdir(join(cwd, 'own/bin'))
    for (const file of [join(planted, 'llm-do'), join(cwd, 'own/lib/node_modules/llm-do-exec/bin/llm-do')])
      await writeFile(file, '#!/bin/sh\necho planted\n', { mode: 0o755 })
    await symlink(join(cwd, 'node_modules/llm-do-exec/bin/llm-do'), join(cwd, 'own/bin/llm-do'))
    const { stdout } = await execa(join(cwd, 'own/bin/llm-do'), ['exec', '--', 'echo', 'real'], { cwd })
    expect(stdout).toBe('real')
  })
})

describeWith('aarch64-cc', 'make packages', () => {
  test('makes the same bytes twice, for both machines', { timeout: 600_000 }, async () => {
    const directory = await temporaryDirectory()
    for (const name of ['first', 'second'])
      await execa('make', ['-C', CHECKOUT, 'packages', 'BOTH=1', `PACKAGES=${join(directory, name)}`])
    const sums = async (name: string) =>
      (await execa('sha256sum *', { shell: true, cwd: join(directory, name) })).stdout
    const first = await sums('first')
    expect(first.split('\n').map((line) => line.split(/ +/)[1]?.replace(/-\d+\.\d+\.\d+(\.tgz)?/, ''))).toEqual([
      'llm-do-exec',
      'llm-do-exec-fleet',
      'llm-do-exec-linux-arm64',
      'llm-do-exec-linux-x64',
      'llm_do_exec-py3-none-any.whl',
      'llm_do_exec.tar.gz',
    ])
    expect(await sums('second')).toBe(first)
  })
})

describe('the checkout', () => {
  const refusal = 'llm-do-exec: the checkout is not an npm package'
  const tried = (cwd: string, ...words: readonly string[]) =>
    execa('npm', [...words, '--offline', '--no-audit', '--no-fund', '--loglevel=error'], { cwd, reject: false })

  test('cannot be packed: npm pack and npm install from its history are refused, and without scripts nothing built is in it', async () => {
    expect(await tried(CHECKOUT, 'pack', '--dry-run')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(refusal),
    })
    const { stdout } = await execa('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: CHECKOUT })
    const [packed] = JSON.parse(stdout) as [{ readonly files: readonly { readonly path: string }[] }]
    const names = packed.files.map(({ path }) => path).toSorted()
    expect(names).toEqual(['LICENSE', 'README.md', 'package.json', 'scripts/refuse-package.mjs'])
    const history = await temporaryDirectory()
    for (const name of names) await execa('cp', ['--parents', name, history], { cwd: CHECKOUT })
    const git = (...words: readonly string[]) => execa('git', ['-C', history, ...words])
    // Without dependencies: npm would fetch them.
    const manifest = JSON.parse(await readFile(join(history, 'package.json'), 'utf8')) as Record<string, unknown>
    const without = { ...manifest, dependencies: {}, devDependencies: {}, overrides: {} }
    await writeFile(join(history, 'package.json'), JSON.stringify(without))
    await git('init', '--quiet')
    await git('add', '.')
    await git('-c', 'user.name=x', '-c', 'user.email=x@example.com', 'commit', '--quiet', '--message', 'x')
    const cwd = await project()
    const installed = await tried(cwd, 'install', `git+file://${history}`)
    expect(installed).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(refusal) })
  })
})
