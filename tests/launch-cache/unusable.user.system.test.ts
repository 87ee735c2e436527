/** Reasons against a cached plan: the client leaves the run to node, and starts nothing of the plan. */
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sealOf, takeSecret } from '../../src/host/secret.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith, testWith, unmetNeeds } from '../support/needs.ts'
import { cachedFiles, cacheOf, program, runIn, runtimeOf, settle, site, statusWithoutNode } from './client.ts'

const WORDS = ['--profile', './p.yaml', '--', 'cat']
const JSON_WORDS = ['--json', ...WORDS]
const OTHER_USER = 12_345
const isRoot = process.getuid?.() === 0
/** Without the variable the key is there. */
const hasSession = existsSync(`/run/user/${process.getuid?.()}`)
const isFirst = unmetNeeds(['one-user']).length === 0

const profileFile = (): string => join(site.current.work, 'p.yaml')
const profile = (memory: string): void =>
  writeFileSync(profileFile(), `sandbox: { extends: default, resources: { memory: ${memory} } }\n`)

/** Only node can have that status: the client used no plan. */
const expectUnused = async (words = WORDS): Promise<void> => expect(await statusWithoutNode(words)).toBe(99)

describeWith(['bwrap', 'one-user'], 'a cached plan', () => {
  beforeEach(async () => {
    profile('100m')
    await settle(profileFile())
    await runIn(WORDS)
    expect(await statusWithoutNode(WORDS)).toBe(0)
  })

  test.each<readonly [string, () => void]>([
    ['the profile has changed', () => profile('200m')],
    ['the profile is gone', () => rmSync(profileFile())],
    [
      'a profile that it extends appears earlier in the search order',
      () => {
        const directory = join(site.current.home, '.config', 'llm-do', 'profiles')
        mkdirSync(directory, { recursive: true })
        writeFileSync(join(directory, 'default.yaml'), 'sandbox: {}\n')
      },
    ],
    [
      'the program that planned it was built anew',
      () => {
        const file = join(dirname(program()), '../dist/cli.cjs')
        writeFileSync(file, readFileSync(file))
      },
    ],
    [
      'it was made in another directory',
      () => {
        site.current = { ...site.current, work: join(site.current.work, 'below') }
        mkdirSync(site.current.work)
        profile('100m')
      },
    ],
  ])('is not used when %s', async (_, change) => {
    change()
    await expectUnused()
  })

  test('is not used when the profile has the same size and times but other content, both written long ago', async () => {
    const old = (memory: string): void => {
      profile(memory)
      utimesSync(profileFile(), new Date(0), new Date(0))
    }
    old('300m')
    await settle(profileFile())
    await runIn(WORDS)
    expect(await statusWithoutNode(WORDS)).toBe(0)
    old('900m')
    await expectUnused()
  })
})

describeWith('bwrap', 'a cached plan that was changed', () => {
  const kept = { site: { home: '', work: '' }, plan: '', json: '', files: new Map<string, Buffer>() }

  beforeAll(async () => {
    const { path: home, remove } = await newDirectory()
    site.current = { home, work: join(home, 'work') }
    kept.site = site.current
    for (const directory of [site.current.work, runtimeOf(site.current)]) mkdirSync(directory, { mode: 0o700 })
    profile('100m')
    await settle(profileFile())
    await runIn(WORDS)
    kept.plan = cachedFiles()[0] ?? ''
    await runIn(JSON_WORDS)
    kept.json = cachedFiles().find((file) => file !== kept.plan) ?? ''
    for (const file of [kept.plan, kept.json, ...(isRoot ? [] : [keyFile()])]) kept.files.set(file, readFileSync(file))
    return remove
  })

  /** All is as node has left it. */
  beforeEach(async () => {
    site.current = kept.site
    for (const [file, bytes] of kept.files) {
      rmSync(file, { force: true })
      rmSync(`${file}2`, { force: true })
      mkdirSync(dirname(file), { recursive: true })
      chmodSync(dirname(file), 0o700)
      writeFileSync(file, bytes, { mode: 0o600 })
    }
    expect(await statusWithoutNode(WORDS)).toBe(0)
  })

  const keyFile = (): string => join(runtimeOf(site.current), 'llm-do/key')

  const rewrite = (change: (bytes: Buffer) => Buffer | string): void => {
    const good = readFileSync(kept.plan)
    const bad = Buffer.from(change(good))
    expect(bad).not.toEqual(good)
    writeFileSync(kept.plan, bad)
  }
  const replace = (from: RegExp, to: string): void =>
    rewrite((bytes) => Buffer.from(bytes.toString('latin1').replace(from, to), 'latin1'))

  /** The secret of the user who runs this test and the command. */
  const secretHere = (): Buffer =>
    takeSecret({ env: { XDG_RUNTIME_DIR: runtimeOf(site.current) }, uid: process.getuid?.() ?? 0 }) ?? Buffer.alloc(0)

  /** With the seal that belongs to it: only what it says is wrong. */
  const forge = (bytes: Buffer, change: (records: string) => string, secret: Uint8Array = secretHere()): Buffer => {
    const [magic = '', check = '', , ...rest] = bytes.toString('latin1').split('\0')
    const records = Buffer.from(change(rest.join('\0')), 'latin1')
    return Buffer.concat([Buffer.from([magic, check, sealOf(secret, records), ''].join('\0')), records])
  }
  const plant = (from: RegExp | string, to: string): void =>
    rewrite((bytes) => forge(bytes, (records) => records.replace(from, to)))
  const asIs = (records: string): string => records

  /** The same for every user: root has it, where root runs the tests. */
  const byAnyUser = isFirst ? describe : describe.skip

  byAnyUser('whose file', () => {
    test.each<readonly [string, () => void]>([
      ['is empty', () => rewrite(() => '')],
      ['is cut', () => rewrite((bytes) => bytes.subarray(0, bytes.length - 20))],
      [
        'has another byte',
        () => rewrite((bytes) => Buffer.from(bytes.map((byte, at) => (at === 900 ? byte ^ 1 : byte)))),
      ],
      ['is longer', () => rewrite((bytes) => Buffer.concat([bytes, Buffer.from('seccomp\0')]))],
      ['may be read by others: mode 0644', () => chmodSync(kept.plan, 0o644)],
      ['lies in a directory that others may reach', () => chmodSync(cacheOf(site.current), 0o755)],
      [
        'is a symbolic link',
        () => {
          renameSync(kept.plan, `${kept.plan}2`)
          symlinkSync(`${kept.plan}2`, kept.plan)
        },
      ],
      ['is sealed with another key', () => rewrite((bytes) => forge(bytes, asIs, Buffer.alloc(32, 7)))],
      ['is sealed with an empty key', () => rewrite((bytes) => forge(bytes, asIs, Buffer.alloc(32)))],
      ['has a seal that is cut', () => replace(/\0check\0(.{127})./, '\0check\0$1')],
      ['has the sum of earlier versions', () => replace(/\0check\0.{128}/, '\0check\0cbf29ce484222325')],
      [
        'has a seal in capital letters',
        () =>
          rewrite((bytes) => {
            const [magic = '', check = '', seal = '', ...rest] = bytes.toString('latin1').split('\0')
            return Buffer.from([magic, check, seal.toUpperCase(), ...rest].join('\0'), 'latin1')
          }),
      ],
      ['has no seal', () => replace(/\0check\0.{128}/, '')],
      ['is sealed, but has no places', () => plant(/at\0[^\0]*\0[^\0]*\0/g, '')],
      ['is sealed, but has no files', () => plant(/content\0[^\0]*\0[^\0]*\0/g, '')],
      // The name of the file is only a sum of the words that the plan is for.
      ['is sealed, but for another word', () => plant(/\0key\0PATH=[^\0]*\0/, '\0key\0PATH=/nowhere\0')],
      ['is sealed, but for a word less', () => plant(/\0key\0[^\0]*\0at\0/, '\0at\0')],
      ['is sealed, but for a word more', () => plant('\0at\0', '\0key\0more\0at\0')],
    ])('is not used when it %s', async (_, change) => {
      change()
      await expectUnused()
    })

    // Node reports an engine that cannot be started, too: 125 would be a plan that was used.
    test.each([
      ['no path', 'bwrap\0word\0bwrap'],
      ['gone', 'bwrap\0word\0/no/such/bwrap'],
      ['unknown', 'other'],
    ])('is not used when its engine is %s', async (_, engine) => {
      plant('\0engine\0unshare\0', `\0engine\0${engine}\0`)
      expect((await runIn(WORDS)).status).toBe(0)
    })

    test('is used when it is sealed with the right key: the control', async () => {
      plant('\0hostname\0sandbox\0', '\0hostname\0planted\0')
      expect(await statusWithoutNode(WORDS)).toBe(0)
    })

    test.each<readonly [string, (records: string) => string]>([
      ['has an unknown form', (records) => records.replace('\0result\0native\0', '\0result\0other\0')],
      ['is there, but nothing is captured', (records) => records.replace('\0capture\x001048576\0', '\0')],
      ['is not there, but the output is captured', (records) => records.replaceAll(/result\0[^\0]*\0[^\0]*\0/g, '')],
      ['keeps a number of bytes that is none', (records) => records.replace('capture\x001048576', 'capture\x00-1')],
    ])('is not used when its answer %s', async (_, change) => {
      const good = readFileSync(kept.json)
      writeFileSync(kept.json, forge(good, asIs))
      expect(await statusWithoutNode(JSON_WORDS)).toBe(0)
      const bad = forge(good, change)
      expect(bad).not.toEqual(good)
      writeFileSync(kept.json, bad)
      await expectUnused(JSON_WORDS)
    })
  })

  describe.runIf(!isRoot)('whose key', () => {
    test.each<readonly [string, (key: string) => void]>([
      ['is gone', (key) => rmSync(key)],
      ['is another one', (key) => writeFileSync(key, Buffer.alloc(32))],
      ['is too short', (key) => writeFileSync(key, 'short')],
      ['can be read by others', (key) => chmodSync(key, 0o644)],
      ['has a second name', (key) => linkSync(key, `${key}2`)],
      [
        'is a link',
        (key) => {
          renameSync(key, `${key}2`)
          symlinkSync(`${key}2`, key)
        },
      ],
      ['lies in a directory that others may enter', (key) => chmodSync(dirname(key), 0o755)],
      ['lies below a directory that others may write', (key) => chmodSync(join(key, '../..'), 0o777)],
    ])('%s is not used', async (_, change) => {
      change(keyFile())
      await expectUnused()
      chmodSync(runtimeOf(site.current), 0o700)
    })

    test.skipIf(hasSession)('has no directory is neither made nor used', async () => {
      const env = { XDG_RUNTIME_DIR: '' }
      rmSync(cacheOf(site.current), { recursive: true })
      await runIn(WORDS, env)
      expect([cachedFiles(), await statusWithoutNode(WORDS, env)]).toEqual([[], 99])
    })
  })

  testWith('root', 'is not used when its file or its directory is another user’s', async () => {
    for (const path of [cacheOf(site.current), kept.plan]) {
      chownSync(path, OTHER_USER, OTHER_USER)
      await expectUnused()
      chownSync(path, 0, 0)
      expect(await statusWithoutNode(WORDS)).toBe(0)
    }
  })

  testWith('root', 'is not used with an engine of another user', async () => {
    const engine = join(site.current.home, 'bwrap')
    writeFileSync(engine, '#!/bin/sh\n', { mode: 0o755 })
    plant('\0engine\0unshare\0', `\0engine\0bwrap\0word\0${engine}\0`)
    // The control: one of root's own is trusted, and is not an engine.
    expect((await runIn(WORDS)).status).toBe(125)
    chownSync(engine, OTHER_USER, OTHER_USER)
    expect((await runIn(WORDS)).status).toBe(0)
  })
})
