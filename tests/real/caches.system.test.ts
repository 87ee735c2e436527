/** `--cache`: what one run of a project fetched, the next one finds; another project, and another user's directory, do not. */
import { createHash } from 'node:crypto'
import { chmod, mkdir, readdir, rename, stat, symlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { directoryWith, runForText } from './directory.ts'

/** Places of this test: XDG_CACHE_HOME, and two projects. */
const site = { cache: '', one: '', two: '' }

beforeEach(async () => {
  site.cache = await temporaryDirectory()
  site.one = await directoryWith({ 'go.mod': 'module example.test/one\n', 'one.go': 'package one\n\nconst One = 1\n' })
  site.two = await directoryWith({ 'go.mod': 'module example.test/one\n', 'one.go': 'package one\n\nconst One = 1\n' })
})

const run = (cwd: string, ...argv: readonly string[]) => runForText(argv, { cwd, env: { XDG_CACHE_HOME: site.cache } })
const write = (name: string) => ['sh', '-c', `echo kept >/cache/${name}/file`]
const read = (name: string) => ['cat', `/cache/${name}/file`]

/** A server of packages; what it is asked for is counted by the caller. */
async function serve(
  files: Readonly<Record<string, Buffer | string>>,
  here: (url: string) => typeof files = () => ({}),
) {
  const requests: string[] = []
  const server = createServer(({ url = '/' }, response) => {
    requests.push(url)
    const found = { ...files, ...here(address()) }[decodeURIComponent(url)]
    response.writeHead(found === undefined ? 404 : 200, {
      'Content-Type': url.endsWith('/') ? 'text/html' : 'application/octet-stream',
      'Cache-Control': 'max-age=86400',
    })
    response.end(found)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  const port = `${(server.address() as AddressInfo).port}`
  const address = () => `http://host.llm-do.internal:${port}`
  return {
    url: address(),
    options: ['--allow-local', port],
    count: (name: string) => requests.filter((url) => url.includes(name)).length,
  }
}

async function archive(
  program: readonly [string, ...string[]],
  files: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const [file, ...words] = program
  const { stdout } = await execa(file, words, { cwd: await directoryWith(files), encoding: 'buffer' })
  return Buffer.from(stdout)
}

const ZIP =
  'import io, os, sys, zipfile\nout = io.BytesIO()\nwith zipfile.ZipFile(out, "w") as made:\n  for at, _, names in os.walk("."):\n    for name in names: made.write(os.path.join(at, name)[2:])\nsys.stdout.buffer.write(out.getvalue())'

/** Runs in the first project twice and in the second once. @returns how often the package was fetched after each */
async function fetches(argv: readonly string[], count: () => number): Promise<readonly number[]> {
  const counts: number[] = []
  for (const cwd of [site.one, site.one, site.two]) {
    const { status, err } = await run(cwd, ...argv)
    expect([status, err]).toEqual([0, expect.any(String)])
    counts.push(count())
  }
  return counts
}

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
      '--',
      'sh',
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

  test('of cargo leaves its settings and logins behind', async () => {
    const script = 'echo kept >.cargo/registry/file; echo lost >.cargo/config.toml'
    await run(site.one, '--cache', 'cargo', '--workdir', '/home/sandbox', '--', 'sh', '-c', script)
    const { out } = await run(
      site.one,
      '--cache',
      'cargo',
      '--',
      'sh',
      '-c',
      'cd; cat .cargo/registry/file .cargo/config.toml',
    )
    expect(out).toBe('kept\n')
  })

  test('of cargo is the business of a home that is kept', async () => {
    const home = await directoryWith()
    const { status } = await run(site.one, '--home', home, '--cache', 'cargo', '--', 'sh', '-c', 'mkdir ~/.cargo')
    expect([status, await readdir(home)]).toEqual([0, ['.cargo']])
  })
})

describeWith(['userns', 'network-clients'], 'what is fetched once is not fetched again', () => {
  test('by npm', async () => {
    const tarball = await archive(['tar', '-cz', 'package'], {
      'package/package.json': '{"name":"thing","version":"1.0.0"}',
    })
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
    const server = await serve({ '/thing.tgz': tarball }, (url) => {
      const version = { name: 'thing', version: '1.0.0', dist: { tarball: `${url}/thing.tgz`, integrity } }
      return {
        '/thing': JSON.stringify({ name: 'thing', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }),
      }
    })
    const npm = ['npm', 'install', '--no-audit', '--prefix', '/tmp/made', 'thing', '--registry', server.url]
    expect(await fetches([...server.options, '--cache', 'npm', '--', ...npm], () => server.count('thing.tgz'))).toEqual(
      [1, 1, 2],
    )
  })

  test('by pip', async () => {
    const wheel = await archive(['/usr/bin/python3', '-c', ZIP], {
      'thing.py': '',
      'thing-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n',
      'thing-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
      'thing-1.0.dist-info/RECORD': '',
    })
    const name = 'thing-1.0-py3-none-any.whl'
    const server = await serve({ '/simple/thing/': `<a href="/${name}">${name}</a>`, [`/${name}`]: wheel })
    const index = ['--index-url', `${server.url}/simple`, '--trusted-host', 'host.llm-do.internal']
    const pip = ['/usr/bin/python3', '-m', 'pip', 'download', '--no-deps', '--dest', '/tmp', ...index, 'thing']
    expect(await fetches([...server.options, '--cache', 'pip', '--', ...pip], () => server.count('.whl'))).toEqual([
      1, 1, 2,
    ])
  })

  test('by go, which compiles it once, too', async () => {
    // Go makes what it has fetched read-only, and a user other than root cannot remove that.
    const { cache } = site
    onTestFinished(async () => void (await execa('chmod', ['-R', 'u+w', cache])))
    const module = 'example.test/thing@v1.0.0'
    const mod = 'module example.test/thing\n'
    const zip = await archive(['/usr/bin/python3', '-c', ZIP], {
      [`${module}/go.mod`]: mod,
      [`${module}/a.go`]: 'package thing\n',
    })
    const at = '/example.test/thing/@v/v1.0.0'
    const server = await serve({ [`${at}.info`]: '{"Version":"v1.0.0"}', [`${at}.mod`]: mod, [`${at}.zip`]: zip })
    const env = ['--env', `GOPROXY=${server.url}`, '--env', 'GOSUMDB=off']
    const go = ['go', 'mod', 'download', 'example.test/thing@v1.0.0']
    expect(
      await fetches([...server.options, ...env, '--workdir', '/tmp', '--cache', 'go', '--', ...go], () =>
        server.count('.zip'),
      ),
    ).toEqual([1, 1, 2])
    const compiled = async (cwd: string) =>
      (await run(cwd, '--cache', 'go', '--', 'go', 'build', '-x', '.')).err.includes('/compile')
    expect([await compiled(site.one), await compiled(site.one), await compiled(site.two)]).toEqual([true, false, true])
  })

  testWith('cargo', 'by cargo', async () => {
    const manifest = (name: string) => `[package]\nname = "${name}"\nversion = "1.0.0"\nedition = "2021"\n`
    const crate = await archive(['tar', '-cz', 'thing-1.0.0'], {
      'thing-1.0.0/Cargo.toml': manifest('thing'),
      'thing-1.0.0/src/lib.rs': '',
    })
    const cksum = createHash('sha256').update(crate).digest('hex')
    const server = await serve(
      {
        '/th/in/thing': `${JSON.stringify({ name: 'thing', vers: '1.0.0', deps: [], cksum, features: {}, yanked: false })}\n`,
        '/dl/thing/1.0.0/download': crate,
      },
      (url) => ({ '/config.json': JSON.stringify({ dl: `${url}/dl` }) }),
    )
    for (const cwd of [site.one, site.two]) {
      const source = `[source.crates-io]\nreplace-with = "test"\n[source.test]\nregistry = "sparse+${server.url}/"\n`
      await mkdir(join(cwd, '.cargo'))
      await execa('tee', [join(cwd, '.cargo/config.toml')], { input: source })
      await mkdir(join(cwd, 'src'))
      await execa('tee', [join(cwd, 'src/lib.rs')], { input: '' })
      await execa('tee', [join(cwd, 'Cargo.toml')], { input: `${manifest('one')}[dependencies]\nthing = "1.0.0"\n` })
    }
    const cargo = ['sh', '-c', 'cp -r . /tmp/one && cd /tmp/one && cargo fetch']
    expect(await fetches([...server.options, '--cache', 'cargo', '--', ...cargo], () => server.count('/dl/'))).toEqual([
      1, 1, 2,
    ])
  })
})
