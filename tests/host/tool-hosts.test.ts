/** The sources of the answers about the caller's tools, so that no plan outlives them. */
import { chmodSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { observeToolHosts } from '../../src/host/tool-hosts.ts'
import { temporaryDirectory } from '../support/directory.ts'

async function machine() {
  const home = await temporaryDirectory()
  const bin = join(home, 'bin')
  mkdirSync(bin)
  // For a user without an account, as in many containers, npm ends at once where HOME is unset.
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\n[ -n "$HOME" ] && [ ! -d "$HOME" ] && echo http://asked.example/\n')
  chmodSync(join(bin, 'npm'), 0o755)
  const uid = process.getuid?.() ?? -1
  const question = { env: { PATH: `${bin}:/bin` }, home, cwd: home, uid, notBelow: [], cache: undefined }
  return { home, question }
}

test('a tool that had to be asked is told from one whose files say it', async () => {
  const { home, question } = await machine()
  const [asked] = await observeToolHosts({ ...question, names: ['@npm'] })
  expect([asked?.hosts, asked?.looked.isAsked]).toEqual([['asked.example:80'], true])
  writeFileSync(join(home, '.npmrc'), 'registry=http://said.example/\n')
  const [said] = await observeToolHosts({ ...question, names: ['@npm'] })
  expect([said?.hosts, said?.looked.isAsked]).toEqual([['said.example:80'], false])
})

test('a program is asked once for each boot, and again when its file is another one or it gave no answer', async () => {
  const { home, question } = await machine()
  const cache = join(home, 'cache')
  const hosts = async () => {
    const [asked] = await observeToolHosts({ ...question, cache, names: ['@npm'] })
    expect(asked?.looked.isAsked).toBe(true)
    return asked?.hosts
  }
  const npm = (script: string) => {
    writeFileSync(join(home, 'bin/new'), `#!/bin/sh\necho asked >>${home}/asked\n${script}\n`, { mode: 0o755 })
    renameSync(join(home, 'bin/new'), join(home, 'bin/npm'))
  }
  const timesAsked = () => readFileSync(join(home, 'asked'), 'utf8').split('\n').length - 1
  npm('exit 1')
  expect([await hosts(), await hosts(), timesAsked()]).toEqual([[], [], 2])
  npm('echo http://one.example/')
  expect([await hosts(), await hosts(), timesAsked()]).toEqual([['one.example:80'], ['one.example:80'], 3])
  npm('echo http://two.example/')
  expect([await hosts(), timesAsked()]).toEqual([['two.example:80'], 4])
  // A place that another user could write is not believed.
  chmodSync(cache, 0o777)
  expect([await hosts(), timesAsked()]).toEqual([['two.example:80'], 5])
})

test('a repository that a link leads to is not the caller’s own', async () => {
  const { home, question } = await machine()
  const repository = join(home, 'other/.git')
  mkdirSync(repository, { recursive: true })
  writeFileSync(join(repository, 'config'), '[remote "origin"]\n\turl = https://git.example/x\n')
  mkdirSync(join(home, 'work'))
  symlinkSync(repository, join(home, 'work/.git'))
  const hostsAt = async (cwd: string) => (await observeToolHosts({ ...question, cwd, names: ['@git'] }))[0]?.hosts
  expect(await hostsAt(join(home, 'work'))).toEqual([])
  expect(await hostsAt(join(home, 'other'))).toEqual(['git.example:443'])
})
