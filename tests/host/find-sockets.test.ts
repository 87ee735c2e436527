import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findSockets } from '../../src/host/find-sockets.ts'
import { temporaryDirectory } from '../support/directory.ts'

test('a socket and a FIFO in a directory are found, files and directories are not', async () => {
  const directory = await temporaryDirectory()
  mkdirSync(join(directory, 'below'))
  writeFileSync(join(directory, 'file'), '')
  execFileSync('mkfifo', [join(directory, 'below', 'pipe')])
  const server = createServer().listen(join(directory, 'door'))
  onTestFinished(() => {
    server.close()
  })
  expect(await findSockets(directory)).toEqual([join(directory, 'door'), join(directory, 'below', 'pipe')])
})

test('a directory that is not there has none', async () => {
  expect(await findSockets('/nonexistent/llm-do')).toEqual([])
})
