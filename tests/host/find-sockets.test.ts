import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findSockets } from '../../src/host/find-sockets.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { testWith } from '../support/needs.ts'

test('a socket and a FIFO in a directory are found, files and directories are not', async () => {
  const directory = await temporaryDirectory()
  mkdirSync(join(directory, 'below'))
  writeFileSync(join(directory, 'file'), '')
  execFileSync('mkfifo', [join(directory, 'below', 'pipe')])
  const server = createServer().listen(join(directory, 'door'))
  onTestFinished(() => {
    server.close()
  })
  const open = [join(directory, 'door'), join(directory, 'below', 'pipe')]
  expect(findSockets(directory)).toEqual({ open, hasUnbound: false })
})

test('a directory that is not there has none', () => {
  expect(findSockets('/nonexistent/llm-do')).toEqual({ open: [], hasUnbound: false })
})

/** A server that is killed leaves the file. */
const leaveFile = (path: string) =>
  spawnSync(process.execPath, [
    '-e',
    `net.createServer().listen('${path}', () => process.kill(process.pid, 'SIGKILL'))`,
  ])

test('files of ended servers are passed over, however many are before an open one', async () => {
  const directory = await temporaryDirectory()
  const ended = ['1', '2', '3', '4', '5', '6'].map((name) => join(directory, name))
  leaveFile(ended[0] ?? '')
  for (const path of ended.slice(1)) execFileSync('ln', [ended[0] ?? '', path])
  mkdirSync(join(directory, 'below'))
  const door = join(directory, 'below', 'd'.repeat(200))
  const server = createServer().listen(join(directory, 'short'))
  onTestFinished(() => {
    server.close()
  })
  await once(server, 'listening')
  execFileSync('mv', [join(directory, 'short'), door])
  expect(findSockets(directory)).toEqual({ open: [door], hasUnbound: true })
})

test('a server hears nothing of the search', async () => {
  const path = join(await temporaryDirectory(), 'door')
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.end()
  }).listen(path)
  onTestFinished(() => {
    server.close()
  })
  await once(server, 'listening')
  expect(findSockets(join(path, '..')).open).toEqual([path])
  // The control, which also is behind what the search would have left in the queue.
  await once(connect(path).resume(), 'close')
  expect(connections).toBe(1)
})

const BIND = `
import socket, sys
kept = []
for kind in ('STREAM', 'DGRAM', 'SEQPACKET'):
    one = socket.socket(socket.AF_UNIX, getattr(socket, 'SOCK_' + kind))
    one.bind(f'{sys.argv[1]}/{kind}')
    kept.append(one)
print('ready', flush=True)
sys.stdin.read()`

testWith(
  ['root', 'python'],
  'sockets of every type are found, of other networks and without a queue, too',
  async () => {
    const directory = await temporaryDirectory()
    const server = spawn('unshare', ['--net', 'python3', '-c', BIND, directory])
    onTestFinished(() => {
      server.stdin.end()
    })
    await once(server.stdout, 'data')
    const open = ['DGRAM', 'SEQPACKET', 'STREAM'].map((name) => join(directory, name))
    expect(findSockets(directory)).toEqual({ open, hasUnbound: false })
    server.stdin.end()
    await once(server, 'exit')
    expect(findSockets(directory)).toEqual({ open: [], hasUnbound: true })
  },
)
