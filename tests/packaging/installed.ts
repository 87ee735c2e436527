/** The files that `make install` puts below DESTDIR and PREFIX. */
import { join } from 'node:path'
import { execa } from 'execa'
import { newDirectory } from '../support/directory.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const CHECKOUT = checkoutFor(currentUser())
export const PREFIX = '/opt/my tools'

export const make = (target: string, destdir: string) =>
  execa('make', ['-C', CHECKOUT, target, `DESTDIR=${destdir}`, `PREFIX=${PREFIX}`])

/** @returns the prefix as it is on this machine */
export async function installed(): Promise<string> {
  // It is removed with the directory of the test file.
  const { path: destdir } = await newDirectory({ mode: 0o755 })
  await make('install', destdir)
  return join(destdir, PREFIX)
}
