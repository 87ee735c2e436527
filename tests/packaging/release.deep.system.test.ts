/**
 * The files of a release as their users install them: in new Debian systems that have no compiler, tried by a plain user there.
 * Debian 13 gets its own node; Debian 12 has too old a one and gets this machine's as a package.
 */
import { chown, mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, describe, expect, test } from 'vitest'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import { nodePackage } from './node-package.ts'

const CHECKOUT = checkoutFor(currentUser())
const RELEASE = { REPOSITORY: 'https://github.com/someone/llm-do-exec', MAINTAINER: 'A Name <name@mail.org>' }
const USER = 1000
/** Builds for both machines and fetches a system: on a busy machine some minutes. */
const SETUP_MS = 600_000
const ARCH = process.arch
const DEB = process.arch === 'x64' ? 'amd64' : 'arm64'

/** A new root of the process, with nothing of the host but /dev, the files and the name server's address. */
const ENTER = `
mount --make-rprivate /
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs -o mode=755 run "$1/run"
mount --bind "$2" "$1/files"
cd "$1" && pivot_root . mnt && umount -l /mnt && cd /
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$4" LC_ALL=C DEBIAN_FRONTEND=noninteractive \\
  setpriv --reuid "$3" --regid "$3" --clear-groups sh -euc "$5"`

interface System {
  readonly root: string
  readonly files: string
}

function enter({ root, files }: System, uid: number, script: string) {
  const home = uid === 0 ? '/root' : '/home/user'
  const words = ['--mount', '--pid', '--fork', 'sh', '-euc', ENTER, 'sh', root, files, `${uid}`, home, script]
  return execa('unshare', words, { reject: false })
}

async function must(system: System, uid: number, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await enter(system, uid, script)
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0)
  return stdout
}

/** The first steps of a new user: an allowed action, a denied one, and what Node alone answers. */
async function works(system: System, before = ''): Promise<void> {
  const script = `${before}
    ! command -v cc gcc musl-gcc c99 clang
    rm -rf ~/project && mkdir ~/project && cd ~/project
    llm-do exec --rw . -- sh -c 'id -u; echo inside >made'
    cat made
    llm-do exec -c 'echo x >made' 2>/dev/null || echo "denied, $?"
    llm-do --version
    llm-do profiles | grep -o '^strict'
    llm-do-exec --json=shell -- echo other`
  expect((await must(system, USER, script)).split('\n')).toEqual([
    `${USER}`,
    'inside',
    expect.stringMatching(/^denied, \d/),
    expect.stringMatching(/^\d+\.\d+\.\d+$/),
    'strict',
    '{"stdout":"other\\n","stderr":"","exit_code":0,"truncated":false}',
  ])
}

describeWith(['root', 'aarch64-cc', 'mmdebstrap', 'dpkg-deb', 'userns'], 'the files of a release', () => {
  const state = { files: '', version: '' }
  beforeAll(async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    state.files = join(path, 'files')
    await execa('make', ['-C', CHECKOUT, 'release-files', `RELEASE=${state.files}`], { env: RELEASE })
    state.version = JSON.parse(await readFile(join(CHECKOUT, 'package.json'), 'utf8')).version
    return remove
  }, SETUP_MS)

  test('are those of both machines, each with its checksum in SHA256SUMS and in the notes', async () => {
    const { files, version } = state
    const arches = ['arm64', 'x64'].flatMap((arch) => [
      `llm-do-exec-${version}-linux-${arch}.tar.gz`,
      `llm-do-exec-linux-${arch}-${version}.tgz`,
      `llm-do-exec_${version}_${arch.replace('x64', 'amd64')}.deb`,
    ])
    const names = ['.spdx.json', '.tgz'].map((end) => `llm-do-exec-${version}${end}`)
    const python = [`llm_do_exec-${version}-py3-none-any.whl`, `llm_do_exec-${version}.tar.gz`]
    const own = [...names, `llm-do-exec-fleet-${version}.tgz`, ...python]
    expect((await readdir(files)).toSorted()).toEqual([...arches, ...own, 'NOTES.md', 'SHA256SUMS'].toSorted())
    const { stdout } = await execa('sha256sum', ['--check', 'SHA256SUMS'], { cwd: files })
    expect(stdout.split('\n')).toHaveLength(arches.length + own.length)
    const notes = await readFile(join(files, 'NOTES.md'), 'utf8')
    for (const line of (await readFile(join(files, 'SHA256SUMS'), 'utf8')).trim().split('\n')) {
      const [sum, name] = line.split('  ')
      expect(notes).toContain(`| ${name} | \`${sum}\` |`)
    }
  })

  test('name the address and the maintainer', async () => {
    const { files, version } = state
    const deb = join(files, `llm-do-exec_${version}_${DEB}.deb`)
    const { stdout } = await execa('dpkg-deb', ['-f', deb, 'Maintainer', 'Homepage'])
    expect(stdout).toBe(`Maintainer: ${RELEASE.MAINTAINER}\nHomepage: ${RELEASE.REPOSITORY}#readme`)
    for (const name of [`llm-do-exec-${version}.tgz`, `llm-do-exec-linux-${ARCH}-${version}.tgz`]) {
      const manifest = (await execa('tar', ['-xzOf', join(files, name), 'package/package.json'])).stdout
      expect(JSON.parse(manifest)).toMatchObject({
        license: 'MIT',
        author: RELEASE.MAINTAINER,
        repository: { url: `git+${RELEASE.REPOSITORY}.git` },
        bugs: { url: `${RELEASE.REPOSITORY}/issues` },
      })
    }
  })

  test('the SBOM describes each file, and lists what is bundled and linked', async () => {
    const { files, version } = state
    const sbom = JSON.parse(await readFile(join(files, `llm-do-exec-${version}.spdx.json`), 'utf8')) as Sbom
    const sums = (await readFile(join(files, 'SHA256SUMS'), 'utf8')).trim().split('\n')
    const described = sbom.packages.flatMap(({ packageFileName, checksums }) =>
      packageFileName === undefined ? [] : [`${checksums?.[0]?.checksumValue}  ${packageFileName}`],
    )
    expect(described).toEqual(sums.filter((line) => !line.endsWith('.spdx.json')))
    const { dependencies } = JSON.parse(await readFile(join(CHECKOUT, 'package.json'), 'utf8'))
    const names = sbom.packages.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining([...Object.keys(dependencies), 'musl', 'glibc', 'libgcc']))
    const ids = sbom.packages.map(({ SPDXID }) => SPDXID)
    expect(new Set(ids).size, 'no id twice').toBe(ids.length)
    const related = sbom.relationships.map(({ relatedSpdxElement }) => relatedSpdxElement)
    expect(related.filter((id) => !ids.includes(id))).toEqual([])
  })

  test('the programs for the other machine are static ones of that machine', async () => {
    const { files, version } = state
    const { path, remove } = await newDirectory()
    try {
      for (const [arch, machine] of [
        ['arm64', /AArch64/],
        ['x64', /X86-64/],
      ] as const) {
        const name = `llm-do-exec-${version}-linux-${arch}`
        await execa('tar', ['-xzf', join(files, `${name}.tar.gz`), '-C', path])
        for (const program of await readdir(join(path, name, 'lib/llm-do-exec/bin'))) {
          const file = join(path, name, 'lib/llm-do-exec/bin', program)
          const { stdout } = await execa('readelf', ['--wide', '--file-header', '--segments', file])
          expect(stdout, file).toMatch(machine)
          expect(stdout, file).not.toContain('INTERP')
        }
      }
    } finally {
      await remove()
    }
  })

  describe.each([
    ['Debian 12', 'bookworm', (files: string) => nodePackage(join(files, 'node.deb')), '/files/node.deb'],
    ['Debian 13', 'trixie', async () => undefined, ''],
  ] as const)('in a new %s without a compiler', (_, suite, prepare, node) => {
    const system = { root: '', files: '' }
    beforeAll(async () => {
      const { path, remove } = await newDirectory({ mode: 0o755 })
      system.root = join(path, 'root')
      system.files = join(path, 'files')
      await execa('cp', ['-R', state.files, system.files])
      await prepare(system.files)
      await execa('mmdebstrap', ['--quiet', '--variant=minbase', '--include=ca-certificates', suite, system.root])
      for (const name of ['files', 'home/user']) await mkdir(join(system.root, name), { recursive: true })
      await chown(join(system.root, 'home/user'), USER, USER)
      await execa('cp', ['/etc/resolv.conf', join(system.root, 'etc/resolv.conf')])
      return remove
    }, SETUP_MS)

    test('apt-get installs the package with its dependency, and removes it', { timeout: SETUP_MS }, async () => {
      expect((await enter(system, USER, 'llm-do --version')).exitCode, 'the control').toBe(127)
      const file = `/files/llm-do-exec_${state.version}_${DEB}.deb`
      await must(system, 0, `apt-get -qq update; apt-get -qq install -y --no-install-recommends ${node} ${file}`)
      await works(system)
      await must(system, 0, 'apt-get -qq remove -y llm-do-exec')
      expect((await enter(system, USER, 'llm-do --version')).exitCode).toBe(127)
    })

    test('the static archive works where a plain user has unpacked it', async () => {
      const archive = `/files/llm-do-exec-${state.version}-linux-${ARCH}.tar.gz`
      const path = 'PATH=$HOME/.local/bin:$PATH'
      await works(system, `${path}; mkdir -p ~/.local && tar -xzf ${archive} -C ~/.local --strip-components=1`)
    })

    test('npm installs its packages for a plain user', { timeout: SETUP_MS }, async () => {
      await execa('cp', ['-R', '/usr/lib/node_modules/npm', join(system.root, 'home/npm')])
      const packages = [`linux-${ARCH}-${state.version}`, state.version].map((one) => `/files/llm-do-exec-${one}.tgz`)
      const words = `install --global --prefix ~/npm --offline --no-audit --no-fund ${packages.join(' ')}`
      await works(system, `node /home/npm/bin/npm-cli.js ${words} >/dev/null; PATH=$HOME/npm/bin:$PATH`)
    })
  })
})

interface Sbom {
  readonly packages: readonly {
    readonly SPDXID: string
    readonly name: string
    readonly packageFileName?: string
    readonly checksums?: readonly { readonly checksumValue: string }[]
  }[]
  readonly relationships: readonly { readonly relatedSpdxElement: string }[]
}
