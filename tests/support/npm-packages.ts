/** The packages of npm, made of the checkout for this machine, and installed without npm where a test is not about npm. */
import { join } from 'node:path'
import { execa } from 'execa'
import { checkoutFor, currentUser } from './users.ts'

const CHECKOUT = checkoutFor(currentUser())

export interface Packages {
  /** The library and the way to the client. */
  readonly command: string
  /** The files that only a fleet needs. */
  readonly fleet: string
  /** The native programs of this machine. */
  readonly platform: string
}

async function make(...words: readonly string[]): Promise<void> {
  const programs = (await execa('make', ['-s', '-C', CHECKOUT, 'native-programs'])).stdout
  const script = join(CHECKOUT, 'packaging/npm.mjs')
  await execa(process.execPath, [script, ...words, `${process.arch}=${join(CHECKOUT, 'bin')}`], {
    env: { NATIVE_PROGRAMS: programs },
  })
}

/** @param directory gets a directory `packages` */
export async function packFor(directory: string): Promise<Packages> {
  const packages = join(directory, 'packages')
  await make(packages)
  const { stdout } = await execa('ls', [packages])
  const [command = '', fleet = '', platform = ''] = stdout.split('\n').map((name) => join(packages, name))
  return { command, fleet, platform }
}

/** @param modules a directory `node_modules` */
export const installPackages = (modules: string): Promise<void> => make('--installed', modules)
