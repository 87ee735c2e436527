/**
 * Which files of system tests run alone, and which begin first: with two files at a time, a long one that begins last would have the
 * machine for itself. vitest knows how long a file took from an earlier run only, and a fresh checkout has none.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const fileOf = (name: string): string => `tests/${name}.system.test.ts`

/** They count what `prune` removes or what is in the one directory of root's, leave records for it, or compare times. */
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

/** Over ten seconds on two processors. */
const LONG = [
  'adversary/table',
  'conformance/conformance',
  'backends/docker/run',
  'backends/docker/protect',
  'escape/filters',
  'launch-cache/front',
  'network/clients',
  'recipes',
  'network/attacks',
  'network/proxy',
  'backends/docker/network',
  'pool/library',
  'escape/watchdog',
  'escape/protect',
  'doctor/threat-model',
  'escape/kill-runner',
  'escape/links',
  'escape/planted-programs',
  'real/bad-input',
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
