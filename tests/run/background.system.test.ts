/** Sandboxes that stay in the background: `run`, `logs`, `stop`, `ps`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { directoryOfNamed } from '../../src/run/named-sandboxes.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { descendantsOf, processesWith, readOr } from '../support/processes.ts'
import { currentUser } from '../support/users.ts'
import { backgroundOf, newName } from './background.ts'

describeWith('userns', 'a sandbox in the background', () => {
  const as = currentUser()
  describe(`of ${as}`, () => {
    test('is listed by its name, has a log of both streams, and is forgotten when it is stopped', async () => {
      const { llmDo, start, listed, ended } = await backgroundOf(as)
      const before = await takeSnapshot({ mark: newMark() })
      const name = await start('--', 'sh', '-c', 'echo one; echo two >&2; printf "\\377"; exec sleep 300')
      expect(await listed(name)).toMatchObject({ name, profile: 'default', command: ['sh', '-c', expect.any(String)] })
      await expect.poll(async () => (await llmDo(['logs', name, '--json'])).out).toContain('base64')
      const lines = (await llmDo(['logs', name, '--json'])).out.trim().split('\n')
      expect(lines.map((line) => JSON.parse(line))).toContainEqual({
        ...{ time: expect.any(String), stream: 'stderr', text: 'two\n' },
      })
      expect((await llmDo(['logs', name])).out).toMatch(/^one\n/)
      expect(await llmDo(['logs', name])).toMatchObject({ status: 0, err: 'two\n' })
      expect(await llmDo(['run', '--name', name, '--', 'true'])).toMatchObject({
        status: 125,
        err: expect.stringContaining('SANDBOX_EXISTS'),
      })
      const { id = '' } = (await listed(name)) ?? {}
      expect((await llmDo(['logs', id])).out).toMatch(/^one\n/)
      expect(await llmDo(['logs'])).toEqual(await llmDo(['logs', id]))
      expect(await llmDo(['stop'])).toEqual({ status: 0, out: '', err: `llm-do: ${name} was stopped\n` })
      expect([await listed(name), await ended(name)]).toEqual([undefined, undefined])
      expect(await llmDo(['logs', name])).toMatchObject({ status: 125 })
      await expectNothingLeft({ before, mark: name })
    })

    test('that has ended keeps its result and its log, and has no default timeout', async () => {
      const { llmDo, start, ended } = await backgroundOf(as)
      const name = await start('--', 'sh', '-c', 'echo done; exit 3')
      expect((await llmDo(['logs', '-f', name])).out).toBe('done\n')
      await expect
        .poll(() => ended(name))
        .toMatchObject({
          state: 'ended',
          result: {
            reason: 'exit',
            exitCode: 3,
            stdout: 'done\n',
            limits: expect.not.objectContaining({ timeoutMs: 30_000 }),
          },
        })
      expect(await llmDo(['exec', '--in', name, '--', 'true'])).toMatchObject({
        status: 125,
        err: expect.stringContaining(`${name} has ended`),
      })
    })

    test('whose command cannot start says so, and leaves its name free', async () => {
      const { llmDo, ended } = await backgroundOf(as)
      const name = newName()
      expect(await llmDo(['run', '--name', name, '--', 'no-such-program'])).toMatchObject({
        status: 127,
        err: expect.stringContaining('no-such-program: not found in the sandbox'),
      })
      expect(await llmDo(['run', '--name', name, '--ro', '/no/such/place', '--', 'true'])).toMatchObject({
        status: 125,
      })
      expect(await ended(name)).toBeUndefined()
      for (const refused of ['--json', '--tty', '--plan', '--die-with-parent'])
        expect((await llmDo(['run', '--name', name, refused, '--', 'true'])).err).toContain(
          `${refused} is for a command`,
        )
      expect((await llmDo(['run', '--name', '../x', '--', 'true'])).err).toContain('is no name of a sandbox')
    })

    test('has its deadline and its limit of memory', async () => {
      const { start, ended } = await backgroundOf(as)
      const slow = await start('--timeout', '200ms', '--', 'sleep', '300')
      await expect.poll(() => ended(slow)).toMatchObject({ result: { reason: 'timeout' } })
      const large = await start('--memory', '64m', '--', 'sh', '-c', 'head -c 300m /dev/zero | tail -c 300m | wc -c')
      await expect.poll(() => ended(large)).toMatchObject({ result: { reason: 'memory' } })
    })

    test.each(['supervisor', 'launcher'])('leaves nothing when its %s is killed', async (which) => {
      const { start, listed, ended, llmDo } = await backgroundOf(as)
      const before = await takeSnapshot({ mark: newMark() })
      const mark = `sleep 1${process.pid}.${which.length}`
      const name = await start('--', ...mark.split(' '))
      const launcher = (await listed(name))?.pid ?? 0
      const supervisor = Number(/^PPid:\s*(\d+)$/m.exec(readOr(`/proc/${launcher}/status`))?.[1])
      expect(descendantsOf(launcher).length).toBeGreaterThan(0)
      process.kill(which === 'launcher' ? launcher : supervisor, 'SIGKILL')
      await expect.poll(() => ended(name)).toBeDefined()
      await expect.poll(() => processesWith(mark.split(' ')[1] ?? mark)).toEqual([])
      expect(await llmDo(['stop', name])).toMatchObject({ status: 0 })
      await llmDo(['prune'])
      await expectNothingLeft({ before, mark: name })
    })

    test('of another boot or container lives while its lock is held, and no process here is taken for its own', async () => {
      const { llmDo, start, ended } = await backgroundOf(as)
      const name = await start('--', 'sleep', '300')
      const state = join(directoryOfNamed(process.env, name), 'state.json')
      const written = JSON.parse(readFileSync(state, 'utf8'))
      const bystander = spawn('sleep', ['300'])
      const end = once(bystander, 'exit')
      onTestFinished(() => void bystander.kill())
      const supervisor = `11111111-2222-3333-4444-555555555555/4026531836/${bystander.pid}:1`
      writeFileSync(state, JSON.stringify({ ...written, supervisor }))
      expect(await llmDo(['stop', name])).toMatchObject({ status: 125, err: expect.stringContaining('does not end') })
      // Had it been signalled before, it would end by that.
      bystander.kill('SIGUSR1')
      expect(await end).toEqual([null, 'SIGUSR1'])
      process.kill(Number.parseInt(written.supervisor.split('/').at(-1), 10), 'SIGKILL')
      await expect.poll(() => ended(name)).toMatchObject({ state: 'lost' })
      expect(await llmDo(['stop', name])).toMatchObject({ status: 0 })
    })

    test('is ended by kill, by its name', async () => {
      const { llmDo, start, ended } = await backgroundOf(as)
      const name = await start('--', 'sleep', '300')
      expect(await llmDo(['kill', name])).toMatchObject({ status: 0, out: '' })
      await expect.poll(() => ended(name)).toMatchObject({ result: { reason: 'cancelled' } })
    })
  })
})
