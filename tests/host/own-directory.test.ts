import {
  chmodSync,
  chownSync,
  lchownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { usableCache } from '../../src/host/boot-cache.ts'
import { ownDirectory, secretDirectory } from '../../src/host/own-directory.ts'
import { sealOf, takeSecret } from '../../src/host/secret.ts'
import { temporaryDirectory } from '../support/directory.ts'

const self = process.getuid?.() ?? 0
const WITHOUT_SESSION = 64_321
/** As a user that is not root; as root the directories are given to that id. */
const uid = self === 0 ? WITHOUT_SESSION : self
/** Taken where the variable names no usable directory: that of the session, if this user has one. */
const fallback = secretDirectory({}, uid)

async function privateDirectory(): Promise<string> {
  const directory = await temporaryDirectory()
  if (self === 0) chownSync(directory, uid, uid)
  return directory
}

describe('The directory of the secret', () => {
  test('is below /run for root, whatever the variables say', () => {
    expect(secretDirectory({ XDG_RUNTIME_DIR: '/elsewhere', HOME: '/h' }, 0)).toBe('/run/llm-do')
  })

  test("is in a user's runtime directory", async () => {
    const directory = await privateDirectory()
    expect(secretDirectory({ XDG_RUNTIME_DIR: directory }, uid)).toBe(join(directory, 'llm-do'))
  })

  test.each<[title: string, spoil: (directory: string) => void]>([
    ['others may write to', (directory) => chmodSync(directory, 0o777)],
    ['others may write to, although it is sticky', (directory) => chmodSync(directory, 0o1777)],
    ['holds a link of that name', (directory) => symlinkSync('/', join(directory, 'llm-do'))],
    [
      'holds a directory of that name that others may enter',
      (directory) => mkdirSync(join(directory, 'llm-do'), { mode: 0o755 }),
    ],
    ['holds a file of that name', (directory) => writeFileSync(join(directory, 'llm-do'), '')],
  ])('is not in one that %s', async (_title, spoil) => {
    const directory = await privateDirectory()
    spoil(directory)
    // Its content belongs to the user, so its mode decides and not its owner.
    if (self === 0) for (const name of readdirSync(directory)) lchownSync(join(directory, name), uid, uid)
    expect(secretDirectory({ XDG_RUNTIME_DIR: directory }, uid)).toBe(fallback)
  })

  test.runIf(self === 0)('is not in one of another user', async () => {
    expect(secretDirectory({ XDG_RUNTIME_DIR: await temporaryDirectory() }, uid)).toBeUndefined()
  })

  test('is nowhere without one', () => {
    expect(secretDirectory({}, WITHOUT_SESSION)).toBeUndefined()
    expect(secretDirectory({ XDG_RUNTIME_DIR: '' }, uid)).toBe(fallback)
    expect(secretDirectory({ XDG_RUNTIME_DIR: 'relative' }, uid)).toBe(fallback)
  })
})

test('Without a runtime directory the records are below /tmp', () => {
  expect(ownDirectory({}, WITHOUT_SESSION)).toBe(`/tmp/llm-do-${WITHOUT_SESSION}`)
})

describe('The secret', () => {
  const owner = { uid: self }
  /** For root the place is fixed; the checks are the same. */
  const inputs = async () => ({ env: { XDG_RUNTIME_DIR: await temporaryDirectory() }, ...owner })

  test.runIf(self !== 0)('is 32 random bytes in a file that only its user can read, and stays', async () => {
    const request = await inputs()
    const secret = takeSecret(request)
    const file = join(request.env.XDG_RUNTIME_DIR, 'llm-do/key')
    expect([secret?.length, statSync(file).mode & 0o777, statSync(file).nlink]).toEqual([32, 0o600, 1])
    expect([takeSecret(request), readFileSync(file)]).toEqual([secret, secret])
    expect(takeSecret(await inputs())).not.toEqual(secret)
  })

  test.runIf(self !== 0)('is none when the file is not safely ours', async () => {
    const request = await inputs()
    takeSecret(request)
    const file = join(request.env.XDG_RUNTIME_DIR, 'llm-do/key')
    linkSync(file, `${file}2`)
    expect(takeSecret(request)).toBeUndefined()
  })

  test('seals by HMAC with BLAKE2b-512, as a published example has it', () => {
    // RFC 4231's key and text of case 2; the sum is Python's hmac.new(b"Jefe", ..., hashlib.blake2b).
    expect(sealOf(Buffer.from('Jefe'), Buffer.from('what do ya want for nothing?'))).toBe(
      '6ff884f8ddc2a6586b3c98a4cd6ebdf14ec10204b6710073eb5865ade37a2643b8807c1335d107ecdb9ffeaeb6828c4625ba172c66379efcd222c2de11727ab4',
    )
    expect(sealOf(Buffer.alloc(32), Buffer.from('a'))).not.toBe(sealOf(Buffer.alloc(32, 1), Buffer.from('a')))
  })
})

describe('A cache', () => {
  test('is used in a home of our own', async () => {
    const home = await temporaryDirectory()
    expect(usableCache({ HOME: home }, self)).toBe(join(home, '.cache/llm-do'))
  })

  test('is not used in the home of another user, as sudo may leave it', async () => {
    const home = await temporaryDirectory()
    expect(usableCache({ HOME: home }, self + 1)).toBeUndefined()
    expect(usableCache({ HOME: '/nowhere', XDG_CACHE_HOME: home }, self + 1)).toBeUndefined()
  })
})
