/** The negative control of protected paths: the same launch without the records that native/lib/guard.c reads. */

import type { NativeLaunch } from '../../src/backends/launch.ts'
import { type LaunchRecord, writeLaunchFile } from '../../src/backends/namespace/launch-file.ts'
import { VERBS } from '../../src/contract.ts'
import type { Verb } from '../../src/text/launch-entries.ts'

export function recordsOf(bytes: Uint8Array): readonly LaunchRecord[] {
  const words = Buffer.from(bytes).toString('utf8').split('\0').slice(1)
  const records: LaunchRecord[] = []
  for (let at = 0; words[at] !== 'end'; ) {
    const verb = words[at] as Verb
    const length = VERBS[verb] + 1
    records.push(words.slice(at, at + length) as unknown as LaunchRecord)
    at += length
  }
  return records
}

export function withRecords(
  launch: NativeLaunch,
  change: (records: readonly LaunchRecord[]) => readonly LaunchRecord[],
): NativeLaunch {
  const descriptors = launch.descriptors.map((descriptor) =>
    descriptor.fd === 3 && descriptor.carries === 'bytes'
      ? { ...descriptor, bytes: writeLaunchFile(change(recordsOf(descriptor.bytes))) }
      : descriptor,
  )
  return { ...launch, descriptors }
}

export const unguarded = (launch: NativeLaunch): NativeLaunch =>
  withRecords(launch, (records) => records.filter(([verb]) => verb !== 'protect' && verb !== 'git'))
