/** An observer that is killed or hangs, and the rights that it has; for one engine. */
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import type { Engine } from '../escape/chain.ts'
import { startCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { childrenOf, commOf, descendantsOf, readOr, until } from '../support/processes.ts'
import { currentUser } from '../support/users.ts'
import { makeSite, run, sh } from './explain.ts'

const observerBelow = (pid: number): number | undefined =>
  [pid, ...descendantsOf(pid)].flatMap(childrenOf).find((one) => commOf(one) === 'observer')

const parentOf = (pid: number): number => Number(/^PPid:\t(\d+)/m.exec(readOr(`/proc/${pid}/status`))?.[1])

/** None where what is asked for has gone meanwhile. */
function unlessGone<T>(ask: () => readonly T[]): readonly T[] {
  try {
    return ask()
  } catch {
    return []
  }
}

function opened(pid: number): readonly string[] {
  const directory = `/proc/${pid}/fd`
  const descriptors = unlessGone(() => readdirSync(directory))
  return descriptors.flatMap((fd) => unlessGone(() => [readlinkSync(`${directory}/${fd}`)]))
}

const isGone = (pid: number): boolean => !/^State:\t[RSDT]/m.test(readOr(`/proc/${pid}/status`))

/** A command that waits for a file, and then writes. */
async function begin(engine: Engine, options: readonly string[] = [], mark = 'none') {
  const { cwd } = await makeSite()
  const script = `: ${mark}; echo begun >&2; while [ ! -e go ]; do sleep 0.02; done; mkdir made`
  const words = ['--json', '--explain', '--engine', engine, ...options, '--', ...sh(script)]
  const home = await temporaryDirectory()
  // The record of a run whose launcher is killed stays until the next run.
  const child = startCli(words, { cwd, env: { HOME: home, XDG_RUNTIME_DIR: home } })
  const result = child.then(({ stdout }) => JSON.parse(stdout || '{}') as Result)
  const observer = await until('an observer', () => observerBelow(child.pid ?? 0))
  const launcher = parentOf(observer)
  // Before its command begins, an observer is still giving up what it has from its launcher.
  await until('the command', () => descendantsOf(launcher).find((pid) => commOf(pid) === 'sleep'))
  return { cwd, child, observer, launcher, result }
}

const go = (cwd: string) => execa('touch', [join(cwd, 'go')])

export function describeObserver(engine: Engine): void {
  describeWith([engine, 'userns'], `with ${engine}`, () => {
    test('an observer that is killed fails the calls of its command, and the result says so', async () => {
      const { cwd, observer, result } = await begin(engine, ['--timeout', '20s'])
      process.kill(observer, 'SIGKILL')
      await go(cwd)
      const { ok, warnings, denials } = await result
      expect({ ok, warnings }).toEqual({ ok: false, warnings: [expect.stringContaining('ended before the command')] })
      expect(denials.filter(({ evidence }) => evidence === 'sandbox')).toEqual([])
    })

    test('an observer that hangs delays neither the deadline nor the end', async () => {
      const { cwd, observer, launcher, result } = await begin(engine, ['--timeout', '2s'])
      process.kill(observer, 'SIGSTOP')
      await go(cwd)
      expect((await result).reason).toBe('timeout')
      await until('the end of both', () => (isGone(observer) && isGone(launcher)) || undefined)
    })

    test('a launcher that is killed takes its observer with it', async () => {
      const mark = newMark()
      const before = await takeSnapshot({ mark })
      const { cwd, observer, launcher, result } = await begin(engine, [], mark)
      process.kill(launcher, 'SIGKILL')
      await until('the end of the observer', () => isGone(observer) || undefined)
      await result
      await run(['true'], { cwd }) // The record of a launcher that was killed is for the next one to remove.
      await expectNothingLeft({ before, mark })
    })

    test('only the observer has the listener, and nothing else but the right to inspect', async () => {
      const { cwd, observer, launcher, result } = await begin(engine)
      const status = readOr(`/proc/${observer}/status`)
      const others = [launcher, ...descendantsOf(launcher)].filter((pid) => pid !== observer)
      if (currentUser() === 'root') {
        // At rest: while it looks at a call of the command, it has opened what the call is about.
        await expect
          .poll(() => opened(observer).toSorted())
          .toEqual(['/', 'anon_inode:seccomp notify', expect.stringMatching(/^socket:/)])
        const ofOthers = others.flatMap(opened)
        expect(ofOthers).not.toEqual([])
        expect(ofOthers.filter((one) => one.includes('seccomp'))).toEqual([])
        expect(/^Uid:\t(\d+)\t/m.exec(status)?.[1]).not.toBe('0')
      }
      // CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE.
      const rights = currentUser() === 'root' ? '0000000000080004' : '0000000000000000'
      expect(status).toMatch(new RegExp(`^CapPrm:\\t${rights}\\nCapEff:\\t${rights}$`, 'm'))
      expect(status).toMatch(/^NoNewPrivs:\t1$/m)
      expect(status).toMatch(/^Seccomp:\t2$/m)
      await go(cwd)
      await result
      expect(isGone(observer)).toBe(true)
    })
  })
}
