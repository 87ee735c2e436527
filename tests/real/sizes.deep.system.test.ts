/** Java sizes its heap by the limits of the run. */
import { expect } from 'vitest'
import { describeWith, testWith } from '../support/needs.ts'
import { textHere } from './in-process.ts'

describeWith('userns', '/sys', () => {
  testWith('network-clients', 'shows java its memory, or a variable does', async () => {
    const heap = async (...options: readonly string[]) => {
      const { err } = await textHere([...options, '--', 'java', '-XshowSettings:vm', '-version'])
      return {
        size: /Max\. Heap Size \(Estimated\): (\S+)/.exec(err)?.[1],
        version: Number(/version "(\d+)/.exec(err)?.[1]),
      }
    }
    const { size, version } = await heap('--memory', '512m')
    // A quarter, less what a garbage collector keeps for itself. Java 25 looks at the file system on top, docs/reference/limits.md says.
    if (version < 25) expect(size).toMatch(/^12\d\.\d+M$/)
    expect((await heap('--env', 'JAVA_TOOL_OPTIONS=-XX:MaxRAM=512m')).size).toMatch(/^12\d\.\d+M$/)
  })
})
