/** The packages of npm, made of the checkout for this machine, and installed without npm where a test is not about npm. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { checkoutFor, currentUser } from './users.ts'

const CHECKOUT = checkoutFor(currentUser())

export interface Packages {
  /** The library and the way to the client. */
  readonly command: string
  /** The native programs of this machine. */
  readonly platform: string
}

/** @param directory gets a directory `packages` */
export async function packFor(directory: string): Promise<Packages> {
  const packages = join(directory, 'packages')
  const script = join(CHECKOUT, 'packaging/npm.mjs')
  const programs = (await execa('make', ['-s', '-C', CHECKOUT, 'native-programs'])).stdout
  await execa(process.execPath, [script, packages, `${process.arch}=${join(CHECKOUT, 'bin')}`], {
    env: { NATIVE_PROGRAMS: programs },
  })
  const { stdout } = await execa('ls', [packages])
  const [command = '', platform = ''] = stdout.split('\n').map((name) => join(packages, name))
  return { command, platform }
}

export async function installPackages(modules: string, { command, platform }: Packages): Promise<void> {
  const places = [
    ['llm-do-exec', command],
    [`@llm-do/exec-linux-${process.arch}`, platform],
  ] as const
  for (const [name, file] of places) {
    const place = join(modules, name)
    await mkdir(place, { recursive: true })
    await execa('tar', ['xzf', file, '--strip-components', '1', '-C', place])
  }
}
