/** `--cache`: the next run of a project finds the files of the last one; another project and another user do not. */
import { chmod, readdir, rename, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'
import { textHere } from './in-process.ts'

/** Places of this test: XDG_CACHE_HOME, and two projects. */
const site = { cache: '', one: '', two: '' }

beforeEach(async () => {
  site.cache = await temporaryDirectory()
  site.one = await directoryWith()
  site.two = await directoryWith()
})

const run = (cwd: string, ...argv: readonly string[]) => textHere(argv, { cwd, env: { XDG_CACHE_HOME: site.cache } })
const write = (name: string) => ['sh', '-c', `echo kept >/cache/${name}/file`]
const read = (name: string) => ['cat', `/cache/${name}/file`]

describeWith(['userns'], 'a cache', () => {
  test('is there again in the next run of the project, and in no other project', async () => {
    expect(await run(site.one, '--cache', 'mine', '--', ...write('mine'))).toEqual({ status: 0, out: '', err: '' })
    expect(await run(site.one, '--cache', 'mine', '--', ...read('mine'))).toEqual({ status: 0, out: 'kept\n', err: '' })
    expect((await run(site.two, '--cache', 'mine', '--', ...read('mine'))).status).toBe(1)
    expect((await run(site.one, '--', 'ls', '/cache')).status).toBe(2)
  })

  test('is that of every project where it says shared, and apart from that of the project', async () => {
    await run(site.one, '--cache', 'mine:shared', '--', ...write('mine'))
    expect((await run(site.two, '--cache', 'mine:shared', '--', ...read('mine'))).out).toBe('kept\n')
    expect((await run(site.one, '--cache', 'mine', '--', ...read('mine'))).status).toBe(1)
  })

  test('is closed to all others, and is listed and removed with what a running command may still change', async () => {
    await run(
      site.one,
      '--cache',
      'mine',
      '-c',
      'mkdir /cache/mine/a && touch /cache/mine/a/b && chmod 0 /cache/mine/a',
    )
    const kept = join(site.cache, 'llm-do/caches')
    const [project = ''] = await readdir(kept)
    for (const path of ['', project, `${project}/mine`]) expect((await stat(join(kept, path))).mode & 0o777).toBe(0o700)
    const cache = (...words: readonly string[]) =>
      runCli(['cache', ...words], { program: 'llm-do', env: { XDG_CACHE_HOME: site.cache } })
    expect((await cache('list')).stdout.toString()).toBe(`${project}/mine\n`)
    expect((await cache('remove', `${project}/..`)).status).toBe(125)
    expect((await cache('remove', project)).status).toBe(0)
    expect(await readdir(kept)).toEqual([])
  })

  test.each([
    ['others may enter', (path: string) => chmod(path, 0o755)],
    [
      'is a symbolic link',
      async (path: string) => {
        await rename(path, `${path}.else`)
        await symlink(`${path}.else`, path)
      },
    ],
  ])('is refused when a directory on the way %s', async (_how, spoil) => {
    await run(site.one, '--cache', 'mine', '--', ...write('mine'))
    const kept = join(site.cache, 'llm-do/caches')
    const [project = ''] = await readdir(kept)
    await spoil(join(kept, project))
    const { status, err } = await run(site.one, '--cache', 'mine', '--', ...read('mine'))
    expect([status, err]).toEqual([125, expect.stringContaining('closed to all others')])
  })

  test('of another project cannot be written where a zone shows it', async () => {
    await run(site.two, '--cache', 'mine', '--', ...write('mine'))
    const script = `echo poison >$(echo ${site.cache}/llm-do/caches/*/mine/file)`
    const { status, err } = await run(site.one, '--rw', site.cache, '--', 'sh', '-c', script)
    expect([status, err]).toEqual([2, expect.stringContaining('Read-only file system')])
    expect((await run(site.two, '--cache', 'mine', '--', ...read('mine'))).out).toBe('kept\n')
  })

  test('holds what programs keep there, git directories among it', async () => {
    const script = 'mkdir -p /cache/mine/.git/hooks && echo x >/cache/mine/.git/hooks/post-merge'
    expect(await run(site.one, '--cache', 'mine', '--', 'sh', '-c', script)).toEqual({ status: 0, out: '', err: '' })
  })

  test('is where each tool looks for it', async () => {
    const tools = 'npm pnpm yarn bun deno pip uv cargo go maven gradle ccache'.split(' ')
    const caches = tools.flatMap((name) => ['--cache', name])
    const script = 'env | grep -E "/cache|^(CARGO|GRADLE)_"; cd; ls -d /cache/* .cargo/* .gradle/* .m2/*'
    const { out } = await run(site.one, ...caches, '-c', script)
    expect(out.split('\n').filter(Boolean).toSorted()).toEqual([
      ...['.cargo/git', '.cargo/registry', '.gradle/caches', '.gradle/wrapper', '.m2/repository'],
      ...'bun ccache deno go npm pip pnpm uv yarn'.split(' ').map((name) => `/cache/${name}`),
      ...['BUN_INSTALL_CACHE_DIR=/cache/bun', 'CARGO_HOME=/home/sandbox/.cargo', 'CCACHE_DIR=/cache/ccache'],
      ...['DENO_DIR=/cache/deno', 'GOCACHE=/cache/go/build', 'GOMODCACHE=/cache/go/mod'],
      ...['GRADLE_USER_HOME=/home/sandbox/.gradle', 'PIP_CACHE_DIR=/cache/pip', 'UV_CACHE_DIR=/cache/uv'],
      ...['YARN_CACHE_FOLDER=/cache/yarn/cache', 'YARN_GLOBAL_FOLDER=/cache/yarn', 'npm_config_cache=/cache/npm'],
      ...['npm_config_cache_dir=/cache/pnpm/metadata', 'npm_config_store_dir=/cache/pnpm/store'],
      ...['pnpm_config_cache_dir=/cache/pnpm/metadata', 'pnpm_config_store_dir=/cache/pnpm/store'],
    ])
  })

  test.each([
    ['cargo', '.cargo/registry', '.cargo/config.toml'],
    ['gradle', '.gradle/caches', '.gradle/init.gradle'],
    ['maven', '.m2/repository', '.m2/settings.xml'],
  ])('of %s leaves its settings and logins behind', async (tool, directory, settings) => {
    const script = `echo kept >${directory}/file; echo lost >${settings}`
    await run(site.one, '--cache', tool, '--workdir', '/home/sandbox', '--', 'sh', '-c', script)
    const { out } = await run(site.one, '--cache', tool, '-c', `cd; cat ${directory}/file ${settings}`)
    expect(out).toBe('kept\n')
  })

  test('of cargo is the business of a home that is kept', async () => {
    const home = await directoryWith()
    const { status } = await run(site.one, '--home', home, '--cache', 'cargo', '--', 'sh', '-c', 'mkdir ~/.cargo')
    expect([status, await readdir(home)]).toEqual([0, ['.cargo']])
  })
})
