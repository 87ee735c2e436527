/**
 * Which files of system tests run alone, and which begin first: with several files at a time, a long one that begins last would have the
 * machine for itself. vitest knows how long a file took from an earlier run only, and a fresh checkout has none.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const fileOf = (name: string): string => `tests/${name}.system.test.ts`

/** They count what `prune` removes, what runs leave or what is in the one directory of root's, leave records for it, or compare times. */
export const ALONE = [
  'backends/command-line',
  'cow/keeping',
  'cow/start',
  'cow/state',
  'cli/node-options',
  'escape/group',
  'escape/own-directory',
  'escape/stuck',
  'escape/sweeper',
  'fleet-server/queue',
  'pool/kills',
  'pool/stale',
  'pool/warm',
  'real/lost',
  'real/many',
  'real/terminal-bounds',
  'support/leftovers',
].map(fileOf)

/** Some rows of the adversary's table in one of its cells, for a run without the whole table. */
export const COVERED = ['adversary/quick'].map(fileOf)

/** What they are about is the same for every user: a run of the tests as a plain user beside one as root leaves them to root's. */
export const USERLESS = [
  'cli/node-options',
  'fuzz/fuzz',
  'launch-cache/environment',
  'library/package',
  'native/answer',
  'native/arm64',
  'native/filter',
  'native/rules',
  'native/words',
  'network/judge',
  'packaging/deb',
].map(fileOf)

/** Over twenty seconds on two processors, the longest first. */
const LONG = [
  'adversary/table',
  'library/library',
  'conformance/conformance',
  'launch-cache/front',
  'hints/hints',
  'backends/docker/network',
  'network/credentials',
  'escape/filters',
  'backends/docker/run',
  'packaging/npm',
  'pool/library',
  'cow/attacks',
  'network/attacks',
  'escape/watchdog',
  'cow/many',
  'escape/protect',
  'doctor/threat-model',
  'learn/learn',
  'network/restricted',
  'cow/session',
  'run/background',
  'escape/links',
  'cli/transcripts',
  'cow/elsewhere',
  'real/terminal',
  'network/proxy',
  'real/denials',
  'escape/planted-programs',
  'backends/docker/protect',
  'explain/attacks',
].map(fileOf)

const rankOf = ({ moduleId }: TestSpecification): number => {
  const at = LONG.findIndex((name) => moduleId.endsWith(`/${name}`))
  return at < 0 ? LONG.length : at
}

const groupOf = ({ project }: TestSpecification): number => project.config.sequence.groupOrder

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.sort((a, b) => groupOf(a) - groupOf(b) || rankOf(a) - rankOf(b))
  }
}
