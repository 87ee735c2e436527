/** The page in a real browser, while an agent of the test runs its tasks. Nothing is ever loaded again. */
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { as, type TestServer, testServer } from './fleet-server.ts'

/** Runs where its text becomes HTML, by the element's handler where scripts that are set as HTML do not run. */
const HOSTILE = `<script>document.title = 'taken'</script><img src=x onerror="document.title = 'taken'">`

/** Events of the server wait in `waiting`, once a test has made that list: a slow stream of events. */
const EVENTS_THAT_WAIT = `
globalThis.EventSource = class extends EventSource {
  addEventListener(name, work) {
    super.addEventListener(name, (event) => (globalThis.waiting ? waiting.push({ work, event }) : work(event)))
  }
}`

describeWith('chromium', 'the page', () => {
  let browser: Browser
  beforeAll(async () => {
    // The browser's own sandbox does not work as root; it sees nothing but this server.
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox'] })
  })
  afterAll(() => browser.close())

  /** The page, with everything that the browser complains of. What is given as `first` runs before its own script. */
  async function open(server: TestServer, options = {}, first = ''): Promise<{ page: Page; complaints: string[] }> {
    const page = await browser.newPage(options)
    await page.addInitScript(first)
    const complaints: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(server.url)
    await page.getByText('connected', { exact: true }).waitFor()
    return { page, complaints }
  }

  const submit = async (page: Page, command: string): Promise<void> => {
    await page.getByLabel('Command, one to a line').fill(command)
    await page.getByRole('button', { name: 'Submit' }).click()
  }

  /** Keeps back what the server answers about a task in this state, until it is let go. */
  async function keepBack(page: Page, state: string) {
    let isKeptBack = true
    const keptBack: (() => Promise<void>)[] = []
    await page.route('**/api/tasks/*', async (route) => {
      const response = await route.fetch()
      const answer = () => route.fulfill({ response })
      if (isKeptBack && (await response.json()).state === state) keptBack.push(answer)
      else await answer()
    })
    // From here on the page is answered without us: a request that is under way when the page closes needs no answer.
    const letGo = async () => {
      isKeptBack = false
      for (const answer of keptBack) await answer()
      await page.unrouteAll({ behavior: 'ignoreErrors' })
    }
    return { keptBack, letGo }
  }

  const stateOf = (page: Page) => page.locator('#facts dt:text-is("State") + dd')
  const output = (page: Page) => page.getByRole('log', { name: 'Output' })

  test('shows a task from its submission over its live output to its end', async () => {
    const server = await testServer()
    const { page, complaints } = await open(server, { colorScheme: 'dark' })
    await server.register('agent-1')
    await page.getByRole('cell', { name: 'online' }).waitFor()
    await submit(page, 'make all')
    await expect.poll(() => stateOf(page).textContent()).toBe('queued')
    const { jobId } = (await server.take('agent-1', 30)).body.job
    for (const data of ['one\n', 'two\n']) {
      await server.stream(jobId, 'agent-1', { data, type: 'stdout' })
      await expect.poll(() => output(page).textContent()).toContain(data)
    }
    expect(await stateOf(page).textContent()).toBe('running')
    const denials = [{ layer: 'network', operation: 'connect', target: 'api.test:443', fix: '--network api.test' }]
    await server.report(jobId, 'agent-1', {
      ...{ stdout: 'one\ntwo\nthree\n', exitCode: 137, reason: 'memory', message: 'over 512 MiB', planHash: 'a1b2' },
      ...{ limits: { memory: '512MiB' }, denials, durationMs: 1200 },
    })
    await expect.poll(() => stateOf(page).textContent()).toBe('done')
    await expect.poll(() => output(page).textContent()).toBe('one\ntwo\nthree\n')
    const facts = await page.locator('#facts').innerText()
    const told = ['memory', 'over 512 MiB', '137', '512MiB', 'network connect api.test:443', 'a1b2', '1200 ms']
    for (const text of told) expect(facts).toContain(text)
    expect(complaints).toEqual([])
    await page.close()
  })

  test('loses no output that comes while an older answer is on its way', async () => {
    const server = await testServer()
    const { page } = await open(server)
    await server.register('agent-1')
    await page.evaluate("globalThis.pieces = 0; events.addEventListener('output', () => { pieces += 1 })")
    // The answer is kept back until the page has all that came after it.
    const { keptBack, letGo } = await keepBack(page, 'running')
    await submit(page, 'make all')
    await expect.poll(() => stateOf(page).textContent()).toBe('queued')
    const { jobId } = (await server.take('agent-1', 30)).body.job
    await expect.poll(() => keptBack.length).toBeGreaterThan(0)
    for (const data of ['one\n', 'two\n']) {
      await server.stream(jobId, 'agent-1', { data, type: 'stdout' })
    }
    await page.waitForFunction('pieces === 2')
    await letGo()
    await expect.poll(() => output(page).textContent()).toBe('one\ntwo\n')
    await page.close()
  })

  test('shows the newer of two states where the older answer comes last', async () => {
    const server = await testServer()
    const { page } = await open(server, {}, EVENTS_THAT_WAIT)
    await server.register('agent-1')
    await page.evaluate('globalThis.waiting = []')
    const { keptBack, letGo } = await keepBack(page, 'queued')
    await submit(page, 'make all')
    await expect.poll(() => keptBack.length).toBe(1)
    await server.take('agent-1', 30)
    await page.waitForFunction(`waiting.some(({ event }) => event.data.includes('"state":"running"'))`)
    await page.evaluate('for (const { work, event } of waiting) work(event)')
    await page.getByRole('row').filter({ hasText: 'make all' }).getByText('running').waitFor()
    await letGo()
    await expect.poll(() => stateOf(page).textContent()).toBe('running')
    await page.close()
  })

  test('cancels a running task by keyboard, and says so until its agent has ended it', async () => {
    const server = await testServer({ agents: ['agent-1'] })
    const { page } = await open(server)
    await submit(page, 'sleep 1000')
    const { jobId } = (await server.take('agent-1', 30)).body.job
    await expect.poll(() => stateOf(page).textContent()).toBe('running')
    await page.getByRole('button', { name: 'Cancel' }).focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => stateOf(page).textContent()).toBe('cancelling')
    await server.report(jobId, 'agent-1', { exitCode: 130, reason: 'cancelled' })
    await expect.poll(() => stateOf(page).textContent()).toBe('cancelled')
    expect(await page.getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true)
    await page.close()
  })

  test('shows what hostile agents and commands say as text', async () => {
    const server = await testServer()
    const { page, complaints } = await open(server)
    await server.register('agent-1')
    const hostile = { workerId: HOSTILE, hostname: HOSTILE, os: HOSTILE }
    await server.call('POST', '/api/workers/register', hostile, as(HOSTILE))
    await submit(page, HOSTILE)
    const { jobId } = (await server.take('agent-1', 30)).body.job
    await server.stream(jobId, 'agent-1', { data: HOSTILE, type: 'stdout' })
    await expect.poll(() => output(page).textContent()).toBe(HOSTILE)
    const said = { message: HOSTILE, reason: HOSTILE.slice(0, 60), planHash: HOSTILE }
    const more = { denials: [HOSTILE, { layer: HOSTILE }], limits: { [HOSTILE.slice(0, 60)]: HOSTILE } }
    await server.report(jobId, 'agent-1', { stdout: HOSTILE, stderr: HOSTILE, ...said, ...more })
    await expect.poll(() => stateOf(page).textContent()).toBe('done')
    await expect.poll(() => page.getByRole('log', { name: 'Errors' }).textContent()).toBe(HOSTILE)
    expect(await page.title()).toBe('llm-do fleet')
    expect(await page.locator('img').count()).toBe(0)
    expect(complaints).toEqual([])
    await page.close()
  })
})
