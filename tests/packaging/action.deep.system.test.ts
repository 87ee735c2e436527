/** The rest of what the GitHub Action promises: the opt-outs, the warnings, the npm package and kernels without the restriction. */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { obeyedCommands, runAction } from '../support/github-runner.ts'
import { describeWith } from '../support/needs.ts'
import { packFor } from '../support/npm-packages.ts'
import { startNpmRegistry } from '../support/npm-registry.ts'
import { CHECKOUT, HOSTILE, newJob, withAppArmor } from './action-jobs.ts'

describeWith('userns', 'the GitHub Action', () => {
  test('lets a script reach later steps where the job asks for it', async () => {
    const inputs = { run: HOSTILE, 'github-files': 'GITHUB_ENV GITHUB_PATH', 'workflow-commands': 'true' }
    const { exitCode, log, later } = await runAction(await newJob(inputs))
    expect(exitCode, log).toBe(7)
    expect(obeyedCommands(log)).toEqual(['add-matcher', 'set-output'])
    expect(later).toEqual({ env: 'x=1\n', path: 'x=1\n' })
  })

  test('warns of a token in the checkout', async () => {
    const job = await newJob({ run: 'true' })
    await execa('git', ['init', '--quiet', job.workspace])
    await execa('git', ['-C', job.workspace, 'config', 'http.https://example.com/.extraheader', 'AUTHORIZATION: x'])
    const { log } = await runAction(job)
    expect(log).toContain('persist-credentials: false')
    expect(obeyedCommands(log)).toEqual(['warning'])
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

describeWith(['root', 'userns'], 'where AppArmor restricts user namespaces, the GitHub Action', () => {
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
