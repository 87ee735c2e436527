/**
 * The two users that tests run as. As root, a plain user is had by setpriv: an id without a name, groups or privileges, which
 * is the harder case (nothing about it is in passwd). As anybody else there is only that user.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'

export type User = 'root' | 'plain'

/** Uid and gid of the plain user; the same as in scripts/test.mjs. */
export const PLAIN_ID = 65533

export const currentUser = (): User => (process.getuid?.() === 0 ? 'root' : 'plain')

/** The uid and gid that a user has in this process. */
export const uidOf = (user: User): number =>
  user === currentUser() ? (process.getuid?.() ?? 0) : user === 'root' ? 0 : PLAIN_ID

const CHECKOUT = join(import.meta.dirname, '../..')

/**
 * The checkout as a user can read it: root's own may live below a private directory, so scripts/test.mjs makes a copy for the
 * plain user and names it in LLM_DO_TEST_PLAIN_CHECKOUT.
 */
export function checkoutFor(user: User): string {
  return (user === currentUser() ? undefined : process.env.LLM_DO_TEST_PLAIN_CHECKOUT) ?? CHECKOUT
}

/** argv words that start a program as a user from this process. */
export function becoming(user: User): readonly string[] {
  if (user === currentUser()) return []
  if (user === 'root') throw new Error('a plain user cannot become root (hint: describeWith("root", ...))')
  return ['setpriv', '--reuid', `${PLAIN_ID}`, '--regid', `${PLAIN_ID}`, '--clear-groups', '--']
}

/** Can this process run programs as a plain user, from a checkout that user can read? */
export function canBePlain(): boolean {
  if (currentUser() === 'plain') return true
  if (process.env.LLM_DO_TEST_PLAIN_CHECKOUT !== undefined) return true
  return everyParentIsOpen(CHECKOUT)
}

/**
 * The users that a file tries, one after the other. As root these are both, but not where `make test` runs the whole file once more as a
 * plain user: the same test would say the same thing twice.
 */
export const callers = (): readonly User[] =>
  currentUser() === 'root' && canBePlain() && process.env.LLM_DO_TEST_PLAIN_STAGE === undefined
    ? ['root', 'plain']
    : [currentUser()]

/** Root may look anywhere, so what others may do is read from the mode bits. */
function everyParentIsOpen(path: string): boolean {
  const parent = join(path, '..')
  const othersMayEnter = (statSync(path).mode & 0o001) !== 0
  return othersMayEnter && (parent === path || everyParentIsOpen(parent))
}
