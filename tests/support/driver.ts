/**
 * Native programs of the tests, which `make drivers` builds and `make test` does before it begins: drivers print what the native part
 * answers, with AddressSanitizer and UBSan; guests run in sandboxes.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { checkoutFor, currentUser, type User } from './users.ts'

/** The program of tests/NAME.c. */
export const driver = (name: string): string => built(join(checkoutFor(currentUser()), 'build/drivers', name))

/** The program NAME.c of tests/programs or tests/adversary/programs. */
export const guest = (name: string): string => join(guestDirectory(), name)

/** The directory of all guests, as a user can read it. */
export const guestDirectory = (user: User = currentUser()): string =>
  built(join(checkoutFor(user), 'build/drivers/guests'))

/** Compiles tests/programs/wasi-guest.c. @returns the file */
export async function compileGuest(file: string, ...words: readonly string[]): Promise<string> {
  const source = join(import.meta.dirname, '../programs/wasi-guest.c')
  await execa('clang-16', ['--target=wasm32-wasi', '--sysroot=/usr', '-O1', source, ...words, '-o', file])
  return file
}

function built(path: string): string {
  if (!existsSync(path)) throw new Error(`${path} is missing (hint: make drivers)`)
  return path
}
