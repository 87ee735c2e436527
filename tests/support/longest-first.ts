/**
 * The files that take longest begin first: with two files at a time, a long one that begins last would have the machine for itself. vitest
 * knows how long a file took from an earlier run only, and a fresh checkout has none.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Over ten seconds on two processors. */
const LONG = [
  'adversary/table',
  'conformance/conformance',
  'backends/docker/run',
  'backends/docker/protect',
  'escape/filters',
  'pool/library',
  'launch-cache/front',
  'real/terminal-bounds',
  'escape/watchdog',
  'escape/kill-runner',
  'pool/warm',
  'escape/protect',
  'doctor/threat-model',
  'pool/kills',
  'escape/links',
  'escape/planted-programs',
  'real/bad-input',
].map((name) => `/tests/${name}.system.test.ts`)

const rankOf = ({ moduleId }: TestSpecification): number => {
  const at = LONG.findIndex((name) => moduleId.endsWith(name))
  return at < 0 ? LONG.length : at
}

const groupOf = ({ project }: TestSpecification): number => project.config.sequence.groupOrder

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.sort((a, b) => groupOf(a) - groupOf(b) || rankOf(a) - rankOf(b))
  }
}
