/** Helpers decide what a sandbox is, so one that somebody else could have changed is not started. */
import { chmod, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkHelpers, HELPERS, packageRoot, packageVersion } from '../../src/os/native-helpers.ts'
import { temporaryDirectory } from '../support/directory.ts'

/** The first 20 bytes of an ELF file for a machine: 62 x86_64, 183 aarch64, 3 the old 32-bit one (elf(5)). */
function elf(machine: number): Buffer {
  const header = Buffer.alloc(64)
  header.write('\x7fELF', 'latin1')
  header.writeUInt16LE(machine, 18)
  return header
}

async function helpers(machine = 62): Promise<string> {
  const place = await temporaryDirectory()
  for (const name of HELPERS) await writeFile(join(place, name), elf(machine), { mode: 0o755 })
  return place
}

/** How each one is broken, and what is said about it. */
const BROKEN: readonly (readonly [string, (file: string) => Promise<unknown>, RegExp])[] = [
  ['is missing', (file) => rm(file), /cannot be opened \(ENOENT\)/],
  ['is a symbolic link', (file) => rm(file).then(() => symlink('/bin/true', file)), /cannot be opened \(ELOOP\)/],
  ['is a directory', (file) => rm(file).then(() => mkdir(file)), /is not a regular file/],
  ['can be written by everybody', (file) => chmod(file, 0o757), /can be written by others/],
  ['can be written by its group', (file) => chmod(file, 0o775), /can be written by others/],
  ['is not executable', (file) => chmod(file, 0o644), /cannot be executed/],
  ['is made for another machine', (file) => writeFile(file, elf(183)), /is made for arm64, this machine is x64/],
  ['is made for a machine nobody knows', (file) => writeFile(file, elf(3)), /is made for an unknown machine/],
  ['is a script', (file) => writeFile(file, '#!/bin/sh\n# a script that is long enough\n'), /not an ELF file/],
  ['is empty', (file) => writeFile(file, ''), /not an ELF file/],
]

test('good helpers are accepted', async () => {
  const [own, other] = [await helpers(), await helpers(183)]
  expect(() => checkHelpers(own, 'x64')).not.toThrow()
  expect(() => checkHelpers(other, 'arm64')).not.toThrow()
})

test.each(BROKEN)('a helper that %s is refused, with what to do', async (_title, breakIt, says) => {
  const place = await helpers()
  await breakIt(join(place, 'init'))
  const refusal = {
    code: 'HELPER_MISSING',
    message: expect.stringMatching(says),
    hint: expect.stringMatching(/make native|chmod|chown/),
  }
  expect(() => checkHelpers(place, 'x64')).toThrow(expect.objectContaining(refusal))
})

test('the package is found from its sources', async () => {
  expect(await readdir(packageRoot())).toEqual(expect.arrayContaining(['package.json', 'profiles', 'native']))
  expect(packageVersion()).toMatch(/^\d+\.\d+\.\d+/)
})
