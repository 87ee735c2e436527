/** `llm-do agent --demo-server`: one command is a server, its page and an agent. */
import { readdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { runCli, startCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { TIED } from '../support/processes.ts'

describeWith('userns', 'agent --demo-server', () => {
  async function startDemo() {
    const [home, temporary] = [await temporaryDirectory(), await temporaryDirectory()]
    const env = { TMPDIR: temporary }
    const child = startCli(['agent', '--demo-server'], { program: 'llm-do', through: TIED, cwd: home, env })
    for await (const url of createInterface(child.stdout)) return { child, home, temporary, url }
    throw new Error(`it has ended without an address: ${(await child).stderr}`)
  }

  async function submit(url: string, command: string): Promise<string> {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ command })
    const response = await fetch(`${url}/api/tasks`, { method: 'POST', headers, body })
    const { id } = (await response.json()) as { readonly id: string }
    return id
  }

  test('runs a task that is submitted over HTTP, shows its page, and leaves nothing after SIGTERM', async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const { child, home, temporary, url } = await startDemo()
    expect(await (await fetch(url)).text()).toContain('<title>llm-do fleet</title>')
    const taskOf = async (id: string) => (await (await fetch(`${url}/api/tasks/${id}`)).json()) as object
    const id = await submit(url, `echo made ${mark} > file; cat file; exit 3`)
    await expect
      .poll(() => taskOf(id))
      .toMatchObject({ state: 'done', exitCode: 3, stdout: `made ${mark}\n`, hasResult: true })
    const running = await submit(url, `echo begun; sleep 1; echo ${mark}`)
    await expect.poll(() => taskOf(running)).toMatchObject({ stdout: expect.stringMatching(/^begun/) })
    expect(readdirSync(temporary)).not.toEqual([])
    child.kill('SIGTERM')
    expect((await child).exitCode).toBe(0)
    await expect(fetch(url)).rejects.toThrow()
    expect(readdirSync(temporary)).toEqual([])
    // The caches of any command, and no state of an agent.
    expect(readdirSync(home, { recursive: true, encoding: 'utf8' }).filter((name) => /fleet/.test(name))).toEqual([])
    await expectNothingLeft({ before, mark })
  })

  test('is refused together with a server or a queue', async () => {
    for (const [option, value] of [
      ['--server', 'http://127.0.0.1:1'],
      ['--queue', 'redis://127.0.0.1'],
    ] as const) {
      const { status, stderr } = await runCli(['agent', '--demo-server', option, value], { program: 'llm-do' })
      expect([status, stderr.toString()]).toEqual([125, expect.stringContaining(`it cannot be used with ${option}`)])
    }
  })
})
