/** The whole of it on one machine by two commands, `llm-do fleet-server` and `llm-do agent`, seen from the page. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { testWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'

/** A command that runs until the test is over, and each line it prints. */
function start(words: readonly string[], env: Readonly<Record<string, string>>) {
  const [file = '', ...rest] = cliWords(words, { program: 'llm-do' })
  const child = spawn(file, rest, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const end = async (): Promise<number | null> => {
    child.kill('SIGTERM')
    return await exited
  }
  onTestFinished(async () => void (await end()))
  return { end, stdout: createInterface(child.stdout), stderr: createInterface(child.stderr) }
}

/** Root's state is not below HOME. */
function removeState(url: string, name: string): void {
  if (currentUser() !== 'root') return
  const state = createHash('sha256').update(`${url}/\0${name}`).digest('hex').slice(0, 16)
  rmSync(`/var/lib/llm-do/fleet/${state}`, { recursive: true, force: true })
}

const firstLine = async (lines: AsyncIterable<string>): Promise<string> => {
  for await (const line of lines) return line
  throw new Error('it has ended without a line')
}

testWith(
  'chromium',
  'a task that is submitted on the page runs in a sandbox of the agent, live, until it is cancelled',
  async () => {
    const env = {
      HOME: await temporaryDirectory(),
      WORKER_ID: `together-${process.pid}`,
      WORKER_TOKEN_SECRET: 'between us',
    }
    const server = start(['fleet-server', '--port', '0'], env)
    const url = await firstLine(server.stdout)
    onTestFinished(() => removeState(url, env.WORKER_ID))
    const agent = start(['agent', '--server', url, '--poll', '200ms', '--slots', '1'], env)
    expect(await firstLine(agent.stderr)).toContain(`${env.WORKER_ID} serves ${url}`)

    const args = ['--no-sandbox']
    const browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args })
    onTestFinished(() => browser.close())
    const page = await browser.newPage()
    await page.goto(url)
    await page.getByRole('cell', { name: 'online' }).waitFor()
    const state = page.locator('#facts dt:text-is("State") + dd')
    const output = page.getByRole('log', { name: 'Output' })
    const poll = { timeout: 60_000 }
    const submit = async (command: string): Promise<void> => {
      await page.getByLabel('Command, one to a line').fill(command)
      await page.getByRole('button', { name: 'Submit' }).click()
    }

    await submit('echo made > made.txt\ncat made.txt; exit 3')
    await expect.poll(() => state.textContent(), poll).toBe('done')
    await expect.poll(() => output.textContent(), poll).toBe('made\n')
    expect(await page.locator('#facts').innerText()).toMatch(/Exit code\s+3[\s\S]*Plan\s+\S{16}/)
    const files = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Files it has made' }).click()
    expect((await files).suggestedFilename()).toMatch(/^[0-9a-f]{32}\.zip$/)

    await submit('echo begun; sleep 1000')
    await expect.poll(() => output.textContent(), poll).toBe('begun\n')
    expect(await state.textContent()).toBe('running')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await expect.poll(() => state.textContent(), poll).toBe('cancelled')

    expect(await agent.end()).toBe(0)
    await page.getByRole('cell', { name: 'offline' }).waitFor()
    expect(await server.end()).toBe(0)
  },
)
