/**
 * Nothing that a command of root leaves in a zone of root is root for anybody: no file capabilities, no set-id bits, whatever
 * filter was asked for. tests/programs/plant-root.c tries it in every way that the kernel has; the copies are then executed on
 * the host by another user.
 */
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, describe, expect, test } from 'vitest'
import { compileProfile, toHex } from '../../src/seccomp/compile.ts'
import { rulesOf } from '../../src/seccomp/rules.ts'
import { type Arch, SYSCALL_NAMES } from '../../src/seccomp/syscalls.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { ENGINES, type Engine, sh, type TestSite } from './chain.ts'
import { planOnce } from './launch.ts'

const ARCH = process.arch as Arch
const PLAIN = ['--reuid', '65534', '--regid', '65534', '--clear-groups']

/** A file that gives back all that a file can: namespaces, attributes, io_uring. */
const OPEN_FILE = `extends: default\nallow: [${SYSCALL_NAMES.join(', ')}]\n`
const UNSHARE_FILE = 'extends: default\nallow: [unshare]\n'
const FILTERS = ['default', 'strict', 'off', UNSHARE_FILE, OPEN_FILE] as const
const CASES = ENGINES.flatMap((engine) => FILTERS.map((filter) => ({ engine, filter, title: filter.slice(0, 40) })))

const built: { plant: string } = { plant: '' }

async function makePlantSite(): Promise<TestSite> {
  const base = await temporaryDirectory({ mode: 0o755 })
  const zone = join(base, 'zone')
  mkdirSync(zone)
  return { base, zone, probe: built.plant }
}

interface Planted {
  readonly lines: readonly string[]
  /** Files of the zone that are root for another user of the host. */
  readonly root: readonly string[]
  readonly setId: readonly string[]
}

async function plant(engine: Engine, seccomp: string, filter?: string): Promise<Planted> {
  const site = await makePlantSite()
  const file = join(site.base, 'filter.yaml')
  writeFileSync(file, seccomp)
  const isName = !seccomp.includes('\n')
  const planned = await planOnce({
    site,
    engine,
    // Protected names are of no interest here, and a filter with namespaces might be refused for them.
    values: { seccomp: isName ? seccomp : file, protectNot: ['*'] },
    command: ['/probe', 'plant', '/zone'],
    ...(filter !== undefined && { filter }),
  })
  const { outcome, stdout } = await planned.run()
  expect(outcome).toMatchObject({ cause: 'exit', exitCode: 0 })
  const names = readdirSync(site.zone)
  const root: string[] = []
  for (const name of names) {
    const { stdout: checked } = await execa('setpriv', [...PLAIN, join(site.zone, name), 'check'], { reject: false })
    if (checked === 'root') root.push(name)
  }
  return {
    lines: stdout.trim().split('\n'),
    root,
    setId: names.filter((name) => (statSync(join(site.zone, name)).mode & 0o6000) !== 0),
  }
}

const succeeded = ({ lines }: Planted): readonly string[] => lines.filter((line) => line.endsWith(' ok'))

describeWith(['root', 'gcc', 'userns'], 'a command of root', () => {
  beforeAll(async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    built.plant = join(path, 'plant-root')
    const source = join(import.meta.dirname, '../programs/plant-root.c')
    await execa('gcc', ['-D_GNU_SOURCE=', '-O1', '-Wall', '-Wextra', '-Werror', '-static', '-o', built.plant, source])
    chmodSync(built.plant, 0o755)
    return remove
  })

  test.each(ENGINES)('gets no writable zone of root where it may make mounts (%s)', async (engine) => {
    await expect(plant(engine, 'nested')).rejects.toThrow("is root's and cannot be writable under seccomp nested")
  })

  test.each(CASES)('plants nothing that is root for another user ($engine, $title)', async ({ engine, filter }) => {
    const planted = await plant(engine, filter)
    expect(planted.lines.length).toBeGreaterThan(8)
    expect({ ...planted, lines: succeeded(planted) }).toEqual({ lines: [], root: [], setId: [] })
  })

  describe('without what is kept in the filter', () => {
    const hand = (profile: Parameters<typeof compileProfile>[0]['profile']) =>
      toHex(compileProfile({ profile, arch: ARCH }).filter)
    const open = hand({ ...rulesOf('nested'), allow: SYSCALL_NAMES })

    test.each(ENGINES)('does it by all four calls, and by io_uring: the control (%s)', async (engine) => {
      const planted = await plant(engine, 'off', open)
      const lacks = (way: string) => planted.lines.some((line) => line.includes(way) && line.endsWith('ENOSYS'))
      const [all, newer] = [
        ['setxattr', 'lsetxattr', 'fsetxattr'],
        ['setxattrat', 'ring-fsetxattr'],
      ]
      // Linux 6.13, and a host may forbid io_uring.
      const there = [...all, ...newer.filter((way) => !lacks(way))].map((way) => `namespace-${way}`)
      const byMode = ['plain-fchmodat', 'plain-fchmodat-high', 'namespace-fchmodat', 'namespace-fchmodat-high']
      expect(planted.root).toEqual(expect.arrayContaining([...there, ...byMode]))
      expect(planted.setId.length).toBeGreaterThan(0)
    })

    test('does it with a file that allows unshare alone: the control', async () => {
      const planted = await plant('unshare', UNSHARE_FILE, hand({ ...rulesOf('default'), allow: ['unshare'] }))
      expect(planted.root).toContain('namespace-setxattr')
    })
  })
})

describeWith(['root', 'userns'], 'everyday tools of root', () => {
  const TREE = 'mkdir -p a/b; echo x >a/b/f; chmod 750 a/b/f; ln -s f a/b/l; touch -d 2020-01-01 a/b/f'
  const SAME = 'test -L to/b/l && test "$(stat -c "%a %Y" a/b/f)" = "$(stat -c "%a %Y" to/b/f)" && echo same'
  const TOOLS: readonly (readonly [string, string])[] = [
    ['cp -a', `${TREE}; cp -a a to && ${SAME}`],
    ['cp --preserve=all', `${TREE}; cp -r --preserve=all -P a to && ${SAME}`],
    ['tar', `${TREE}; mkdir to; tar c -C a . | tar xp -C to && ${SAME}`],
    [
      'tar --xattrs --acls',
      `${TREE}; mkdir to; tar c --xattrs --acls -C a . | tar xp --xattrs --acls -C to && ${SAME}`,
    ],
    ['install and mv', `${TREE}; mkdir to; cp -a a/b to/ && mv to/b/f to/b/g && mv to/b/g to/b/f && ${SAME}`],
    ['git', 'git init -q a && cd a && git -c user.name=n -c user.email=e commit -q --allow-empty -m m && echo same'],
    ['python', `${TREE}; python3 -c 'import shutil; shutil.copytree("a", "to", symlinks=True)' && ${SAME}`],
    [
      'node',
      `${TREE}; node -e 'require("fs").cpSync("a", "to", {recursive: true, preserveTimestamps: true, verbatimSymlinks: true})' && ${SAME}`,
    ],
  ]
  test.each(TOOLS)('%s works without attributes', async (_, script) => {
    const site = await makePlantSite()
    const planned = await planOnce({
      site: { ...site, probe: '/bin/true' },
      engine: 'unshare',
      command: sh(`cd /tmp && ${script}`),
    })
    const { outcome, stdout } = await planned.run()
    expect({ stdout, stderr: Buffer.from(outcome.stderr.head).toString(), code: outcome.exitCode }).toMatchObject({
      stdout: 'same\n',
      code: 0,
    })
  })
})
