/** Shared by the escape tests: a place with zones and the probe, and runs in it by the built command. */
import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/directory.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

export const ENGINES = ['bwrap', 'unshare'] as const
export type Engine = (typeof ENGINES)[number]

export interface TestSite {
  readonly base: string
  /** Holds `notes` with `host`. */
  readonly zone: string
  /** The probe as the host calls it; inside it is at PROBE. */
  readonly probe: string
}

export const PROBE = '/probe'

export const probeFile = (): string => join(checkoutFor(currentUser()), 'bin', 'probe')

/** @param own where it is made, by default a directory of the running test */
export async function makeTestSite(own?: string): Promise<TestSite> {
  const base = own ?? (await temporaryDirectory({ mode: 0o755 }))
  const zone = join(base, 'zone')
  await mkdir(zone)
  await writeFile(join(zone, 'notes'), 'host\n')
  const probe = join(base, 'probe')
  await copyFile(probeFile(), probe)
  await chmod(probe, 0o755)
  return { base, zone, probe }
}

/** Words of a run that shows the probe and has the zone at /zone. */
export const words = (
  site: TestSite,
  { engine, mode = 'rw', options = [] }: { engine: Engine; mode?: 'ro' | 'rw'; options?: readonly string[] },
  command: readonly string[],
): readonly string[] => [
  ...['--engine', engine, '--ro', `${site.probe}:${PROBE}`, '--zone', `zone=${site.zone}:/zone:${mode}`],
  ...['--workdir', '/tmp', ...options, '--', ...command],
]

/** Engines of a run that writes to a zone of this user. */
export const WITH_AND_WITHOUT_NAMESPACES: readonly { readonly engine: string; readonly words: readonly string[] }[] = [
  { engine: 'unshare', words: ['--engine', 'unshare'] },
  // Without namespaces a zone of root cannot be lent, and the kernel counts all processes of the user, those of other files, too.
  ...(currentUser() === 'root' ? [] : [{ engine: 'none', words: ['--backend', 'no-namespaces', '--pids', '30000'] }]),
]

export const sh = (script: string): readonly string[] => ['/bin/sh', '-c', script]
