import { spawn } from 'node:child_process'
import { mkdir, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from './directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from './leftovers.ts'
import { testWith } from './needs.ts'

test('a run that leaves nothing passes', async () => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  await expectNothingLeft({ before, mark })
})

test('a process that outlives its run is named', async () => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const child = spawn('sleep', ['600'], { env: { MARK: mark }, detached: true, stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  await expect(expectNothingLeft({ before, mark, graceMs: 100 })).rejects.toThrow(`${child.pid} sleep`)
})

test('a process without the mark is found by the child that carries it', async () => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const script = 'read -r mark; sleep 600 & env MARK="$mark" sleep 600 & wait'
  const parent = spawn('sh', ['-c', script], {
    env: { PATH: process.env.PATH },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  onTestFinished(() => void process.kill(-(parent.pid ?? 0), 'SIGKILL'))
  parent.stdin?.end(`${mark}\n`)
  const isThere = async (): Promise<boolean> => (await takeSnapshot({ mark })).processes.length === 3
  await expect.poll(isThere, { timeout: 10_000 }).toBe(true)
  await expect(expectNothingLeft({ before, mark, graceMs: 100 })).rejects.toThrow(`${parent.pid} sh`)
})

test('a record of a run that is over is named', async () => {
  const mark = newMark()
  const runs = await temporaryDirectory()
  const before = await takeSnapshot({ mark, runsDirectories: [runs] })
  await writeFile(join(runs, 'r-1'), '')
  const left = expectNothingLeft({ before, mark, runsDirectories: [runs], graceMs: 100 })
  await expect(left).rejects.toThrow(join(runs, 'r-1'))
})

test('a temporary directory that stays is named', async () => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const place = join(tmpdir(), `llm-do-leftover-${mark}`)
  await mkdir(place)
  onTestFinished(() => rmdir(place))
  await expect(expectNothingLeft({ before, mark, graceMs: 100 })).rejects.toThrow(place)
})

testWith('root', 'a mount that stays is named', async () => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const place = await temporaryDirectory()
  const { execa } = await import('execa')
  await execa('mount', ['-t', 'tmpfs', `llm-do-${mark}`, place])
  onTestFinished(async () => void (await execa('umount', [place])))
  await expect(expectNothingLeft({ before, mark, graceMs: 100 })).rejects.toThrow(place)
})
