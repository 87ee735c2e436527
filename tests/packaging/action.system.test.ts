/** The GitHub Action, its steps run for real as GitHub's runner runs them. Only AppArmor, which few kernels have, is played. */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { type JobInputs, obeyedCommands, runAction } from '../support/github-runner.ts'
import { describeWith } from '../support/needs.ts'
import { readOr, until } from '../support/processes.ts'
import { HOSTILE, newJob, withAppArmor } from './action-jobs.ts'
import { installed } from './installed.ts'

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

describeWith('userns', 'the GitHub Action, before it installs anything', () => {
  /** A program of the machine that gives another answer. */
  async function withProgram(job: JobInputs, name: string, text: string): Promise<JobInputs> {
    const bin = await temporaryDirectory({ mode: 0o755 })
    await writeFile(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
    return { ...job, env: { ...job.env, PATH: `${bin}:${process.env.PATH}` } }
  }
  const answering = (name: string, text: string) => (job: JobInputs) => withProgram(job, name, text)
  const SUM = '0'.repeat(64)

  test.each<[string, Readonly<Record<string, string>>, (job: JobInputs) => JobInputs | Promise<JobInputs>, string]>([
    ['another system', {}, answering('uname', 'echo Darwin'), 'expected a runner with Linux, got Darwin'],
    ['another machine', {}, answering('uname', '[ "$1" = -s ] && echo Linux || echo riscv64'), 'got riscv64'],
    [
      'an old node',
      {},
      answering('node', '[ "$1" != --version ] || { echo v18.20.0; exit; }; exit 1'),
      'expected Node 20.19 or newer, got v18.20.0',
    ],
    [
      'an archive without a checksum',
      { archive: 'a.tar.gz' },
      (job) => job,
      'input checksum: expected the 64 hexadecimal digits',
    ],
    [
      'a checksum without an archive',
      { checksum: SUM },
      (job) => job,
      'input checksum: expected input archive with it',
    ],
    [
      'an action that the script could change',
      {},
      async (job) => {
        // The directory that the script sees has the action in it.
        const workspace = await temporaryDirectory({ mode: 0o755 })
        await execa('cp', ['-R', join(job.action, 'action.yml'), join(job.action, 'packaging'), workspace])
        return { ...job, workspace, action: workspace }
      },
      'below the workspace, which the script can change',
    ],
    ['two ways', { archive: 'a', checksum: SUM, version: '1.0.0' }, (job) => job, 'expected one of them, got both'],
    [
      'an address without TLS',
      { archive: 'http://a.example/b', checksum: SUM },
      (job) => job,
      'expected a file or an https address',
    ],
    [
      'an archive that is missing',
      { archive: 'nosuch', checksum: SUM },
      (job) => job,
      'input archive: nosuch cannot be read',
    ],
  ])('says that it got %s', async (_, inputs, change, message) => {
    const job = await change(await newJob({ run: 'touch ran', ...inputs }))
    const { exitCode, log } = await runAction(job)
    expect(exitCode, log).toBe(125)
    expect(log).toContain(`::error title=llm-do::`)
    expect(log).toContain(message)
    expect([existsSync(join(job.temp, 'llm-do')), existsSync(join(job.workspace, 'ran'))]).toEqual([false, false])
  })
})

describeWith('userns', 'the GitHub Action with an archive', () => {
  test('unpacks the one with the checksum that is named, without a compiler, and no other', async () => {
    const prefix = await installed()
    const inputs = { run: 'echo inside', archive: 'llm-do.tar.gz' }
    const job = await newJob(inputs)
    const file = join(job.workspace, inputs.archive)
    await execa('tar', ['-czf', file, '-C', dirname(prefix), basename(prefix)])
    const checksum = createHash('sha256')
      .update(await readFile(file))
      .digest('hex')
    const wrong = await runAction({
      ...job,
      inputs: { ...inputs, checksum: checksum.replace(/./, (digit) => (digit === '0' ? '1' : '0')) },
    })
    expect(wrong.exitCode).toBe(125)
    expect(wrong.log).toContain(`got ${checksum} of llm-do.tar.gz: nothing was unpacked`)
    expect(existsSync(join(job.temp, 'llm-do'))).toBe(false)
    const bin = await temporaryDirectory({ mode: 0o755 })
    for (const name of ['make', 'gcc', 'musl-gcc', 'cc'])
      await writeFile(join(bin, name), '#!/bin/sh\nexit 99\n', { mode: 0o755 })
    const env = { ...job.env, PATH: `${bin}:${process.env.PATH}` }
    const { exitCode, log } = await runAction({ ...job, env, inputs: { ...inputs, checksum } })
    expect(exitCode, log).toBe(0)
    expect(log).toContain('\ninside\n')
  })

  test('says that its working directory is none', async () => {
    const { exitCode, log } = await runAction(await newJob({ run: 'true', 'working-directory': 'nosuch' }))
    expect(exitCode, log).toBe(125)
    expect(log).toContain('::error title=llm-do::input working-directory: nosuch does not lie in the workspace')
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
