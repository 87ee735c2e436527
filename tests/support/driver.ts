/**
 * Native programs of the tests, which `make drivers` builds and `make test` does before it begins: drivers print what the native part
 * answers, with AddressSanitizer and UBSan; guests run in sandboxes.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { checkoutFor, currentUser, type User } from './users.ts'

/** The program of tests/NAME.c. */
export const driver = (name: string): string => built(join(checkoutFor(currentUser()), 'build/drivers', name))

/** The program NAME.c of tests/programs or tests/adversary/programs. */
export const guest = (name: string): string => join(guestDirectory(), name)

/** The directory of all guests, as a user can read it. */
export const guestDirectory = (user: User = currentUser()): string =>
  built(join(checkoutFor(user), 'build/drivers/guests'))

function built(path: string): string {
  if (!existsSync(path)) throw new Error(`${path} is missing (hint: make drivers)`)
  return path
}
