/** A command without network asks for a name: it gets an answer without a wait, and its result names the host and the flag for it. */
import { describe, expect } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { testWith } from '../support/needs.ts'
import { callers } from '../support/users.ts'
import { python, resultOf, shell } from './ways.ts'

const denial = (host: string) =>
  expect.objectContaining({ operation: 'resolve', target: host, fix: `--allow-host ${host}` })

describe.each(callers())('without network, as %s', (as) => {
  const run = (command: readonly string[]): Promise<Result> => resultOf({ command, way: { engine: 'unshare', as } })

  testWith(
    ['userns', 'python'],
    'programs are told that names do not exist, and the result has each name',
    async () => {
      // EAI_AGAIN would mean that no answer came; with retries such a client takes over a minute.
      const lookUp = `
import socket
for name in ['first.example', 'second.example']:
    try: socket.getaddrinfo(name, 80)
    except socket.gaierror as error: print(error.errno == socket.EAI_NONAME)`
      const { stdout, denials } = await run(python(lookUp))
      expect(stdout).toBe('True\nTrue\n')
      expect(denials).toEqual([denial('first.example'), denial('second.example')])
      const clients = await run(
        shell(`curl -sS http://curl.example/; echo $?
node -e 'fetch("http://node.example/").catch((e) => console.log(e.cause.code))'
node -e 'require("dns").resolve4("c-ares.example", (e) => console.log(e.code))'; false`),
      )
      expect(clients.stdout).toBe('6\nENOTFOUND\nENOTFOUND\n')
      expect(clients.denials).toEqual(['curl', 'node', 'c-ares'].map((name) => denial(`${name}.example`)))
    },
  )

  testWith(['userns', 'python'], 'only the name server is there, and the command cannot take its place', async () => {
    const script = `
import errno, socket
def attempt(what):
    try: return what() and 'ok'
    except OSError as error: return errno.errorcode[error.errno]
def bind(kind):
    with socket.socket(socket.AF_INET, kind) as s: return s.bind(('127.0.0.1', 53)) or True
print(attempt(lambda: bind(socket.SOCK_DGRAM)), attempt(lambda: bind(socket.SOCK_STREAM)),
      attempt(lambda: socket.create_connection(('127.0.0.1', 53), 2)), attempt(lambda: socket.create_connection(('203.0.114.10', 53), 2)))`
    expect((await run(python(script))).stdout).toBe('EADDRINUSE ok ECONNREFUSED ENETUNREACH\n')
  })
})
