/**
 * Nothing that a command of root leaves in a zone of root is root for another user: no file capabilities, no set-id bits, whatever the
 * filter. tests/programs/plant-root.c tries it in every way that the kernel has; another user then executes the copies on the host.
 */
import { chmodSync, copyFileSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { compileProfile, toHex } from '../../src/seccomp/compile.ts'
import { shippedRules } from '../../src/seccomp/rules.ts'
import { type Arch, SYSCALL_NAMES } from '../../src/seccomp/syscalls.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { guest } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'
import { makeTestSite, sh, type TestSite } from './chain.ts'
import { planOnce } from './launch.ts'

const ARCH = process.arch as Arch
const PLAIN = ['--reuid', '65534', '--regid', '65534', '--clear-groups']

/** A file that gives back all that a file can: namespaces, attributes, io_uring. */
const OPEN_FILE = `extends: default\nallow: [${SYSCALL_NAMES.join(', ')}]\n`
const FILTERS = ['off', 'extends: default\nallow: [unshare]\n', OPEN_FILE]

async function makeSite(probe: string): Promise<TestSite> {
  const base = await temporaryDirectory({ mode: 0o755 })
  mkdirSync(join(base, 'zone'))
  return { base, zone: join(base, 'zone'), probe }
}

async function plant(seccomp: string, filter?: string) {
  const site = await makeSite(guest('plant-root'))
  const file = join(site.base, 'filter.yaml')
  writeFileSync(file, seccomp)
  const planned = await planOnce({
    site,
    engine: 'unshare',
    // Protected names are of no interest here, and a filter with namespaces might be refused for them.
    values: { seccomp: seccomp.includes('\n') ? file : seccomp, protectNot: ['*'] },
    command: ['/probe', 'plant', '/zone'],
    ...(filter !== undefined && { filter }),
  })
  const { outcome, stdout } = await planned.run()
  expect(outcome).toMatchObject({ reason: 'exit', exitCode: 0 })
  const lines = stdout.trim().split('\n')
  expect(lines.length).toBeGreaterThan(8)
  const names = readdirSync(site.zone)
  const checked = names.map(async (name) => {
    const { stdout: id } = await execa('setpriv', [...PLAIN, join(site.zone, name), 'check'], { reject: false })
    return id === 'root' ? [name] : []
  })
  return {
    lines,
    succeeded: lines.filter((line) => line.endsWith(' ok')),
    /** Files of the zone that are root for another user of the host. */
    root: (await Promise.all(checked)).flat(),
    setId: names.filter((name) => (statSync(join(site.zone, name)).mode & 0o6000) !== 0),
  }
}

describeWith(['root', 'userns'], 'a command of root', () => {
  test('gets no writable zone of root where it may make mounts', async () => {
    await expect(plant('nested')).rejects.toThrow("is root's and cannot be writable under seccomp nested")
  })

  test.each(FILTERS.map((filter) => [filter.slice(0, 40), filter]))(
    'plants nothing that is root for another user under %j',
    async (_, filter) => {
      expect(await plant(filter)).toMatchObject({ succeeded: [], root: [], setId: [] })
    },
  )

  test('control: it does so by all four calls, and by io_uring, without the part that stays in every filter', async () => {
    const profile = { ...shippedRules('nested'), allow: SYSCALL_NAMES }
    const planted = await plant('off', toHex(compileProfile({ profile, arch: ARCH }).filter))
    const lacks = (way: string) => planted.lines.some((line) => line.includes(way) && line.endsWith('ENOSYS'))
    // Linux 6.13, and a host may forbid io_uring.
    const newer = ['setxattrat', 'ring-fsetxattr'].filter((way) => !lacks(way))
    const ways = ['setxattr', 'lsetxattr', 'fsetxattr', ...newer].map((way) => `namespace-${way}`)
    const byMode = ['plain-fchmodat', 'plain-fchmodat-high', 'namespace-fchmodat', 'namespace-fchmodat-high']
    expect(planted.root).toEqual(expect.arrayContaining([...ways, ...byMode]))
    expect(planted.setId.length).toBeGreaterThan(0)
  })
})

/** In an overlay of two zones of root the kernel copies a set-id file from the read-only zone into the writable one. */
const COPY_UP = `
mount -t tmpfs none /tmp && mkdir /tmp/merged /zone/upper /zone/work || exit 1
mount -t overlay -o lowerdir=/probe,upperdir=/zone/upper,workdir=/zone/work,userxattr none /tmp/merged || exit 2
mv /tmp/merged/program /tmp/merged/moved
`

async function copyUp(owner: number) {
  const lower = await temporaryDirectory({ mode: 0o755 })
  copyFileSync('/usr/bin/id', join(lower, 'program'))
  chmodSync(join(lower, 'program'), 0o4755)
  const site = await makeSite(lower)
  await execa('chown', [`${owner}:${owner}`, site.zone])
  const planned = await planOnce({
    site,
    engine: 'unshare',
    command: ['/usr/bin/unshare', '--user', '--map-root-user', '--mount', ...sh(COPY_UP)],
    ...(owner === 0
      ? { filter: toHex(compileProfile({ profile: 'nested', arch: ARCH }).filter), withoutLandlock: true }
      : { values: { seccomp: 'nested', protectNot: ['*'] } }),
  })
  const { outcome } = await planned.run()
  const { stdout: found } = await execa('find', [site.zone, '-perm', '/6000', '-user', 'root', '-printf', '%P'])
  return { code: outcome.exitCode, found }
}

describeWith(['root', 'userns'], 'a command of root that may make mounts', () => {
  test('copies no set-id program of root into the zone of a user', async () => {
    expect((await copyUp(65534)).found).toBe('')
    // The control: with the filter of `nested` written into the launch file.
    expect(await copyUp(0)).toEqual({ code: 0, found: 'upper/moved' })
  })
})

const TREE = 'mkdir -p a/b; echo x >a/b/f; chmod 750 a/b/f; ln -s f a/b/l; touch -d 2020-01-01 a/b/f'
const SAME = 'test -L to/b/l && test "$(stat -c "%a %Y" a/b/f)" = "$(stat -c "%a %Y" to/b/f)"'
const TOOLS: Readonly<Record<string, string>> = {
  cp: 'cp -a a to',
  'cp --preserve': 'cp -r --preserve=all -P a to',
  tar: 'mkdir to; tar c -C a . | tar xp -C to',
  'tar --xattrs': 'mkdir to; tar c --xattrs --acls -C a . | tar xp --xattrs --acls -C to',
  mv: 'mkdir to; cp -a a/b to/ && mv to/b/f to/b/g && mv to/b/g to/b/f',
  git: 'cp -a a to; git init -q c && cd c && git -c user.name=n -c user.email=e commit -q --allow-empty -m m; cd ..',
  python: `python3 -c 'import shutil; shutil.copytree("a", "to", symlinks=True)'`,
  node: `node -e 'require("fs").cpSync("a", "to", {recursive: true, preserveTimestamps: true, verbatimSymlinks: true})'`,
}

describeWith(['root', 'userns', 'python'], 'everyday tools of root', () => {
  test('work without attributes', async () => {
    const each = Object.entries(TOOLS).map(
      ([name, script]) => `(mkdir "/tmp/${name}"; cd "/tmp/${name}"; ${TREE}; ${script} && ${SAME} && echo ${name})`,
    )
    const planned = await planOnce({ site: await makeTestSite(), engine: 'unshare', command: sh(each.join('\n')) })
    expect((await planned.run()).stdout.trim().split('\n')).toEqual(Object.keys(TOOLS))
  })
})
