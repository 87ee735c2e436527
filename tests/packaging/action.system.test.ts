/** The GitHub Action, its steps run for real as GitHub's runner runs them. Only AppArmor, which few kernels have, is played. */
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { obeyedCommands, runAction } from '../support/github-runner.ts'
import { describeWith } from '../support/needs.ts'
import { readOr, until } from '../support/processes.ts'
import { HOSTILE, newJob, withAppArmor } from './action-jobs.ts'

describeWith('userns', 'the GitHub Action', () => {
  test('runs the script in a sandbox that sees the workspace, and passes on its outputs and its summary', async () => {
    const run = [
      'pwd; env',
      'echo built >result',
      'echo "version=1 2" >>"$GITHUB_OUTPUT"',
      `printf 'notes<<END\\nfirst\\nsecond\\nEND\\n' >>"$GITHUB_OUTPUT"`,
      'echo "# Done" >>"$GITHUB_STEP_SUMMARY"',
    ].join('\n')
    const job = await newJob({ run, 'working-directory': 'part', env: 'SAID', args: '--memory\n64m' })
    await mkdir(join(job.workspace, 'part'))
    const { exitCode, log, outputs, summary, later } = await runAction(job)
    expect(exitCode, log).toBe(0)
    expect(log).toContain(`\n${job.workspace}/part\n`)
    expect(log).toContain('\nSAID=said\n')
    expect(log).not.toMatch(/TOKEN=|the token|another/)
    expect(JSON.parse(outputs['outputs'] ?? '')).toEqual({ version: '1 2', notes: 'first\nsecond' })
    expect(summary).toBe('# Done\n')
    expect(await readFile(join(job.workspace, 'part/result'), 'utf8')).toBe('built\n')
    expect(later).toEqual({ env: '', path: '' })
  })

  test('keeps what a script says and does from later steps, and ends with its status', async () => {
    const { exitCode, log, later } = await runAction(await newJob({ run: HOSTILE }))
    expect(exitCode).toBe(7)
    expect(log).toContain('::add-matcher::evil.json')
    expect(obeyedCommands(log)).toEqual([])
    expect(later).toEqual({ env: '', path: '' })
  })

  test.each(['env', 'args'])('takes no word of %s for a command of a shell', async (name) => {
    const job = await newJob({ run: 'true', [name]: '"; $(touch "$HOME/found") `touch "$HOME/found"`;touch *' })
    const { exitCode } = await runAction(job)
    expect(exitCode).not.toBe(0)
    expect(existsSync(join(job.env?.['HOME'] ?? '', 'found'))).toBe(false)
  })

  test('that is cancelled ends the sandbox', async () => {
    const mark = randomUUID()
    const job = await newJob({ run: `touch begun; while sleep 0.1; do :; done # ${mark}` })
    const isAlive = () => readdirSync('/proc').some((pid) => readOr(`/proc/${pid}/cmdline`).includes(mark))
    const cancel = new AbortController()
    const running = runAction({ ...job, cancelSignal: cancel.signal })
    await expect.poll(() => existsSync(join(job.workspace, 'begun')), { timeout: 60_000 }).toBe(true)
    expect(isAlive(), 'the control').toBe(true)
    cancel.abort()
    expect((await running).exitCode).toBeGreaterThan(128)
    await until('the end of the sandbox', () => (isAlive() ? undefined : true))
  })
})

describeWith(['root', 'userns'], 'where AppArmor restricts user namespaces, the GitHub Action', () => {
  test('loads a profile for its own programs and removes it, whatever becomes of the script', async () => {
    const job = await withAppArmor(await newJob({ run: 'exit 3' }), 1)
    expect((await runAction(job)).exitCode).toBe(3)
    const lines = (await readFile(job.record, 'utf8')).split('\n')
    expect(lines).toEqual(['--replace', expect.any(String), '--remove', lines[1], ''])
    expect(lines[1]).toMatch(/^profile llm-do-action-\d+ /)
    expect(lines[1]).toContain(` "${job.temp}/llm-do/lib/llm-do-exec/bin/{llm-do,llm-do-exec}" `)
    expect(existsSync(join(job.temp, 'llm-do.apparmor'))).toBe(false)
  })
})
