/** The page of `llm-do report` in a real browser, with ten thousand runs, some of them hostile. */
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

const RUNS = 10_000
/** Runs where its text becomes HTML. */
const MARKUP = `</script><script>document.title = 'taken'</script><img src=x onerror="document.title = 'taken'">`
const COMMANDS = [['npm', 'test'], ['sh', '-c', MARKUP], ['echo', '\u202egpj.exe'], ['a'.repeat(500)]]
const REASONS = ['exit', 'exit', 'timeout', 'setup']

/** Enough for the control. */
const FEW = 4

/** An audit log: a run a minute, one command and one reason after another. */
function logOfRuns(count: number): string {
  const lines: string[] = []
  let prev = '0'.repeat(64)
  for (let at = 0; at < count; at += 1) {
    const reason = REASONS[at % REASONS.length]
    const denials =
      at % 10 === 0 ? [{ operation: 'resolve', target: MARKUP, count: 1, fix: `--allow-host ${at % 20}` }] : []
    const time = new Date(Date.UTC(2026, 0, 1) + at * 60_000).toISOString()
    const run = { time, decision: 'run', argv: COMMANDS[at % 4], worker: MARKUP, reason, denials, durationMs: at, prev }
    const line = JSON.stringify({ ...run, exitCode: reason === 'exit' ? at % 2 : null })
    lines.push(line)
    prev = createHash('sha256').update(line).digest('hex')
  }
  return `${lines.join('\n')}\n`
}

async function writeReport(file: string, count: number): Promise<string> {
  const cwd = dirname(file)
  await writeFile(join(cwd, 'log'), logOfRuns(count))
  const { status, stdout, stderr } = await runCli(['report', 'log'], { program: 'llm-do', cwd })
  expect([status, stderr.toString()]).toEqual([0, ''])
  await writeFile(file, stdout)
  return stdout.toString()
}

describeWith('chromium', 'the page about runs', () => {
  const state: { browser?: Browser; file: string } = { file: '' }
  beforeAll(async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    state.file = join(path, 'report.html')
    await writeReport(state.file, RUNS)
    // The browser's own sandbox does not work as root; it sees nothing but this file.
    state.browser = await chromium.launch({
      executablePath: '/usr/bin/chromium-headless-shell',
      args: ['--no-sandbox'],
    })
    return async () => {
      await state.browser?.close()
      await remove()
    }
  })

  /** Everything that the browser complains of or asks for, and the page. */
  async function open(options = {}, file = state.file): Promise<{ page: Page; complaints: string[] }> {
    const page = (await state.browser?.newPage(options)) as Page
    const complaints: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('request', (request) => complaints.push(...(request.url() === `file://${file}` ? [] : [request.url()])))
    await page.goto(`file://${file}`)
    return { page, complaints }
  }
  const countOf = (page: Page) => page.locator('#count').textContent()

  test('shows ten thousand runs, loads nothing, and runs nothing of theirs', async () => {
    const { page, complaints } = await open()
    expect(await countOf(page)).toBe('10,000 runs: 2,500 succeeded, 2,500 failed, 2,500 limit, 2,500 refused')
    await page.locator('#runs summary').nth(2).click()
    expect(await page.locator('#runs details[open] dd').allTextContents()).toContain(MARKUP)
    expect(await page.locator('#denials tr').count()).toBe(2)
    expect(await page.locator('#runs').textContent()).toContain('\\u{202e}gpj.exe')
    expect(await page.locator('#slowest tr').first().textContent()).toContain('10.0 s')
    expect(complaints).toEqual([])
    expect(await page.title()).toBe('llm-do runs')
  })

  test('the control: without escapes the same text is markup, and the rules of the page stop its script', async () => {
    const file = join(dirname(state.file), 'unescaped.html')
    const unescaped = (await writeReport(file, FEW)).replaceAll('\\u003c', '<')
    await writeFile(file, unescaped)
    const { page, complaints } = await open({}, file)
    expect(await page.locator('img').count()).toBeGreaterThan(0)
    expect(complaints.join('\n')).toContain('Content Security Policy')
    expect(await page.title()).toBe('llm-do runs')
    await writeFile(file, unescaped.replace(/<meta http-equiv[^>]*>/, ''))
    expect(await (await open({}, file)).page.title(), 'without the rules').toBe('taken')
  })

  test('filters by text, reason, outcome, denials and time, and turns pages', async () => {
    const { page, complaints } = await open()
    const clear = page.getByRole('button', { name: 'Clear' })
    await page.getByRole('combobox', { name: 'Reason' }).selectOption('timeout')
    expect(await countOf(page)).toContain('2,500 runs of 10,000')
    await clear.click()
    await page.getByRole('searchbox').fill(MARKUP.slice(0, 30))
    await page.getByRole('combobox', { name: 'Denials' }).selectOption('with')
    expect(await countOf(page)).toContain('1,000 runs of 10,000')
    await clear.click()
    await page.locator('#chart g').first().click()
    expect(await countOf(page)).toMatch(/^1\d\d runs of 10,000/)
    await clear.click()
    await page.locator('#limits button').first().click()
    expect(await countOf(page)).toContain('2,500 runs of 10,000')
    await page.getByRole('button', { name: 'Older' }).click()
    expect(await page.locator('#page').textContent()).toBe('page 2 of 25')
    expect(complaints).toEqual([])
  })

  test.each(['light', 'dark'] as const)('fits a narrow screen, %s', async (colorScheme) => {
    const { page } = await open({ viewport: { width: 375, height: 800 }, colorScheme })
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(375)
    const [text, ground] = (await page.evaluate(
      '[getComputedStyle(document.body).color, getComputedStyle(document.querySelector("form")).backgroundColor]',
    )) as [string, string]
    const lightness = (color: string) => Number(/\d+/.exec(color)?.[0])
    expect(lightness(text) > lightness(ground)).toBe(colorScheme === 'dark')
  })
})
