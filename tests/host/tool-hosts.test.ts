/** What the answers about the caller's tools rest on, so that no plan outlives it. */
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { observeToolHosts } from '../../src/host/tool-hosts.ts'
import { temporaryDirectory } from '../support/directory.ts'

async function machine() {
  const home = await temporaryDirectory()
  const bin = join(home, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\necho http://asked.example/\n')
  chmodSync(join(bin, 'npm'), 0o755)
  const uid = process.getuid?.() ?? -1
  const question = { env: { PATH: `${bin}:/bin` }, home, cwd: home, uid, notBelow: [] }
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
