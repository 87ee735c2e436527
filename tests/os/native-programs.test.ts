/** Native programs decide what a sandbox is, so one that another user could have changed is not started. */
import { chmod, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  checkNativePrograms,
  fleetPackages,
  NATIVE_PROGRAMS,
  packagePlaces,
  packageRoot,
  packageVersion,
} from '../../src/os/native-programs.ts'
import { temporaryDirectory } from '../support/directory.ts'

/** The first 20 bytes of an ELF file for a machine: 62 x86_64, 183 aarch64, 3 the old 32-bit one (elf(5)). */
function elf(machine: number): Buffer {
  const header = Buffer.alloc(64)
  header.write('\x7fELF', 'latin1')
  header.writeUInt16LE(machine, 18)
  return header
}

async function nativePrograms(machine = 62): Promise<string> {
  const directory = await temporaryDirectory()
  for (const name of NATIVE_PROGRAMS) await writeFile(join(directory, name), elf(machine), { mode: 0o755 })
  return directory
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
  ['is made for an unknown machine', (file) => writeFile(file, elf(3)), /is made for an unknown machine/],
  ['is a script', (file) => writeFile(file, '#!/bin/sh\n# a script that is long enough\n'), /not an ELF file/],
  ['is empty', (file) => writeFile(file, ''), /not an ELF file/],
]

test('good programs are accepted', async () => {
  const [own, other] = [await nativePrograms(), await nativePrograms(183)]
  expect(() => checkNativePrograms(own, 'x64')).not.toThrow()
  expect(() => checkNativePrograms(other, 'arm64')).not.toThrow()
})

test.each(BROKEN)('a program that %s is refused, with what to do', async (_title, breakIt, message) => {
  const directory = await nativePrograms()
  await breakIt(join(directory, 'init'))
  const refusal = {
    code: 'HELPER_MISSING',
    message: expect.stringMatching(message),
    hint: expect.stringMatching(/make native|chmod|chown/),
  }
  expect(() => checkNativePrograms(directory, 'x64')).toThrow(expect.objectContaining(refusal))
})

test('the package is found from its sources', async () => {
  expect(await readdir(packageRoot())).toEqual(expect.arrayContaining(['package.json', 'profiles', 'native']))
  expect(packageVersion()).toMatch(/^\d+\.\d+\.\d+/)
})

const COMMAND = '/m/node_modules/llm-do-exec'
const [INSIDE, BESIDE] = [`${COMMAND}/node_modules/@P`, '/m/node_modules/@P']
test.each([
  ['a checkout is alone', '/src/llm-do', ['/src/llm-do']],
  ['the command, with the programs that npm may put in it or next to it', COMMAND, [COMMAND, INSIDE, BESIDE]],
  ['the programs next to the command', BESIDE, [BESIDE, COMMAND, INSIDE, BESIDE]],
  ['the programs in the command', INSIDE, [INSIDE, COMMAND, INSIDE, BESIDE]],
])('what the next run is started from: %s', (_, root, places) => {
  const named = (path: string) => path.replace('@P', `@llm-do/exec-${process.platform}-${process.arch}`)
  expect(packagePlaces(named(root))).toEqual(places.map(named))
})

const FLEET = '@llm-do/exec-fleet'
test.each([
  ['a checkout has its own', '/src/llm-do', []],
  ['a directory that another user may fill is none of npm', '/tmp/llm-do-exec', []],
  ['the command', COMMAND, [`${COMMAND}/node_modules/${FLEET}`, `/m/node_modules/${FLEET}`]],
  ['the programs in the command', INSIDE, [`${COMMAND}/node_modules/${FLEET}`, `/m/node_modules/${FLEET}`]],
])('where the package of a fleet may be: %s', (_, root, places) => {
  expect(fleetPackages(root.replace('@P', '@llm-do/exec-linux-x64'))).toEqual(places)
})
