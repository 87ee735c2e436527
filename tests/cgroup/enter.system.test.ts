/** The question that launch answers before a first run, on groups of the kernel's own. */
import { mkdirSync, readFileSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { processQuestions } from '../../src/backends/namespace/probe-host.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { runPart } from '../support/host-part.ts'
import { describeWith } from '../support/needs.ts'
import { newGroup } from './groups.ts'

const NATIVE_DIRECTORY = join(import.meta.dirname, '../../bin')

const probe = async (...groups: readonly string[]): Promise<string> =>
  (await runPart('launch', ['--probe-host', ...groups])).stdout

const VERSION = /^\d+$/
const ENTERED = /^entered\n\d+$/

test('A directory that is no group is not entered, and the version is told all the same', async () => {
  expect(await probe()).toMatch(VERSION)
  expect(await probe(await temporaryDirectory())).toMatch(VERSION)
  expect(await probe('/nonexistent/group')).toMatch(VERSION)
})

describeWith('root', 'a process is started in a group', () => {
  test('that takes one, which is gone when the answer is there', async () => {
    const group = join(newGroup(), 'inner')
    mkdirSync(group)
    expect(await probe(group)).toMatch(ENTERED)
    expect(readFileSync(join(group, 'cgroup.procs'), 'utf8')).toBe('')
    rmdirSync(group)
  })

  test('but not in one that takes none, for whose words a shell is asked', async () => {
    const above = newGroup()
    const [threads, group] = [join(above, 'threads'), join(above, 'invalid')]
    mkdirSync(threads)
    writeFileSync(join(threads, 'cgroup.type'), 'threaded')
    mkdirSync(group) // "domain invalid", next to threads (cgroup-v2.rst)
    expect(await probe(group)).toMatch(VERSION)
    const questions = processQuestions(NATIVE_DIRECTORY)
    expect(await questions.enter(group)).toEqual({ why: expect.stringMatching(/.+/), isPassing: false })
    expect(await questions.landlockAbi()).toBe(Number(await probe()))
  })

  test('and not through a symbolic link', async () => {
    const link = join(await temporaryDirectory(), 'link')
    symlinkSync(newGroup(), link)
    expect(await probe(link)).toMatch(VERSION)
  })
})
