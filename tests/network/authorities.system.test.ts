/** Certificates of a company, which the caller's variables name: programs inside trust them, and see nothing else of those files. */
import { chmod, copyFile, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { openTerminationWorld, type TerminationWorld } from './termination-world.ts'
import { allow, eachWay, PYTHON, resultOf, shell, type Way } from './ways.ts'

const VARIABLES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'GIT_SSL_CAINFO', 'CURL_CA_BUNDLE']
/** Its certificate is of an authority that this host does not trust. */
const URL = 'https://stranger.test:9443/'
const NODE = `node -e 'fetch("${URL}").then((r) => console.log(r.status > 0)).catch((e) => console.log(e.cause.code))'`

let of: TerminationWorld
let company: string

const all = (file: string) => Object.fromEntries(VARIABLES.map((name) => [name, file]))

interface More {
  readonly env?: Readonly<Record<string, string>>
  readonly words?: readonly string[]
  readonly cwd?: string
  readonly way?: Way
}

const run = (script: string, { words = allow('stranger.test:9443'), ...more }: More): Promise<Result> =>
  resultOf({ through: of.world.through, words, command: shell(script), ...more })

describeWith('root', "a company's certificates", () => {
  beforeAll(async () => {
    of = await openTerminationWorld()
    const { path, remove } = await newDirectory({ mode: 0o755 })
    company = join(path, 'company.pem')
    await copyFile(join(of.directory, 'stranger-ca.pem'), company)
    await chmod(company, 0o644)
    return remove
  })
  afterAll(() => of?.close())

  eachWay('curl, git, node and Python trust them, and without the variables none does', async (way) => {
    const script = `curl -sS -o /dev/null ${URL} && echo curl
git ls-remote ${URL} 2>&1 | grep -qi certificate || echo git
${NODE}
${PYTHON} -c 'import urllib.request as u, urllib.error as e
try: u.urlopen("${URL}")
except e.HTTPError: pass
print("python")'; true`
    const { stdout, stderr } = await run(script, { env: all(company), way })
    expect([stdout, stderr]).toEqual(['curl\ngit\ntrue\npython\n', ''])
    expect((await run(script, { env: {}, way })).stdout).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE\n')
  })

  test('a file shows its certificates and no other byte', async () => {
    const directory = await temporaryDirectory({ mode: 0o755 })
    const mixed = join(directory, 'mixed.pem')
    const key = await readFile(join(of.directory, 'stranger-ca.key'), 'utf8')
    const certificate = await readFile(company, 'utf8')
    await writeFile(
      mixed,
      `password=hidden-1\n${key}${certificate}# hidden-2\n-----BEGIN CERTIFICATE-----\nhidden 3!\n-----END CERTIFICATE-----\n`,
    )
    const { stdout } = await run('cat $NODE_EXTRA_CA_CERTS', { env: all(mixed) })
    expect(stdout.trim()).toBe(certificate.trim())
  })

  test('what holds no certificate, or lies where a command may write, is left out with a warning that repeats nothing', async () => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const secret = join(cwd, 'secret')
    await writeFile(secret, 'hidden-4')
    await copyFile(company, join(cwd, 'own.pem'))
    const link = join(await temporaryDirectory({ mode: 0o755 }), 'link.pem')
    await symlink(join(cwd, 'own.pem'), link)
    const way = join(cwd, 'way.pem')
    await symlink(company, way)
    const words = [...allow('stranger.test:9443'), '--rw', '.']
    for (const file of [
      secret,
      join(cwd, 'own.pem'),
      link,
      way,
      '/etc/shadow',
      '/dev/zero',
      `${cwd}/nothing`,
      'own.pem',
      `${company}\n`,
      '/proc/self/environ',
    ]) {
      const env = { NODE_EXTRA_CA_CERTS: file }
      const { stdout, warnings } = await run('echo "[$NODE_EXTRA_CA_CERTS]"; ls /etc/.llm-do 2>&1 | wc -l', {
        cwd,
        words,
        env,
      })
      expect([file, stdout.split('\n')[0], warnings]).toEqual([
        file,
        '[]',
        [expect.stringMatching(/^NODE_EXTRA_CA_CERTS: /)],
      ])
      expect(JSON.stringify(warnings)).not.toContain('hidden')
    }
  })

  test('a run without network shows none, and a kept plan holds until the file changes', async () => {
    const env = { NODE_EXTRA_CA_CERTS: company }
    expect((await run('echo "[$NODE_EXTRA_CA_CERTS]"', { words: [], env })).stdout).toBe('[]\n')
    const file = join(await temporaryDirectory({ mode: 0o755 }), 'changing.pem')
    await copyFile(company, file)
    const count = async () =>
      (await run('grep -c BEGIN $NODE_EXTRA_CA_CERTS', { env: { NODE_EXTRA_CA_CERTS: file } })).stdout
    expect([await count(), await count()]).toEqual(['1\n', '1\n'])
    const certificate = await readFile(file, 'utf8')
    await writeFile(file, certificate + (await readFile(join(of.directory, 'ca.pem'), 'utf8')))
    expect(await count()).toBe('2\n')
    await rename(file, `${file}.other`)
    await symlink(company, file)
    expect(await count()).toBe('1\n')
    await rm(file)
    await symlink(`${file}.other`, file)
    expect(await count()).toBe('2\n')
  })
})
