/**
 * Images that have llm-do in them, built by a real Docker daemon and run with the documented options: the feature for
 * dev containers, and the Dockerfile of docs/guide/ci.md. node's image is played by one with node, npm and busybox.
 */
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newDirectory } from '../support/directory.ts'
import { importTree, makeBusyboxTree, startDocker, type TestDocker } from '../support/docker.ts'
import { describeWith } from '../support/needs.ts'
import { packFor } from '../support/npm-packages.ts'
import { type NpmRegistry, startNpmRegistry } from '../support/npm-registry.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const CHECKOUT = checkoutFor(currentUser())
const NODE_IMAGE = 'node:22-bookworm'
/** Packs, builds and imports an image: on a busy machine some minutes. */
const SETUP_MS = 300_000

/** The language's blocks of docs/guide/ci.md. */
async function blocks(language: string): Promise<readonly string[]> {
  const page = await readFile(join(CHECKOUT, 'docs/guide/ci.md'), 'utf8')
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block = '']) => block)
}

/** node of this machine with what it is linked to, and npm. */
async function addNode(root: string): Promise<void> {
  const { stdout } = await execa('ldd', [process.execPath])
  const libraries = new Set(stdout.match(/\/\S+\.so[.\d]*(?= \()/g))
  for (const directory of ['usr/bin', 'usr/local/bin', 'usr/lib/node_modules', 'tmp'])
    await mkdir(join(root, directory), { recursive: true })
  await chmod(join(root, 'tmp'), 0o1777)
  await execa('cp', ['-L', '--parents', ...libraries, root])
  await execa('cp', ['-L', process.execPath, join(root, 'usr/bin/node')])
  await execa('cp', [
    '-R',
    join(dirname(process.execPath), '../lib/node_modules/npm'),
    join(root, 'usr/lib/node_modules'),
  ])
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/bin/npm'))
  await symlink('/bin/busybox', join(root, 'usr/bin/env'))
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/tmp:/bin/sh\n')
}

/** Debian's package manager as far as the feature asks it, where PATH does not lead to the node that is there. */
const APT_GET = '#!/bin/sh\n[ "$1" != install ] || ln -s /usr/bin/node /usr/bin/npm /usr/local/bin\n'

describeWith(['docker', 'userns'], 'an image with llm-do', () => {
  const state: { docker?: TestDocker; registry?: NpmRegistry; context: string } = { context: '' }
  beforeAll(async () => {
    const { path, remove } = await newDirectory()
    state.context = join(path, 'context')
    await mkdir(state.context)
    const packages = await packFor(path)
    state.registry = await startNpmRegistry([packages.command, packages.platform])
    state.docker = await startDocker()
    const tree = join(path, 'tree')
    await makeBusyboxTree(tree)
    await addNode(tree)
    const settings = `npm_config_prefix=/usr/local npm_config_registry=${state.registry.url}`
    await importTree(state.docker.client, { tree, image: NODE_IMAGE, changes: [`ENV ${settings}`] })
    await writeFile(join(state.context, 'apt-get'), APT_GET, { mode: 0o755 })
    await execa('make', ['-C', CHECKOUT, 'devcontainer', `FEATURE=${join(state.context, 'llm-do')}`])
    return remove
  }, SETUP_MS)
  afterAll(async () => {
    await state.docker?.stop()
    await state.registry?.stop()
  })

  /** By the builder that needs no plugin. The registry of npm is in the network of this machine. */
  async function build(image: string, dockerfile: string): Promise<void> {
    const words = ['build', '--network', 'host', '--tag', image, '--file', '-', state.context]
    await execa('docker', words, { env: { ...state.docker?.env, DOCKER_BUILDKIT: '0' }, input: dockerfile })
  }

  const run = (image: string, options: readonly string[], command: readonly string[]) =>
    execa('docker', ['run', '--rm', '--pull', 'never', '--network', 'none', ...options, image, ...command], {
      env: state.docker?.env ?? {},
      reject: false,
    })
  const COMMAND = [
    'llm-do',
    'exec',
    '--',
    'sh',
    '-c',
    'echo inside; grep -c : /proc/net/dev; grep CapEff /proc/self/status',
  ]
  const INSIDE = { exitCode: 0, stdout: 'inside\n1\nCapEff:\t0000000000000000' }

  test.each([
    ['what was built beside it', ''],
    ['the npm package', '0.1.0'],
  ])('by the feature for dev containers, from %s, without a node at first', async (_, version) => {
    const feature = await readFile(join(CHECKOUT, 'packaging/devcontainer/llm-do/devcontainer-feature.json'), 'utf8')
    const { securityOpt } = JSON.parse(feature) as { readonly securityOpt: readonly string[] }
    const steps = `PATH=/usr/local/bin:/bin:/tmp/feature VERSION=${version} /tmp/feature/llm-do/install.sh`
    await build('devcontainer', `FROM ${NODE_IMAGE}\nCOPY . /tmp/feature\nRUN ${steps}\n`)
    const user = ['--user', '1000']
    const options = securityOpt.flatMap((word) => ['--security-opt', word])
    expect(await run('devcontainer', [...user, ...options], COMMAND)).toMatchObject(INSIDE)
    expect(await run('devcontainer', user, COMMAND), 'the control').toMatchObject({ exitCode: 125, stdout: '' })
  })

  test('by the Dockerfile of docs/guide/ci.md, with the recipe', async () => {
    const [dockerfile = ''] = await blocks('dockerfile')
    await build('documented', dockerfile)
    const [recipe = ''] = (await blocks('sh')).filter((block) => block.includes(' IMAGE '))
    const options = /docker run (.*) IMAGE/s.exec(recipe)?.[1]?.replaceAll('\\\n', '').split(/ +/) ?? []
    expect(await run('documented', options, COMMAND)).toMatchObject(INSIDE)
  })
})
