/** The GitHub Action, its steps run for real as GitHub's runner runs them. Only AppArmor, which few kernels have, is played. */
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { type JobInputs, obeyedCommands, runAction } from '../support/github-runner.ts'
import { describeWith } from '../support/needs.ts'
import { packFor } from '../support/npm-packages.ts'
import { startNpmRegistry } from '../support/npm-registry.ts'
import { readOr, until } from '../support/processes.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const CHECKOUT = checkoutFor(currentUser())

/** A job on a new machine. */
async function newJob(inputs: JobInputs['inputs']): Promise<JobInputs> {
  const base = await temporaryDirectory({ mode: 0o755 })
  const [workspace, temp] = [join(base, 'workspace'), join(base, 'temp')]
  for (const directory of [workspace, temp]) await mkdir(directory)
  const env = { HOME: base, GITHUB_TOKEN: 'the token', ACTIONS_RUNTIME_TOKEN: 'another', SAID: 'said' }
  return { action: CHECKOUT, workspace, temp, inputs, env }
}

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

  const HOSTILE = [
    'for file in $(printenv GITHUB_ENV GITHUB_PATH); do echo x=1 >>"$file"; done',
    'echo x=1 | tee -a "$(dirname "$GITHUB_OUTPUT")"/* >/dev/null || true',
    'printf "::add-matcher::evil.json\\n::set-output name=lib::/evil\\n"',
    'printf "##[add-path]/evil"; exit 7',
  ].join('\n')

  test('keeps what a script says and does from later steps, and ends with its status', async () => {
    const { exitCode, log, later } = await runAction(await newJob({ run: HOSTILE }))
    expect(exitCode).toBe(7)
    expect(log).toContain('::add-matcher::evil.json')
    expect(obeyedCommands(log)).toEqual([])
    expect(later).toEqual({ env: '', path: '' })
  })

  test('unless the job asks for it', async () => {
    const inputs = { run: HOSTILE, 'github-files': 'GITHUB_ENV GITHUB_PATH', 'workflow-commands': 'true' }
    const { exitCode, log, later } = await runAction(await newJob(inputs))
    expect(exitCode, log).toBe(7)
    expect(obeyedCommands(log)).toEqual(['add-matcher', 'set-output'])
    expect(later).toEqual({ env: 'x=1\n', path: 'x=1\n' })
  })

  test.each(['env', 'args'])('takes no word of %s for a command of a shell', async (name) => {
    const job = await newJob({ run: 'true', [name]: '"; $(touch "$HOME/found") `touch "$HOME/found"`;touch *' })
    const { exitCode } = await runAction(job)
    expect(exitCode).not.toBe(0)
    expect(existsSync(join(job.env?.['HOME'] ?? '', 'found'))).toBe(false)
  })

  test('warns of a token in the checkout', async () => {
    const job = await newJob({ run: 'true' })
    await execa('git', ['init', '--quiet', job.workspace])
    await execa('git', ['-C', job.workspace, 'config', 'http.https://example.com/.extraheader', 'AUTHORIZATION: x'])
    const { log } = await runAction(job)
    expect(log).toContain('persist-credentials: false')
    expect(obeyedCommands(log)).toEqual(['warning'])
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

  test('installs the version of the npm package that is named', async () => {
    const packages = await packFor(await temporaryDirectory())
    const registry = await startNpmRegistry([packages.command, packages.platform])
    onTestFinished(registry.stop)
    const { version } = JSON.parse(await readFile(join(CHECKOUT, 'package.json'), 'utf8')) as { version: string }
    const job = await newJob({ run: 'echo inside', version })
    const { exitCode, log } = await runAction({ ...job, env: { ...job.env, npm_config_registry: registry.url } })
    expect(exitCode, log).toBe(0)
    expect(log).toContain('\ninside\n')
    expect(existsSync(join(job.temp, 'llm-do/lib/node_modules/llm-do-exec'))).toBe(true)
  })
})

/** Of Ubuntu: the setting, in a mount namespace of the step's own, and a parser that records what it is given. */
async function withAppArmor(job: JobInputs, setting: 0 | 1): Promise<JobInputs & { readonly record: string }> {
  const [settings, bin] = [await temporaryDirectory(), await temporaryDirectory()]
  const record = join(bin, 'record')
  await writeFile(join(settings, 'apparmor_restrict_unprivileged_userns'), `${setting}\n`)
  const parser = `#!/bin/bash\nset -e\n{ echo "$1"; grep ^profile "\${@: -1}"; } >>${record}\n`
  await writeFile(join(bin, 'apparmor_parser'), parser, { mode: 0o755 })
  const show = `mount --bind ${settings} /proc/sys/kernel && exec "$@"`
  // The sandbox itself asks this machine's kernel.
  const around = (run: string) => (run.includes('/apparmor"') ? ['unshare', '--mount', 'sh', '-c', show, 'sh'] : [])
  return { ...job, record, around, env: { ...job.env, PATH: `${bin}:${process.env.PATH}` } }
}

describeWith(['root', 'userns'], 'where AppArmor restricts user namespaces, the GitHub Action', () => {
  test('loads a profile for its own programs and removes it, whatever becomes of the script', async () => {
    const job = await withAppArmor(await newJob({ run: 'exit 3' }), 1)
    expect((await runAction(job)).exitCode).toBe(3)
    const lines = (await readFile(job.record, 'utf8')).split('\n')
    expect(lines).toEqual(['--replace', expect.any(String), '--remove', lines[1], ''])
    expect(lines[1]).toMatch(/^profile llm-do-action-\d+ /)
    expect(lines[1]).toContain(` "${job.temp}/llm-do/lib/llm-do-exec/bin/{front,llm-do,llm-do-exec,launch}" `)
    expect(existsSync(join(job.temp, 'llm-do.apparmor'))).toBe(false)
  })

  test('loads nothing where it does not', async () => {
    const job = await withAppArmor(await newJob({ run: 'true' }), 0)
    expect((await runAction(job)).exitCode).toBe(0)
    expect(existsSync(job.record)).toBe(false)
  })

  test('says what is wrong where none can be loaded', async () => {
    const job = await withAppArmor(await newJob({ run: 'true' }), 1)
    await writeFile(join(job.record, '../apparmor_parser'), '#!/bin/sh\nexit 1\n')
    expect((await runAction(job)).log).toContain('::warning title=llm-do::the AppArmor profile cannot be loaded')
  })
})
