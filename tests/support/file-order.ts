/**
 * Which files of system tests run alone, and which begin first: with several files at a time, a long one that begins last would have the
 * machine for itself. vitest knows how long a file took from an earlier run only, and a fresh checkout has none.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const fileOf = (name: string): string => `tests/${name}.system.test.ts`

/** They compare times: nothing else runs. */
export const ALONE = ['real/terminal-bounds'].map(fileOf)

/** They count what `prune` removes, what runs leave or what is in a user's one directory, or leave records for it: nothing else of theirs runs. */
export const ONE_BY_ONE = [
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
  'support/leftovers',
].map(fileOf)

/** Some rows of the adversary's table in one of its cells, for a run without the whole table. */
export const COVERED = ['adversary/quick'].map(fileOf)

/** What they are about is the same for every user: a run of the tests as a plain user beside one as root leaves them to root's. */
export const USERLESS = [
  'backends/namespace/run-protocol',
  'cli/completion',
  'cli/help-text',
  'cli/images',
  'cli/load-bundle',
  'cli/node-options',
  'cli/shell',
  'cli/transcripts',
  'cow/many',
  'fleet/agent',
  'fleet/batch',
  'fleet-server/page',
  'fleet-server/queue',
  'fleet-server/queue-rules',
  'fleet-server/together',
  'fuzz/fuzz',
  'launch-cache/audit',
  'launch-cache/environment',
  'library/library',
  'library/package',
  'mcp/stdio',
  'native/answer',
  'native/arm64',
  'native/filter',
  'native/rules',
  'native/words',
  'network/judge',
  'packaging/action',
  'packaging/deb',
  'packaging/image',
  'packaging/npm',
  'pool/library',
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
