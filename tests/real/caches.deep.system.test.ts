/** `--cache` with real package managers: they fetch a package once per project. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { execa } from 'execa'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'
import { textHere } from './in-process.ts'

/** Places of this test: XDG_CACHE_HOME, and two projects. */
const site = { cache: '', one: '', two: '' }

beforeEach(async () => {
  site.cache = await temporaryDirectory()
  site.one = await directoryWith({ 'go.mod': 'module example.test/one\n', 'one.go': 'package one\n\nconst One = 1\n' })
  site.two = await directoryWith({ 'go.mod': 'module example.test/one\n', 'one.go': 'package one\n\nconst One = 1\n' })
})

const run = (cwd: string, ...argv: readonly string[]) => textHere(argv, { cwd, env: { XDG_CACHE_HOME: site.cache } })

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
})

/* Java sizes its heap by the limits of the run. */
describeWith('userns', '/sys', () => {
  testWith('network-clients', 'shows java its memory, or a variable does', async () => {
    const heap = async (...options: readonly string[]) => {
      const { err } = await textHere([...options, '--', 'java', '-XshowSettings:vm', '-version'])
      return {
        size: /Max\. Heap Size \(Estimated\): (\S+)/.exec(err)?.[1],
        version: Number(/version "(\d+)/.exec(err)?.[1]),
      }
    }
    const { size, version } = await heap('--memory', '512m')
    // A quarter, less what a garbage collector keeps for itself. Java 25 looks at the file system on top, docs/limits.md says.
    if (version < 25) expect(size).toMatch(/^12\d\.\d+M$/)
    expect((await heap('--env', 'JAVA_TOOL_OPTIONS=-XX:MaxRAM=512m')).size).toMatch(/^12\d\.\d+M$/)
  })
})
