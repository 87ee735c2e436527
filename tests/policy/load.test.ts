import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  describeProfiles,
  listProfiles,
  loadProfile,
  type ProfileRequest,
  profileDirectoryOf,
} from '../../src/policy/load.ts'
import { profileName } from '../../src/policy/profile-layer.ts'
import { mergeLayers } from './layers.ts'

const SHIPPED = path.join(import.meta.dirname, '../../profiles')

interface ProfileSite {
  readonly root: string
  readonly own: string
  readonly shipped: string
  readonly write: (file: string, text: string | Uint8Array) => string
  readonly load: (name: string, change?: Partial<ProfileRequest>) => ReturnType<typeof loadProfile>
}

function makeSite(): ProfileSite {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), 'profiles-')))
  const [own, shipped] = [path.join(root, 'own'), path.join(root, 'shipped')]
  mkdirSync(own)
  mkdirSync(shipped)
  const write = (file: string, text: string | Uint8Array) => {
    writeFileSync(path.join(root, file), text)
    return path.join(root, file)
  }
  return {
    root,
    own,
    shipped,
    write,
    load: (name, change) =>
      loadProfile({ name, cwd: root, configDirectory: own, shippedDirectory: shipped, ...change }),
  }
}

const current: { site?: ProfileSite } = {}
const site = (): ProfileSite => current.site!
beforeEach(() => {
  current.site = makeSite()
})
afterEach(() => rmSync(site().root, { recursive: true }))

const profile = (text: string) => `sandbox:\n  ${text}\n`

describe('a profile', () => {
  test('by name comes from the user before the shipped one', async () => {
    site().write('shipped/a.yaml', profile('tty: false'))
    const own = site().write('own/a.yaml', profile('tty: true'))
    expect((await site().load('a')).read).toEqual([own])
  })

  test('brings what it extends, base first, and says which files were read and which were looked for', async () => {
    const base = site().write('shipped/base.yaml', profile('description: base'))
    const top = site().write('own/top.yml', profile('extends: base'))
    const loaded = await site().load('top')
    expect(loaded.read).toEqual([base, top])
    expect(loaded.missing).toEqual([
      path.join(site().own, 'top.yaml'),
      path.join(site().own, 'base.yaml'),
      path.join(site().own, 'base.yml'),
    ])
    expect(loaded.layers.map(({ source, directory }) => [source, directory])).toEqual([
      [base, site().shipped],
      [top, site().own],
    ])
  })

  test('by path is relative to the caller, what it extends by path to itself', async () => {
    mkdirSync(path.join(site().root, 'sub'))
    const base = site().write('base.yaml', profile('description: base'))
    const top = site().write('sub/top.yaml', profile('extends: ../base.yaml'))
    expect((await site().load('./sub/top.yaml')).read).toEqual([base, top])
  })

  test('of the user may extend the shipped one of the same name, also through a symbolic link', async () => {
    const shipped = site().write('shipped/a.yaml', profile('tty: false'))
    const own = site().write('own/a.yaml', profile('extends: a'))
    expect((await site().load('a')).read).toEqual([shipped, own])
    symlinkSync(site().own, path.join(site().root, 'link'))
    const linked = await site().load('a', { configDirectory: path.join(site().root, 'link') })
    expect([linked.read, linked.found.at(-1)]).toEqual([[shipped, own], path.join(site().root, 'link/a.yaml')])
  })

  test('host paths are relative to the real place of the file', async () => {
    mkdirSync(path.join(site().root, 'real'))
    site().write('real/a.yaml', profile('zones: [{name: d, hostPath: ./d}]'))
    symlinkSync(path.join(site().root, 'real/a.yaml'), path.join(site().own, 'a.yaml'))
    const policy = mergeLayers((await site().load('a')).layers, { profile: 'a', home: '' })
    expect(policy.zones[0]).toMatchObject({
      hostPath: path.join(site().root, 'real/d'),
      origin: { source: `${path.join(site().root, 'real/a.yaml')}:2` },
    })
  })

  test('may be a text, whose paths are relative to the caller, and which is no file', async () => {
    mkdirSync(path.join(site().root, 'sub'))
    const base = site().write('sub/base.yaml', profile('description: base'))
    const text = '{"sandbox": {"extends": "./base.yaml", "zones": [{"name": "d", "hostPath": "./d"}]}}'
    const loaded = await site().load(text, { cwd: path.join(site().root, 'sub') })
    expect([loaded.read, loaded.found]).toEqual([[base], [base]])
    expect(mergeLayers(loaded.layers, { profile: 'a', home: '' }).zones[0]).toMatchObject({
      hostPath: path.join(site().root, 'sub/d'),
      origin: { source: '--profile:1' },
    })
    expect([profileName(text), profileName('strict')]).toEqual(['--profile', 'strict'])
  })

  test('is no text where another one extends it', async () => {
    site().write('top.yaml', profile(`extends: '{"sandbox": {}}'`))
    await expect(site().load('./top.yaml')).rejects.toMatchObject({ code: 'PROFILE_NOT_FOUND' })
  })
})

describe('a profile that cannot be used', () => {
  const refusal = (name: string) =>
    site()
      .load(name)
      .then(
        () => undefined,
        (error: unknown) => error,
      )

  test('that is not there is told with where was looked and the nearest name', async () => {
    site().write('shipped/node-build.yaml', profile('tty: true'))
    expect(await refusal('nod-build')).toMatchObject({
      code: 'PROFILE_NOT_FOUND',
      message: `no profile "nod-build" in ${site().own} or ${site().shipped}. Did you mean "node-build"?`,
      hint: 'llm-do profiles',
    })
    expect(await refusal('./x.yaml')).toMatchObject({
      code: 'PROFILE_NOT_FOUND',
      message: `no profile file ${site().root}/x.yaml.`,
    })
  })

  test('whose base is not there names the file that extends it', async () => {
    const file = site().write('own/a.yaml', profile('extends: b'))
    expect(await refusal('a')).toMatchObject({
      code: 'PROFILE_NOT_FOUND',
      message: expect.stringContaining(`${file}: extends: no profile "b"`),
    })
  })

  test.each<[string, Readonly<Record<string, string>>, string, string]>([
    ['itself', { 'shipped/a.yaml': 'a' }, 'a', 'a -> a'],
    ['itself by path', { 'own/a.yaml': './a.yaml' }, 'a', 'a -> ./a.yaml'],
    ['a circle', { 'own/a.yaml': 'b', 'own/b.yaml': 'c', 'own/c.yaml': 'b' }, 'a', 'b -> c -> b'],
    ["the user's and the shipped one in turn", { 'own/a.yaml': 'a', 'shipped/a.yaml': 'a' }, 'a', 'a -> a -> a'],
  ])('that extends %s is told as a circle', async (_what, files, name, chain) => {
    for (const [file, base] of Object.entries(files)) site().write(file, profile(`extends: ${base}`))
    expect(await refusal(name)).toMatchObject({
      code: 'PROFILE_CYCLE',
      message: expect.stringContaining(`: ${chain}.`),
      hint: expect.stringContaining('.yaml'),
    })
  })

  test('that extends without end is told as one', async () => {
    for (let index = 0; index < 40; index++) site().write(`own/p${index}.yaml`, profile(`extends: p${index + 1}`))
    expect(await refusal('p0')).toMatchObject({ code: 'PROFILE_CYCLE' })
  })

  test.each<[string, (file: string) => void, string]>([
    ['a directory', (file) => mkdirSync(file), 'it is a directory'],
    ['a FIFO', (file) => execFileSync('mkfifo', [file]), 'it is not a regular file'],
    ['a circle of links', (file) => symlinkSync(file, file), 'its symbolic links go in a circle (ELOOP)'],
    ['too large', (file) => writeFileSync(file, ' '.repeat(1024 ** 2 + 1)), 'expected at most 1048576'],
    ['not UTF-8', (file) => writeFileSync(file, Uint8Array.from([0x61, 0xff])), 'expected UTF-8 text'],
    ['not YAML', (file) => writeFileSync(file, 'sandbox:\n  a: [1\n'), ':3:1: '],
    ['the same key twice', (file) => writeFileSync(file, profile('tty: true\n  tty: false')), ':3:3: Map keys must be'],
  ])('because it is %s is told with the reason', async (_what, make, reason) => {
    const file = path.join(site().own, 'a.yaml')
    make(file)
    const error = await refusal('a')
    expect(error).toMatchObject({
      code: 'PROFILE_UNREADABLE',
      message: expect.stringContaining(file),
      hint: expect.stringMatching(/./),
    })
    expect((error as Error).message).toContain(reason)
  })

  test.each<[string, string]>([
    ['', 'expected a mapping with the key sandbox, got nothing.'],
    ['- a', 'expected a mapping with the key sandbox, got a list.'],
    ['sandbox:', 'sandbox: expected a mapping, got nothing.'],
    ['sandbx: {}', 'expected only the key sandbox at the top, got "sandbx". Did you mean "sandbox"?'],
  ])('because its text is %j is told what was expected', async (text, problem) => {
    site().write('own/a.yaml', text)
    expect(await refusal('a')).toMatchObject({ code: 'POLICY_INVALID', message: expect.stringContaining(problem) })
  })

  test('because it is closed to the user is told so, and no other profile is taken instead', async () => {
    chmodSync(site().write('own/a.yaml', profile('tty: true')), 0o000)
    site().write('shipped/a.yaml', profile('tty: false'))
    const error = await asPlainUser(() => refusal('a'))
    expect(error).toMatchObject({
      code: 'PROFILE_UNREADABLE',
      message: expect.stringContaining('permission denied (EACCES)'),
    })
  })

  test('because its name holds a NUL', async () => {
    expect(await refusal('./a\0.yaml')).toMatchObject({
      code: 'PROFILE_UNREADABLE',
      message: expect.stringContaining('NUL'),
    })
  })

  test('problems of its keys name file and line', async () => {
    const file = site().write('own/a.yaml', 'sandbox:\n  tty: true\n  resources:\n    memry: 1g\n')
    const { layers } = await site().load('a')
    expect(() => mergeLayers(layers, { profile: 'a', home: '' })).toThrow(
      `${file}:4: resources.memry: expected one of memory, `,
    )
  })
})

/** Root may read everything, so root becomes another user for the moment. */
async function asPlainUser<T>(act: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return await act()
  chmodSync(site().root, 0o755)
  process.seteuid?.(65_534)
  try {
    return await act()
  } finally {
    process.seteuid?.(0)
  }
}

test("all profiles with a name are listed, the user's own in place of shipped ones", async () => {
  for (const file of ['shipped/a.yaml', 'shipped/b.yaml', 'own/b.yml', 'own/c.yaml', 'own/readme.md', 'own/.yaml'])
    site().write(file, profile('tty: true'))
  const listed = await listProfiles({ configDirectory: site().own, shippedDirectory: site().shipped })
  expect(listed.map(({ name, from }) => [name, from])).toEqual([
    ['a', 'shipped'],
    ['b', 'user'],
    ['c', 'user'],
  ])
  expect(await listProfiles({ configDirectory: '/nowhere/at/all', shippedDirectory: '' })).toEqual([])
})

test('profiles are described by what their files say, and one that cannot be read hides no other', async () => {
  site().write('shipped/a.yaml', 'sandbox: { extends: b, description: For tests. }\n')
  site().write('own/b.yaml', 'sandbox: [\n')
  site().write('own/c.yaml', 'sandbox: { description: 7 }\n')
  const described = await describeProfiles({ configDirectory: site().own, shippedDirectory: site().shipped })
  expect(described.map(({ file: _, ...rest }) => rest)).toEqual([
    { name: 'a', from: 'shipped', description: 'For tests.', extends: 'b' },
    { name: 'b', from: 'user', problem: expect.stringContaining('b.yaml') },
    { name: 'c', from: 'user' },
  ])
})

test.each<[Readonly<Record<string, string>>, string, string]>([
  [{}, '/home/ann', '/home/ann/.config/llm-do/profiles'],
  [{ XDG_CONFIG_HOME: '/x' }, '/home/ann', '/x/llm-do/profiles'],
  [{ XDG_CONFIG_HOME: 'relative' }, '/home/ann', '/home/ann/.config/llm-do/profiles'],
  [{}, '', ''],
])('with %j and home %j own profiles are in %j', (env, home, wanted) => {
  expect(profileDirectoryOf(env, home)).toBe(wanted)
})

describe('the shipped profiles', () => {
  const MIB = 1024 ** 2
  const load = async (name: string) => {
    const { layers } = await loadProfile({ name, cwd: '/', configDirectory: '', shippedDirectory: SHIPPED })
    return mergeLayers(layers, { profile: name, home: '' })
  }

  test.each<[string, 'ro' | 'rw', object, object?]>([
    ['default', 'ro', { memory: 512 * MIB, swap: 0, cpus: 2, pids: 256, timeout: 30_000 }],
    ['task', 'rw', { memory: 512 * MIB, cpus: 2, pids: 256, timeout: 30_000, tmp: 50 * MIB, run: 10 * MIB }],
    ['build', 'rw', { memory: 2048 * MIB, cpus: null, pids: 1024, timeout: 600_000 }],
    ['ci', 'rw', { cpus: null, pids: 1024, timeout: 1_800_000 }],
    ['strict', 'ro', { memory: 256 * MIB, pids: 64, timeout: 10_000 }, { seccomp: 'strict', toolchains: 'off' }],
    ['mcp', 'ro', { timeout: null, output: null }, { dieWithParent: true }],
  ])('%s shows the workspace %s and holds its limits', async (name, workspace, resources, more = {}) => {
    const closed = { network: { mode: 'none' }, bestEffort: false, sshAgent: false, credentials: [] }
    expect(await load(name)).toMatchObject({ ...closed, dieWithParent: false, workspace, resources, ...more })
  })

  test('are all listed, each with a description', async () => {
    const listed = await listProfiles({ configDirectory: '', shippedDirectory: SHIPPED })
    expect(listed.map(({ name }) => name)).toEqual(['agent', 'build', 'ci', 'default', 'mcp', 'strict', 'task'])
    const loaded = await Promise.all(
      listed.map(({ name }) => loadProfile({ name, cwd: '/', configDirectory: '', shippedDirectory: SHIPPED })),
    )
    expect(loaded.map(({ layers }) => typeof layers.at(-1)?.values.description)).toEqual(listed.map(() => 'string'))
  })
})
