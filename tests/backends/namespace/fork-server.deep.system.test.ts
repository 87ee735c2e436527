/** Fork servers that run out of descriptors or of work, and owners that change. */
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { describeWith } from '../../support/needs.ts'
import { until } from '../../support/processes.ts'
import { forked, open, run, serverOf, startOwner } from './fork-servers.ts'

describeWith(['bwrap', 'userns'], 'runs by a fork server', () => {
  test('go on when the server can open nothing more, with another one', async () => {
    const { sandbox, server } = await open()
    await execa('prlimit', ['--pid', String(server), '--nofile=3:3'])
    const first = { isOver: false }
    const runs = [run(sandbox, 'echo here').finally(() => (first.isOver = true))]
    // A server that is asked for again and again does not end because it is idle.
    for (let left = 8; left > 0 && !first.isOver; left -= 1) {
      await Promise.race([runs[0], sleep(1_000)])
      runs.push(run(sandbox, 'echo here'))
    }
    expect(first.isOver).toBe(true)
    for (const result of await Promise.all(runs)) expect(result).toMatchObject({ exitCode: 0, stdout: 'here\n' })
    expect(await forked(sandbox)).not.toBe(server)
  })

  test('have an owner that does nothing: after a while there is no server', async () => {
    await open()
    await until('the end of the server', () => (serverOf(process.pid) === undefined ? true : undefined))
  })
})

describeWith(['bwrap', 'userns'], 'the owner of a fork server', () => {
  test('that has ended leaves no server, and has not waited for it', async () => {
    const { owner } = await startOwner(`console.log('server of ' + process.pid)`)
    expect(await owner).toMatchObject({ exitCode: 0 })
    await until('the end of the server', () => (serverOf(owner.pid ?? 0) === undefined ? true : undefined))
  })

  test('that has another priority by now gives its runs that one', async () => {
    const { owner } = await startOwner(`
      const before = await run('nice')
      setPriority(7)
      console.log(JSON.stringify([before.stdout, (await run('nice')).stdout]))`)
    expect(JSON.parse((await owner).stdout)).toEqual(['0\n', '7\n'])
  })
})
