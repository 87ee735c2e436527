/** A server that speaks JSON-RPC by stdin and stdout, as clients start it: the sandbox must not be noticed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'

const SERVER = `#!/usr/bin/env python3
import json, os, sys
def answer(method, params):
    if method == 'initialize':
        return {'protocolVersion': params['protocolVersion'], 'serverInfo': {'name': 'echo', 'version': '1'}, 'capabilities': {'tools': {}}}
    if method == 'tools/list':
        return {'tools': [{'name': 'echo', 'inputSchema': {'type': 'object'}}]}
    if method == 'tools/call':
        return {'content': [{'type': 'text', 'text': params['arguments']['text']}]}
    if method == 'secrets':
        return [path for path in params if os.path.exists(path)]
for line in sys.stdin:
    request = json.loads(line)
    if 'id' in request:
        print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': answer(request['method'], request.get('params'))}), flush=True)
print('goodbye', file=sys.stderr)
`

async function connect(argv: readonly string[], directory: string) {
  const home = await directoryWith()
  const [file = '', ...words] = cliWords(argv)
  const child = spawn(file, words, {
    cwd: directory,
    env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: home },
    stdio: 'pipe',
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const replies = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const errors: Buffer[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  return {
    child,
    send,
    ask: async (id: number, method: string, params: unknown): Promise<unknown> => {
      send({ id, method, params })
      const { value } = await replies.next()
      return (JSON.parse(value as string) as { result: unknown }).result
    },
    bye: async () => {
      child.stdin.end()
      const [status, signal] = await once(child, 'close')
      return { status, signal, errors: Buffer.concat(errors).toString() }
    },
  }
}

describeWith(['userns', 'python'], 'a stdio server under the mcp profile', () => {
  test('answers as without a sandbox, sees only its own files, and ends when its client closes stdin', async () => {
    const directory = await directoryWith({ 'server.py': SERVER })
    const { ask, bye, send } = await connect(['--profile', 'mcp', '--', './server.py'], directory)
    expect(await ask(1, 'initialize', { protocolVersion: '2025-06-18' })).toMatchObject({
      serverInfo: { name: 'echo' },
    })
    send({ method: 'notifications/initialized' })
    expect(await ask(2, 'tools/list', {})).toMatchObject({ tools: [{ name: 'echo' }] })
    for (const text of ['', 'line\nline', '\u0000\u001b[31m', 'ü€😀', 'x'.repeat(1_000_000)])
      expect(await ask(3, 'tools/call', { name: 'echo', arguments: { text } })).toEqual({
        content: [{ type: 'text', text }],
      })
    const paths = ['/etc/shadow', '/sys/class', '/var/lib', directory, '/usr/bin/env']
    expect(await ask(4, 'secrets', paths)).toEqual(['/usr/bin/env'])
    expect(await bye()).toEqual({ status: 0, signal: null, errors: 'goodbye\n' })
  })
})
