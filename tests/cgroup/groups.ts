/** Groups of the host's own cgroup v2 tree for tests, gone when the test is. */
import { mkdtempSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { findCgroupMount } from '../../src/cgroup/tree.ts'

export const cgroupRoot = (): string | undefined =>
  findCgroupMount(readFileSync('/proc/self/mountinfo', 'utf8'))?.directory

/** A new, empty group directly below the root of the tree. */
export function newGroup(): string {
  const root = cgroupRoot()
  if (root === undefined) throw new Error('no cgroup v2 is mounted here')
  const group = mkdtempSync(join(root, 'llm-do-test-'))
  onTestFinished(() => removeTree(group))
  return group
}

async function removeTree(group: string): Promise<void> {
  writeFileSync(join(group, 'cgroup.kill'), '1')
  while (/^populated 1$/m.test(readFileSync(join(group, 'cgroup.events'), 'utf8'))) await sleep(5)
  removeEmpty(group)
}

function removeEmpty(group: string): void {
  const children = readdirSync(group, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  for (const child of children) removeEmpty(join(group, child.name))
  rmdirSync(group)
}
