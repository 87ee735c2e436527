/** The systemd unit of docs/guide/long-lived.md: systemd understands all of it, and what it starts ends as the unit expects. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { programFor } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { freePort } from '../support/free-port.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'

const PAGE = join(import.meta.dirname, '../../docs/guide/long-lived.md')
const [, PRINTED = ''] = /^```ini\n(.*?)^```$/ms.exec(readFileSync(PAGE, 'utf8')) ?? []
/** The program is installed elsewhere here. */
const UNIT = PRINTED.replace('/usr/bin/llm-do', programFor(currentUser(), 'llm-do'))

const settingOf = (key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(UNIT)?.[1] ?? ''
/** systemd.service(5): these signals are clean, and what the unit adds. */
const isClean = (code: number | null, signal: string | null): boolean =>
  signal === 'SIGTERM' || code === 0 || settingOf('SuccessExitStatus').split(' ').includes(`${code}`)

async function verify(unit: string): Promise<string> {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, 'app.service'), unit)
  const { all } = await execa('systemd-analyze', ['verify', join(directory, 'app.service')], { all: true })
  return all
}

describeWith('systemd-analyze', 'systemd', () => {
  test('understands the unit', async () => {
    expect(await verify(UNIT)).toBe('')
  })

  test('complains of a key that it does not know', async () => {
    expect(await verify(UNIT.replace('SuccessExitStatus', 'SucceedExitStatus'))).toContain('Unknown key')
  })
})

describeWith('userns', 'SIGTERM to what the unit starts', () => {
  test.each([
    ['is clean where the command does not catch it', 'exec sleep 60', true],
    ['is clean where the command ends with 0', "trap 'exit 0' TERM; sleep 60 & wait", true],
    ['is clean where the command ends with 143', "trap 'exit 143' TERM; sleep 60 & wait", true],
    ['is a failure where the command ends with another status', "trap 'exit 5' TERM; sleep 60 & wait", false],
  ])('%s', async (_, script, clean) => {
    const [cwd, HOME] = [await temporaryDirectory(), await temporaryDirectory()]
    await writeFile(join(cwd, 'serve'), `#!/bin/sh\necho ready\n${script}\n`)
    await chmod(join(cwd, 'serve'), 0o755)
    const [program = '', ...words] = settingOf('ExecStart')
      .replace('8080', `${await freePort()}`)
      .split(' ')
    const env = { PATH: process.env.PATH, HOME, LANG: 'C.UTF-8' }
    const child = spawn(program, words, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = once(child, 'close') as Promise<[number | null, string | null]>
    const isReady = await Promise.race([once(child.stdout, 'data').then(() => true), ended.then(() => false)])
    expect(isReady).toBe(true)
    child.kill('SIGTERM')
    const [code, signal] = await ended
    expect({ code, signal, clean: isClean(code, signal) }).toMatchObject({ clean })
  })
})
